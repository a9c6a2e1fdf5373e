"""What a command prints: a summary or an error, for people or as JSON, as the shell has it."""

from __future__ import annotations

import json
import re
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

console = Console()
OPTIONS = {
    **{
        name: f"--{name}"
        for name in (
            *("draws", "warmup", "chains", "rank", "likelihood", "order", "inference", "fill"),
            *("level", "mask", "point", "value", "modes", "checkpoint", "cells", "mode", "steps"),
        )
    },
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "max_memory": "--max-memory",
    "max_time": "--max-time",
}
"""Arguments in Python, and the options that are the same."""
CODE = re.compile(
    r"((?:are|is) (-?[0-9.e+]+), [a-z ]+: if that stands for a missing value,) make it one\."
)
"""A warning of a code for missing values."""
COLUMN_OPTIONS = {
    "sample_weight": "--weight",
    "exposure": "--exposure",
    "value_error": "--value-error",
    "value_lower": "--value-lower",
    "value_upper": "--value-upper",
}
"""The same, of arguments that name columns."""
COLUMNS = re.compile(rf"\b(?:{'|'.join(COLUMN_OPTIONS)})(?= (?:names|column|was given|must|is) )")
VALUE = r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\([^)]*\)|(?:[\w-]|\.(?=\w))+"
ARGUMENT = re.compile(rf"(?<![\w/-])({'|'.join(OPTIONS)})=(?!\w+\()({VALUE})?")
"""An argument with its value, if any; one whose value is an object has no option."""
SENTENCES = ("results", "notes", "troubles", "warnings")
HIDDEN = (*SENTENCES, "interrupted", "differences", "data")


def in_shell(text: str) -> str:
    """Advice in the syntax of the command line: --draws 400 in place of draws=400."""
    found = COLUMNS.sub(lambda match: COLUMN_OPTIONS[match[0]], ARGUMENT.sub(_option, text))
    found = CODE.sub(r"\1 say so with --na \2.", found)
    return found.replace("modes and value are required", "--modes and --value are required")


def _option(match: re.Match[str]) -> str:
    value = match[2] or ""
    if value[:1] in "[(":
        value = ",".join(each.strip().strip("'\"") for each in value[1:-1].split(",") if each)
    value = value.strip("'\"")
    if value == "None":
        value = "none"
    if " " in value:
        value = f"'{value}'"
    return f"{OPTIONS[match[1]]} {value}".rstrip()


def show(summary: dict[str, Any], as_json: bool, quiet: bool, output: str | None) -> None:
    """Print a summary, on stderr if the data go to stdout."""
    summary = {
        name: [in_shell(each) for each in content] if name in SENTENCES else content
        for name, content in summary.items()
    }
    if as_json:
        typer.echo(json.dumps(summary, indent=1))
        return
    if quiet:
        return
    screen = Console(stderr=True) if output == "-" else console
    grid = Table(show_header=False)
    for name, content in summary.items():
        if name not in HIDDEN and content is not None:
            grid.add_row(name.replace("_", " "), Text(_plain(_text(name, content))))
    screen.print(grid)
    for kind in SENTENCES:
        for sentence in summary.get(kind, ()):
            line = f"{kind.removesuffix('s')}: {_plain(sentence)}"
            screen.print(line, markup=False, highlight=False)


def show_error(sentence: str, code: int, as_json: bool) -> None:
    """Print an error: one sentence on stderr, or JSON on stdout."""
    sentence = in_shell(sentence)
    if as_json:
        typer.echo(json.dumps({"error": sentence, "exit_code": code}))
        return
    errors = Console(stderr=True, soft_wrap=True)
    errors.print(f"error: {sentence}", markup=False, highlight=False)


def _plain(text: str) -> str:
    """Text that a terminal does not obey, whatever a file holds."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode()
        for each in text
    )


def _text(name: str, content: Any) -> str:
    if isinstance(content, bool):
        return "yes" if content else "no"
    if name in ("density", "level"):
        return f"{content:.3g}" if name == "level" else f"{content:.2%}"
    if name == "rank":
        return ", ".join("x".join(map(str, bonds)) for bonds in content)
    if name == "scores":
        return "\n".join(f"{key}: {score:.4f}" for key, score in content.items())
    if name == "labels":
        return "\n".join(f"{key}: {', '.join(some)}" for key, some in content.items())
    if name == "modes":
        return " x ".join(f"{key} ({size:,})" for key, size in content.items())
    if name in ("versions", "coverage"):
        return "\n".join(f"{key}: {each}" for key, each in content.items())
    if isinstance(content, list):
        return ", ".join(map(str, content))
    return f"{content:,}" if isinstance(content, int) and name != "seed" else str(content)
