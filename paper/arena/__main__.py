"""The command `make arena`: computes missing cells and writes docs/arena.md."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paper.arena.arena_cells import JsonStore, make_cells
from paper.arena.arena_page import page
from paper.command_line import call
from paper.results_store import COMMITTED, ROOT
from paper.runner import choose, run_cells

app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def arena(
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET/METHOD", help="Only these cells; * matches anything."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also recompute existing cells.")] = False,
    quick: Annotated[
        Path | None, typer.Option(help="A smoke test with tiny settings, into this folder.")
    ] = None,
    page_only: Annotated[bool, typer.Option("--page", help="Only write the page.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Compare published figures, trivial methods and bayesring; compute what is missing."""
    store = JsonStore(quick or ROOT / COMMITTED)
    cells = [] if page_only else choose(make_cells(quick is not None), only or ())
    outcome = run_cells(cells, store, debug=debug, again=again)
    path = (quick or ROOT / "docs") / "arena.md"
    path.write_text(page(store), encoding="utf-8")
    typer.echo(f"{outcome.computed} cells computed, {outcome.kept} already existed: {path}")
    for sentence in outcome.unavailable:
        typer.echo(f"note: {sentence}")
    if outcome.failed:
        raise ValueError(
            f"{len(outcome.failed)} cells could not be computed; the first, {outcome.failed[0]}"
        )


if __name__ == "__main__":
    call(app)
