"""The command `make bench`: parses, calls, exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paper.bench import error_curves, suite
from paper.command_line import call

app = typer.Typer(pretty_exceptions_enable=False)
console = Console()


@app.command()
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="A shorter run, under three minutes.")
    ] = False,
    large: Annotated[bool, typer.Option("--large", help="Also 100 million observations.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file for the figures.")] = None,
    page: Annotated[Path | None, typer.Option(help="Page to update, docs/speed.md.")] = None,
    check: Annotated[
        Path | None, typer.Option(help="Only check that scans are not slower than in this file.")
    ] = None,
) -> None:
    """Measure speed and memory: one table of figures, goals and other programs' times."""
    if check is not None:
        complaints = suite.check(check)
        for complaint in complaints:
            console.print(complaint, soft_wrap=True)
        raise typer.Exit(1 if complaints else 0)
    rows = []
    for row in suite.measure(quick, large):
        rows.append(row)
        value = "not measured" if row.value is None else f"{row.value:.3g} {row.unit}"
        sign = {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}[row.met]
        console.print(
            f"{row.name:68} {value:32} {sign} {row.note}", highlight=False, soft_wrap=True
        )
    result = suite.to_json(rows)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n")
    if page is not None:
        suite.write_page(page, result)
        if error_curves.known():
            error_curves.write_picture(page.parent / "images" / "curves")


if __name__ == "__main__":
    call(app)
