"""What is fuzzed, and how many of every 1,000 cases each target gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz import commands, files, memory

TARGETS: dict[str, Callable[[Random, Path], None]] = {
    "fit": memory.fit,
    "complete": memory.completion,
    "predict": memory.predict,
    "arguments": memory.arguments,
    "settings": memory.settings,
    "tables": memory.tables,
    "csv": files.comma_separated,
    "parquet": files.altered_file(".parquet"),
    "stream": files.streamed_parquet,
    "arrow": files.altered_file(".arrow"),
    "npy": files.altered_file(".npy"),
    "npz": files.zipped_arrays,
    "netcdf": files.altered_file(".nc"),
    "zarr": files.zarr_store,
    "model": files.model_file,
    "checkpoint": files.checkpoint,
    "paths": files.unknown_paths,
    "command": commands.command,
}
"""Each takes all its choices from a generator, and may write to a folder.

It returns if all is well. It may raise a refusal; any other error is a failure.
"""
SHARES = {
    "fit": 40,
    "complete": 50,
    "predict": 60,
    "arguments": 200,
    "settings": 100,
    "tables": 90,
    "csv": 100,
    "parquet": 70,
    "stream": 40,
    "arrow": 50,
    "npy": 80,
    "npz": 50,
    "netcdf": 25,
    "zarr": 8,
    "model": 25,
    "checkpoint": 10,
    "paths": 12,
    "command": 10,
}
ALTERED = [
    *("parquet", "stream", "arrow", "npy", "npz", "netcdf", "zarr", "model"),
    *("checkpoint", "paths", "command"),
]
"""Targets that may end the interpreter, since they read damaged files."""


def mixed(rng: Random, folder: Path) -> None:
    """Any of these targets, so that a short test needs one worker only."""
    TARGETS[rng.choice(ALTERED)](rng, folder)


TARGETS["mixed"] = mixed
