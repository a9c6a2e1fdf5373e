"""Server room: temperatures over continuous time, 3 x 3 x 34 series x 1,001 steps, five folds."""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core import multiarray
from numpy.lib import format as npy
from numpy.typing import NDArray

from bayesring.datasets.cache import address, fetch
from bayesring.datasets.dataset import N_FOLDS, Dataset, Description, numbered, united
from bayesring.datasets.splits import Fold
from bayesring.model.types import Observations

SHAPE = (3, 3, 34, 1001)
FILE = (
    "xuangu-fang/Streaming-Factor-Trajectory-Learning",
    "e2bafcd4ce424007ba3ad5d676f25dd91dae260c",
    "data/server.npy",
)
PICKLED, PLAIN = "server_room/server.npy", "server_room/server_room.npz"
CHECKSUM = "aee07e77e2d5606ad558d20a190ee19116d21ff5efdd9551a9a7b6dcda5b5d82"
"""Checksum of indices, steps and values of all folds as little-endian 64-bit numbers."""
PLAIN_CHECKSUM = "c35adbcd576113fc8ed04f1a1731b94cb8e9016790db3787599d4f5d16349e70"
DESCRIPTION = Description(
    name="Server room",
    content=(
        "Standardised temperatures, cooling x power x location x time, 3 % of the cells. 140 of "
        "the 10,000 values are further ones of a cell, about 50 of them in the other part of a "
        "fold."
    ),
    source=address(*FILE),
    licence="MIT (the repository's licence); none stated for the data themselves.",
    citation=(
        "Temperatures of a server room of the Poznan Supercomputing and Networking Center; folds "
        "of Fang, Yu, Wang, Li, Kirby and Zhe (2023), Streaming factor trajectory learning for "
        "temporal tensor decomposition, NeurIPS."
    ),
    protocol="Five random splits as published, 8,000 and 2,000 values. RMSE, MAE.",
)
Parts = dict[str, NDArray[Any]]
"""Arrays named `fold<number>_<tr or te>_<ind, step or y>`."""


def load_server_room() -> Dataset:
    """Temperatures at some cells of (3, 3, 34, 1001): cooling, power, location, time in [0, 1].

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_server_room
    >>> load_server_room().shape
    (3, 3, 34, 1001)
    """
    cooling, power, location, steps = SHAPE
    time = {"time": np.arange(steps) / (steps - 1)}
    parts = _parts()
    return Dataset(
        DESCRIPTION,
        SHAPE,
        numbered(cooling=cooling, power=power, location=location) | time,
        lambda: united([_fold(parts, fold) for fold in range(N_FOLDS)]),
        lambda fold: _fold(parts, fold),
        time,
    )


def _fold(parts: Parts, fold: int) -> Fold:
    return Fold(*(_observations(parts, f"fold{fold}_{part}") for part in ("tr", "te")))


def _observations(parts: Parts, name: str) -> Observations:
    coords = np.column_stack([parts[f"{name}_ind"], parts[f"{name}_step"]]).astype(np.int64)
    return Observations(coords, parts[f"{name}_y"].astype(float), SHAPE)


def _parts() -> Parts:
    """The published numbers, from the published pickle or from the same arrays as plain ones."""
    folder = os.environ.get("BAYESRING_DATA")
    if folder and (Path(folder) / PLAIN).is_file():
        with np.load(fetch(PLAIN, PLAIN_CHECKSUM, *FILE)) as arrays:
            return {name: arrays[name] for name in arrays.files}
    path = fetch(PICKLED, None, *FILE)
    try:
        parts = unpickled_parts(path)
        is_published = _digest(parts) == CHECKSUM
    except (KeyError, IndexError, TypeError, ValueError, EOFError, pickle.UnpicklingError):
        is_published = False
    if not is_published:
        raise ValueError(f"{path} is not the published file: its numbers differ.")
    return parts


def unpickled_parts(path: Path) -> Parts:
    """Arrays of the published file, a pickled dictionary, which may create arrays only."""
    with path.open("rb") as file:
        npy.read_magic(file)
        npy.read_array_header_1_0(file)
        folds = _ArraysOnly(file).load().item()["data"]
    keys = {"ind": "ind", "step": "T_disct", "y": "y"}
    return {
        f"fold{fold}_{part}_{name}": np.squeeze(folds[fold][f"{part}_{key}"])
        for fold in range(N_FOLDS)
        for part in ("tr", "te")
        for name, key in keys.items()
    }


def _digest(parts: Parts) -> str:
    """Checksum of the numbers, whatever the file that they come from."""
    found = hashlib.sha256()
    for fold in range(N_FOLDS):
        for part in ("tr", "te"):
            for name, kind in (("ind", "<i8"), ("step", "<i8"), ("y", "<f8")):
                array = parts[f"fold{fold}_{part}_{name}"]
                found.update(np.ascontiguousarray(array, kind).tobytes())
    return found.hexdigest()


class _ArraysOnly(pickle.Unpickler):
    """Reads pickles of NumPy arrays in plain containers and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            if name in ("_reconstruct", "scalar"):
                return getattr(multiarray, name)
        elif (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a file of arrays.")
