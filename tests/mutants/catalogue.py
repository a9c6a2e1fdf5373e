"""All planted bugs, package by package."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.of_data import CHECKPOINT, DATA
from tests.mutants.of_inference import ENGINE, INFER, LIKELIHOODS, MODEL, PRIORS
from tests.mutants.of_kernels import KERNELS
from tests.mutants.of_results import COMMAND, POSTERIOR, PUBLIC, REPORT

MUTANTS: list[Mutant] = [
    *KERNELS,
    *ENGINE,
    *INFER,
    *MODEL,
    *PRIORS,
    *LIKELIHOODS,
    *DATA,
    *CHECKPOINT,
    *POSTERIOR,
    *PUBLIC,
    *COMMAND,
    *REPORT,
]
