"""What a model file says about itself, without loading the model, or what could run it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bayesring.data import archives
from bayesring.wording import shown

FORMAT = "bayesring model"
VERSION, READABLE = 3, (2, 3)
"""Format version of files that are written, and versions that can be read."""
DESCRIPTION = "description.json"
DRAWS = re.compile(r"(?:0|[1-9][0-9]{0,5})/nuisance\.npy")
HEAD = 512
"""Bytes in which the header of an array is."""


class WrongFormat(ValueError):
    """Reject a file of another kind or from another release."""


class Header(NamedTuple):
    """The description of a model, and how many draws it holds."""

    description: dict[str, Any]
    draws: list[int]
    """Per chain."""


def read_model_header(path: str | os.PathLike[str]) -> Header:
    """Read the beginning of a model file; a ValueError says what is wrong with any other."""
    try:
        with archives.open_regular(path) as file, archives.open_archive(file) as archive:
            description = archives.read_description(archive, DESCRIPTION)
            check_format(description, path)
            draws = []
            for name in archive.namelist():
                if DRAWS.fullmatch(name):
                    with archive.open(name) as member:
                        draws.append(archives.shape_of(member.read(HEAD), name)[0])
    except (FileNotFoundError, WrongFormat):
        raise
    except archives.BROKEN as error:
        raise not_a_model(path, error) from None
    return Header(description, draws)


def check_format(description: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Raise an error unless this release reads the file."""
    if description.get("format") != FORMAT:
        raise WrongFormat(f"{path} is not a bayesring model.")
    found = description.get("version")
    if type(found) is not int or found not in READABLE:
        raise WrongFormat(
            f"{path} has format version {shown(found)}, but this release reads versions "
            f"{' and '.join(map(str, READABLE))}; load it with the release that wrote it."
        )


def not_a_model(path: str | os.PathLike[str], error: Exception) -> ValueError:
    """The error for a file that cannot be read."""
    return ValueError(f"{path} is not a bayesring model, or is damaged: {one_line(error)}.")


def one_line(error: Exception) -> str:
    """The text of an error, shortened and without its full stop."""
    return " ".join(str(error).split())[:500].rstrip(".")
