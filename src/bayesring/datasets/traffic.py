"""What three traffic tables share: their source, and the masks that hide cells or whole days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from bayesring.datasets.cache import address, fetch
from bayesring.datasets.dataset import Dataset, Description
from bayesring.datasets.splits import Fold
from bayesring.model.types import FloatArray, IntArray, Observations

REPOSITORY = ("xinychen/transdim", "99a31275f12504f59b0c3d3debd50fea92b2e973")
LICENCE = "MIT (the repository's licence); none stated for the data themselves."
PREPARED = (
    "as prepared for Chen and Sun (2022), Bayesian temporal factorization for multidimensional "
    "time series prediction, IEEE Transactions on Pattern Analysis and Machine Intelligence 44."
)
PROTOCOL = (
    "A zero is a cell without a value. RM 40 and RM 60 hide 40 % and 60 % of the cells at random, "
    "NM 40 hides 40 % of the days, each for one series; hidden cells are for testing. RMSE, MAPE."
)
MASKS = ("RM 40", "RM 60", "NM 40")
SEED = 1000
"""Seed of the published masks, with the generator that they were drawn by."""


def source(city: str) -> str:
    """Address of the table of a city."""
    return address(*REPOSITORY, _path(city))


def load_traffic(
    city: str,
    sha256: str,
    description: Description,
    labels: dict[str, NDArray[Any]],
    positions: Mapping[str, NDArray[Any]],
    steps_of_day: int | None = None,
) -> Dataset:
    """A table with its masks; `steps_of_day` is the length of a day if days are not a mode."""
    path = fetch(f"{city.lower()}/tensor.mat", sha256, *REPOSITORY, _path(city))
    tensor = np.asarray(loadmat(path)["tensor"], dtype=np.float64)

    def make_fold(mask: str) -> Fold:
        shown = shown_cells(tensor.shape, mask, steps_of_day)
        return Fold(_nonzero(tensor, shown), _nonzero(tensor, ~shown))

    return Dataset(
        description,
        tensor.shape,
        labels,
        lambda: _nonzero(tensor, np.ones(tensor.shape, dtype=bool)),
        make_fold,
        positions,
        MASKS,
    )


def shown_cells(
    shape: tuple[int, ...], mask: str, steps_of_day: int | None = None
) -> NDArray[np.bool_]:
    """The cells that a mask leaves for training."""
    kind, percent = mask.split()
    shift = 0.5 - int(percent) / 100
    rng = np.random.RandomState(SEED)
    if kind == "RM":
        return np.asarray(np.round(rng.rand(*shape) + shift) == 1)
    if steps_of_day is None:
        days = np.round(rng.rand(*shape[:2]) + shift) == 1
        return np.broadcast_to(days[:, :, None], shape)
    drawn = np.round(rng.rand(*shape) + shift) == 1
    return np.repeat(drawn[:, :, : shape[2] // steps_of_day], steps_of_day, axis=2)


def _nonzero(tensor: FloatArray, chosen: NDArray[np.bool_]) -> Observations:
    coords: IntArray = np.argwhere(chosen & (tensor != 0))
    return Observations(coords, tensor[tuple(coords.T)], tensor.shape)


def _path(city: str) -> str:
    return f"datasets/{city}-data-set/tensor.mat"
