"""All planted bugs, package by package."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.of_checkpoint import CHECKPOINT
from tests.mutants.of_choice import CHOICE
from tests.mutants.of_cluster import CLUSTER
from tests.mutants.of_data import DATA
from tests.mutants.of_features import CODES
from tests.mutants.of_inference import ENGINE, INFER
from tests.mutants.of_kernels import KERNELS
from tests.mutants.of_likelihoods import KINDS
from tests.mutants.of_model import FEATURES, LIKELIHOODS, MODEL, PRIORS
from tests.mutants.of_order import ORDER
from tests.mutants.of_pages import COMMAND, REPORT
from tests.mutants.of_posterior import POSTERIOR
from tests.mutants.of_public import DATASETS, PUBLIC
from tests.mutants.of_surroundings import SURROUNDINGS
from tests.mutants.of_tables import TABLES

MUTANTS: list[Mutant] = [
    *KERNELS,
    *ENGINE,
    *INFER,
    *MODEL,
    *PRIORS,
    *FEATURES,
    *ORDER,
    *CODES,
    *LIKELIHOODS,
    *KINDS,
    *DATA,
    *TABLES,
    *CLUSTER,
    *CHECKPOINT,
    *POSTERIOR,
    *PUBLIC,
    *CHOICE,
    *DATASETS,
    *COMMAND,
    *REPORT,
    *SURROUNDINGS,
]
