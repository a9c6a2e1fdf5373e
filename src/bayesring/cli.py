"""The command line: parses, calls, exits."""

from __future__ import annotations

import json
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
def bench(
    quick: Annotated[bool, typer.Option(help="Fewer sizes, under three minutes.")] = False,
    large: Annotated[bool, typer.Option(help="Also 100 million observations.")] = False,
    out: Annotated[Path, typer.Option(help="Where the figures go.")] = Path("docs/bench.json"),
    readme: Annotated[Path | None, typer.Option(help="README to bring up to date.")] = None,
    check: Annotated[
        Path | None, typer.Option(help="Only fail if scans got slower than in this file.")
    ] = None,
) -> None:
    """Measure speed and memory: one table of figures, goals, and other programs' times."""
    from bayesring.experiments.bench import run

    if check is not None:
        complaints = run.check(check)
        for complaint in complaints:
            console.print(complaint)
        raise typer.Exit(1 if complaints else 0)
    rows = []
    for row in run.measure(quick, large):
        rows.append(row)
        value = "not measured" if row.value is None else f"{row.value:.3g} {row.unit}"
        sign = {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}[row.met]
        console.print(
            f"{row.name:68} {value:32} {sign} {row.note}", highlight=False, soft_wrap=True
        )
    result = run.to_json(rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    if readme is not None:
        run.write_readme(readme, result)


def main() -> None:
    """Entry point: errors that the user can mend become one sentence and exit code 2."""
    try:
        app()
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False)
        raise SystemExit(2) from None
