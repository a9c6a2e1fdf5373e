"""Where a model came from: the command as typed and the file it read, for the report to repeat."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bayesring.data.files import STANDARD

NEVER_MATTER = {
    *("output", "model", "jobs", "checkpoint", "checkpoint_every", "keep_partial", "safe_cells"),
    *("force", "as_json", "quiet", "debug"),
}
"""Options that do not affect the result, so that the same result has the same origin."""
MOST_HASHED = 2**30
"""Bytes up to which a file is hashed."""


def origin(source: str) -> dict[str, str]:
    """The command that is running, if any, and the file it reads, without its folder."""
    found = {"input": describe_file(source)}
    context = click.get_current_context(silent=True)
    if context is not None and context.command.name:
        found["command"] = command_of(context)
    return found


def command_of(context: click.Context) -> str:
    """The command with the options that were typed and affect the result."""
    words: list[str] = []
    for parameter in context.command.params:
        name, given = str(parameter.name), context.params.get(str(parameter.name))
        typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not typed or name in NEVER_MATTER or given is False:
            continue
        if isinstance(parameter, click.Option):
            longest = max(parameter.opts, key=len)
            words += [longest] if given is True else [longest, str(given)]
        else:
            words.insert(0, file_name(str(given)))
    return shlex.join(["bayesring", str(context.command.name), *words])


def describe_file(source: str) -> str:
    """Name of a file, with size and hash where that takes a moment only."""
    path = Path(source)
    if source == STANDARD:
        return "standard input"
    if not path.is_file() or path.stat().st_size > MOST_HASHED:
        return file_name(source)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{file_name(source)}, {path.stat().st_size:,} bytes, SHA-256 {digest}"


def file_name(source: str) -> str:
    """The last part of a path: folders are nobody else's business."""
    return source if source == STANDARD else Path(source).name


def remember(ring: Any, source: str) -> None:
    """Note the origin of a fitted model in its description."""
    ring.description_ = {**ring.description_, "origin": origin(source)}
