"""The command `make reproduce`: parses, calls, exits."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paper.command_line import call
from paper.studies import reproduce as work_out

app = typer.Typer(pretty_exceptions_enable=False)


class What(StrEnum):
    """Parts of the paper's evaluation."""

    rank = "rank"
    scale = "scale"
    continuous = "continuous"
    binary = "binary"
    all = "all"


@app.command()
def reproduce(
    what: Annotated[What, typer.Argument(help="Which table or figure.")] = What.all,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test of every path, under five minutes.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET/METHOD", help="Only these cells; * matches anything."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Cells at a time; by default one per core. Scale uses one.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables and pictures.")] = Path("results"),
    results: Annotated[
        Path | None, typer.Option(help="Folder of the cells; OUT by default.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also recompute existing cells.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Reproduce the paper's evaluation: its tables and figures next to ours.

    Each cell of a table is kept in a row of a file; a second run computes only what is missing.
    """
    errors = Console(stderr=True, soft_wrap=True)
    try:
        outcome = work_out(
            what.value, out, results, quick, only or (), jobs, not quiet, debug, again
        )
    except KeyboardInterrupt:
        errors.print("interrupted; finished cells are kept, and the same command continues.")
        raise typer.Exit(2) from None
    where = out / "quick" if quick else out
    if not quiet:
        Console(soft_wrap=True).print(
            f"{outcome.computed} cells computed, {outcome.kept} already existed. "
            f"Tables, pictures and discussion: {where}/reproduction.md",
            highlight=False,
        )
    for sentence in outcome.unavailable:
        errors.print(f"note: {sentence}", markup=False, highlight=False)
    if outcome.failed:
        raise ValueError(
            f"{len(outcome.failed)} cells could not be computed; the first, {outcome.failed[0]}"
        )


if __name__ == "__main__":
    call(app)
