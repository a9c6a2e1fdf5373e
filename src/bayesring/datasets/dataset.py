"""What every loader returns: observations, labels, folds, and a description of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.datasets.splits import Fold
from bayesring.model.types import FloatArray, Observations

N_FOLDS = 5


@dataclass(frozen=True)
class Description:
    """Contents, source, licence, citation and protocol of a data set.

    Examples
    --------
    >>> from bayesring.datasets import load_ushcn
    >>> load_ushcn().description.name
    'USHCN'
    """

    name: str
    content: str
    source: str
    """Address of the files."""
    licence: str
    citation: str
    protocol: str
    """How folds are made, and what is scored."""


@dataclass(frozen=True)
class Dataset:
    """A data set: all known cells, labels and positions of its modes, and what it is scored on.

    Examples
    --------
    >>> from bayesring.datasets import load_ushcn
    >>> train, test = load_ushcn().split(0)
    """

    description: Description
    shape: tuple[int, ...]
    labels: dict[str, NDArray[Any]]
    """Name of each mode, and the labels of its levels."""
    read: Callable[[], Observations]
    make_fold: Callable[[Any], Fold]
    positions: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Position of each level, for the modes that have an order: a number, a time, or the latitude
    and longitude (n, 2) of a place."""
    folds: Sequence[int | str] = range(N_FOLDS)
    """What `split` takes: numbers of folds or seeds, or names of masks."""

    @cached_property
    def observations(self) -> Observations:
        """Every known cell once; for DBLP only the ones are known."""
        return self.read()

    @property
    def tensor(self) -> FloatArray:
        """The whole tensor, with NaN for unknown cells."""
        dense = np.full(self.shape, np.nan)
        dense[tuple(self.observations.coords.T)] = self.observations.values
        return dense

    def split(self, fold: int | str) -> Fold:
        """Training and test observations of one of the `folds`."""
        if fold not in self.folds:
            raise ValueError(f"fold must be {_either(self.folds)}, got {fold!r}.")
        return self.make_fold(fold)


def _either(folds: Sequence[int | str]) -> str:
    if isinstance(folds, range):
        return f"{folds[0]} to {folds[-1]}"
    return ", ".join(map(repr, folds[:-1])) + f" or {folds[-1]!r}"


def whole(tensor: FloatArray) -> Observations:
    """Every cell of a fully known tensor, in C order."""
    coords = np.indices(tensor.shape).reshape(tensor.ndim, -1).T
    return Observations(coords, tensor.ravel(), tensor.shape)


def united(folds: list[Fold]) -> Observations:
    """The cells of all folds, each once, sorted."""
    coords = np.concatenate([part.coords for fold in folds for part in fold])
    values = np.concatenate([part.values for fold in folds for part in fold])
    cells, first = np.unique(coords, axis=0, return_index=True)
    return Observations(cells, values[first], folds[0].train.shape)


def numbered(**sizes: int) -> dict[str, NDArray[Any]]:
    """Labels 0, 1, ... for modes whose levels have no names."""
    return {name: np.arange(size) for name, size in sizes.items()}
