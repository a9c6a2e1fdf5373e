"""What commands print."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

console = Console()


def show(summary: dict[str, Any], as_json: bool, quiet: bool, output: str | None) -> None:
    """Print the summary as JSON or a table, on stderr if the data go to stdout."""
    if as_json:
        typer.echo(json.dumps(summary, indent=1))
        return
    if quiet:
        return
    screen = Console(stderr=True) if output == "-" else console
    grid = Table(show_header=False)
    sentences = ("results", "notes", "troubles", "warnings")
    for name, content in summary.items():
        if name not in (*sentences, "interrupted", "differences") and content is not None:
            grid.add_row(name.replace("_", " "), _text(name, content))
    screen.print(grid)
    for kind in sentences:
        for sentence in summary.get(kind, ()):
            screen.print(f"{kind.removesuffix('s')}: {sentence}", markup=False, highlight=False)


def _text(name: str, content: Any) -> str:
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
    return f"{content:,}" if isinstance(content, int) and name != "seed" else str(content)
