"""The input of reports and pictures: a fitted model as plain parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesring.data.labels import Labels
from bayesring.data.observations import HeldOut, Observations
from bayesring.infer.state import Trace
from bayesring.model.types import IntArray
from bayesring.posterior import Posterior
from bayesring.posterior.convergence import Diagnostics, diagnose
from bayesring.posterior.explained import Explained
from bayesring.priors import RingPrior


class Fitted(NamedTuple):
    """The parts of a fitted model."""

    posterior: Posterior
    prior: RingPrior
    traces: Sequence[Trace]
    sampled: bool
    """Whether there are chains; rings of online EM are not chains."""
    warmup: int
    """Number of scans, or looks of online EM, without kept draws."""
    n_observations: int
    seed: int
    labels: Labels
    observed: Observations | None
    """Training data in the user's units, sorted; None if they are not in the model file."""
    held_out: HeldOut | None
    """None if there were too few observations to hold any out."""
    description: Mapping[str, Any]
    """Parameters and versions."""
    explained: Sequence[Explained] = ()
    """What features explain."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the modes."""
        return self.posterior.shape

    @property
    def is_binary(self) -> bool:
        """Whether predictions are probabilities."""
        return self.posterior.likelihood.binary

    @property
    def value_name(self) -> str:
        """Name of the values."""
        return self.labels.value or "value"

    def counts(self) -> list[IntArray]:
        """Number of observations of every level of every mode; all equal if there are none."""
        if self.observed is None:
            return [np.ones(size, dtype=np.int64) for size in self.shape]
        columns = zip(self.observed.coords.T, self.shape, strict=True)
        return [np.bincount(column, minlength=size) for column, size in columns]

    def diagnose(self) -> Diagnostics:
        """Whether the chains can be trusted."""
        return diagnose(
            self.posterior, self.traces, self.warmup, self.n_observations, seed=self.seed
        )

    def mode(self, name: str | int) -> int:
        """Index of a mode given by name or number."""
        if isinstance(name, str) and name in self.labels.names:
            return self.labels.names.index(name)
        if not isinstance(name, str) and 0 <= name < len(self.shape):
            return int(name)
        raise ValueError(
            f"there is no mode {name!r}; the modes are {', '.join(self.labels.names)}."
        )

    def level(self, mode: int, label: Any) -> int:
        """Index of a level given by its label, or by the text of its label."""
        levels = self.labels.levels[mode]
        known = np.arange(self.shape[mode]) if levels is None else levels
        same = np.flatnonzero(known.astype(str) == str(label))
        if not same.size:
            raise ValueError(
                f"{self.labels.names[mode]} has no level {label!s}; the first is {known[0]!s}, "
                f"the last {known[-1]!s}."
            )
        return int(same[0])

    def level_texts(self, mode: int, chosen: Sequence[int] | IntArray) -> list[str]:
        """Labels of some levels of a mode as text; numbers from 0 if it has no labels."""
        levels = self.labels.levels[mode]
        return [str(i if levels is None else levels[i]) for i in chosen]

    def by_labels(self, text: str) -> str:
        """A sentence in which cells are told by their labels and not by their indices."""
        return re.sub(r"entry \((\d+(?:, \d+)*)\)", self._entry_at, text)

    def _entry_at(self, found: re.Match[str]) -> str:
        cell = [int(index) for index in found[1].split(", ")]
        names = zip(self.labels.names, cell, strict=True)
        labels = [
            f"{name} {self.level_texts(mode, [index])[0]}"
            for mode, (name, index) in enumerate(names)
        ]
        return f"entry at {', '.join(labels)}"
