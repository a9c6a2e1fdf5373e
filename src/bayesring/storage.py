"""One file per model: a zip archive of plain arrays and a JSON description. No pickle inside.

Written to a temporary name and renamed, so that an interrupted write leaves the old file whole.
Reading checks the format, its version, every array's checksum and the objects named.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "bayesring model"
VERSION = 1
DESCRIPTION = "description.json"


def write(
    path: str | os.PathLike[str],
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a description and named arrays to one file."""
    target = Path(path)
    text = json.dumps({"format": FORMAT, "version": VERSION, **description}, indent=1)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with (
            os.fdopen(handle, "wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
        ):
            archive.writestr(_member(DESCRIPTION), text)
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
                archive.writestr(_member(f"{name}.npy"), buffer.getvalue())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write` wrote; a ValueError says what is wrong with any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read(DESCRIPTION))
            if description.get("format") != FORMAT:
                raise ValueError(f"{path} is not a bayesring model.")
            if description.get("version") != VERSION:
                raise ValueError(
                    f"{path} has format version {description.get('version')}, but this release "
                    f"reads version {VERSION}; load it with the release that wrote it."
                )
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(archive.read(name)), allow_pickle=False
                )
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a bayesring model, or is damaged: {error}.") from error
    return description, arrays


def _member(name: str) -> zipfile.ZipInfo:
    """Archive member with a fixed date, so that equal models give equal files."""
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def to_plain(value: Any) -> Any:
    """Frozen dataclasses (likelihoods, priors, rank policies) as plain data for JSON."""
    if is_dataclass(value):
        plain = {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
        return {"class": type(value).__name__, **plain}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def from_plain(value: Any, classes: Mapping[str, Callable[..., Any]]) -> Any:
    """Rebuild what `to_plain` took apart, from the named classes only."""
    if isinstance(value, dict):
        arguments = {key: from_plain(item, classes) for key, item in value.items()}
        name = arguments.pop("class", None)
        if name not in classes:
            raise ValueError(f"the model uses {name!r}, which this release does not know.")
        return classes[name](**arguments)
    if isinstance(value, list):
        return tuple(from_plain(item, classes) for item in value)
    return value
