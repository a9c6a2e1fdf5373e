"""The command line: parses, calls, exits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(
    help="Bayesian completion of multiway data.", no_args_is_help=True, add_completion=False
)
console = Console()


@app.callback()
def _root() -> None:
    """Bayesian completion of multiway data."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Which cells are known, and the chains.")] = 0,
) -> None:
    """Complete a hyperspectral scene (145 x 145 x 200) from 1 % of its cells."""
    from bayesring.experiments.demo import run_demo, summary, write_demo

    console.print("Indian Pines, 145 x 145 pixels x 200 bands: 1 % of 4,205,000 cells known.")
    result, pictures, ring = run_demo(seed)
    write_demo(out, result, pictures, ring)
    table = Table(show_header=False)
    for name, text in summary(result).items():
        table.add_row("hidden cells in their 90 % interval" if name == "coverage" else name, text)
    console.print(table)
    console.print(f"Pictures and report: {out}/completion.png, {out}/rank.png, {out}/report.md")


@app.command()
def report(
    model: Annotated[Path, typer.Argument(help="A model saved by `ring.save`.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a page on a model: data, findings, checks, slices, how to reproduce it."""
    from bayesring import load

    written = load(model).report(out)
    console.print(f"Report: {written}")


def main() -> None:
    """Entry point: errors that the user can mend become one sentence and exit code 2."""
    try:
        app()
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False)
        raise SystemExit(2) from None
