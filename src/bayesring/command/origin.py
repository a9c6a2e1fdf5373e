"""Where a model came from: the command as typed and the file it read, for the report to repeat."""

from __future__ import annotations

import hashlib
import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

STANDARD = "-"
"""The name of standard input."""
NEVER_MATTER = {
    *("output", "model", "jobs", "checkpoint", "checkpoint_every", "keep_partial", "safe_cells"),
    *("force", "as_json", "quiet", "debug"),
}
"""Options that do not affect the result, so that the same result has the same origin."""
MOST_HASHED = 2**30
"""Bytes up to which a file is hashed."""
running: ContextVar[str | None] = ContextVar("running", default=None)
"""The command that is running."""


@contextmanager
def recorded(function: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[None]:
    """Run a command under its name."""
    token = running.set(command_of(function, given))
    try:
        yield
    finally:
        running.reset(token)


def command_of(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """A command with the options that affect its result and are not at their defaults."""
    words: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        value = given.get(name, parameter.default)
        if name in NEVER_MATTER or value == parameter.default:
            continue
        if parameter.default is inspect.Parameter.empty:
            words.insert(0, file_name(str(value)))
        else:
            option = f"--{name.replace('_', '-')}"
            given_once = value if isinstance(value, list | tuple) else [value]
            for each in given_once:
                words += [option] if each is True else [option, _without_folder(str(each))]
    return shlex.join(["bayesring", function.__name__, *words])


def _without_folder(text: str) -> str:
    """The value of an option; of MODE=FILE, only the name of the file."""
    mode, equals, path = text.partition("=")
    return f"{mode}={file_name(path)}" if equals and Path(path).is_file() else text


def origin(source: str) -> dict[str, str]:
    """The file that is read, without its folder, and the command that reads it, if any."""
    command = running.get()
    return {"input": describe_file(source)} | ({} if command is None else {"command": command})


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
