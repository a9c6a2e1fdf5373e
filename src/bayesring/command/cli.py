"""The command line: parses, calls, exits.

Exit codes: 0 if done, 1 if `check` says not to believe the intervals, 2 after an error, 130 after
Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from bayesring.command import ending
from bayesring.command import options as opt
from bayesring.command.ending import INTERRUPTED, UNBELIEVABLE, interruptible
from bayesring.command.groups import (
    Fitting,
    Keeping,
    OfCells,
    OfValues,
    Text,
    TextOfKeys,
    ungrouped,
)
from bayesring.command.screen import console, show
from bayesring.command.where import Where

app = typer.Typer(
    help="Bayesian completion of multiway data.",
    epilog="Exit codes: 0 done; 1 check says not to believe the intervals; 2 error, in one "
    "sentence; 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from bayesring import __version__

        typer.echo(f"bayesring {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
) -> None:
    """Bayesian completion of multiway data."""


@app.command()
@interruptible
@ungrouped
def complete(
    source: opt.Source,
    *,
    output: opt.Output = None,
    modes: opt.Modes = None,
    value: opt.Value = None,
    fill: Annotated[
        str, typer.Option(help="missing: rows without a value; all: also cells without a row.")
    ] = "missing",
    mask: opt.Mask = None,
    level: opt.Level = 0.9,
    point: opt.Point = "mean",
    likelihood: opt.Likelihood = "auto",
    model: Annotated[str | None, typer.Option(help="Also save the model, as fit does.")] = None,
    known: OfCells,
    fitting: Fitting,
    where: Where,
    keeping: Keeping,
    text: Text,
    safe_cells: opt.SafeCells = False,
    force: opt.Force = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show how the input is understood, and stop.")
    ] = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fill the missing values of IN, each with an error bar and an interval."""
    from bayesring.command.workflows import Reading, complete_file, preview_file

    reading = Reading(text.dialect(), opt.mask_in(mask), known.extras())
    if dry_run:
        names, shared = opt.names_in(modes), opt.share_in(fitting.share)
        found = preview_file(source, names, value, fill, likelihood, reading, shared)
        show(found._asdict(), as_json, quiet, output)
        return
    target = _required(output, as_json)
    summary = where.instead_of(complete_file)(
        source,
        target,
        modes=opt.names_in(modes),
        value=value,
        fill=fill,
        level=level,
        point=point,
        likelihood=likelihood,
        model=model,
        progress=not quiet,
        safety=keeping.safety(force),
        safe_cells=safe_cells,
        reading=reading,
        **fitting.settings(),
    )
    show(summary, as_json, quiet, output)
    if summary["interrupted"]:
        sys.exit(INTERRUPTED)


@app.command()
@interruptible
@ungrouped
def fit(
    source: opt.Source,
    *,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Model file.")] = None,
    modes: opt.Modes = None,
    value: opt.Value = None,
    likelihood: opt.Likelihood = "auto",
    known: OfValues,
    fitting: Fitting,
    where: Where,
    keeping: Keeping,
    text: Text,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fit a model to the known values of IN, to predict and report with."""
    from bayesring.command.workflows import Reading, fit_file

    summary = where.instead_of(fit_file)(
        source,
        _required(output, False),
        modes=opt.names_in(modes),
        value=value,
        likelihood=likelihood,
        progress=not quiet,
        safety=keeping.safety(force),
        reading=Reading(text.dialect(), extras=known.extras()),
        **fitting.settings(),
    )
    show(summary, as_json, quiet, output)
    if summary["interrupted"]:
        sys.exit(INTERRUPTED)


@app.command()
@interruptible
@ungrouped
def predict(
    model: opt.ModelFile,
    source: opt.Source,
    *,
    output: opt.Output = None,
    level: opt.Level = 0.9,
    point: opt.Point = "mean",
    exposure: opt.Exposure = None,
    where: Where,
    text: TextOfKeys,
    safe_cells: opt.SafeCells = False,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Predict the cells that IN lists: its keys with mean, std, lower and upper."""
    from bayesring.command.judged import predict_file

    target = _required(output, as_json)
    found = where.instead_of(predict_file)(
        model,
        source,
        target,
        level=level,
        point=point,
        exposure=exposure,
        safe_cells=safe_cells,
        dialect=text.dialect(),
        force=force,
    )
    show(found, as_json, quiet, output)


@app.command()
@interruptible
@ungrouped
def forecast(
    model: opt.ModelFile,
    steps: Annotated[int, typer.Argument(metavar="STEPS", help="How many labels to go on.")],
    *,
    output: opt.Output = None,
    mode: Annotated[
        str | None, typer.Option(help="Which mode goes on, if several are ordered.")
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(metavar="IN", help="Labels of the other modes to forecast; all if left out."),
    ] = None,
    level: opt.Level = 0.9,
    text: TextOfKeys,
    safe_cells: opt.SafeCells = False,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Predict what comes after the last label of an ordered mode, such as the next days."""
    from bayesring.command.judged import forecast_file

    found = forecast_file(
        model,
        _required(output, as_json),
        steps,
        mode=mode,
        cells=cells,
        level=level,
        safe_cells=safe_cells,
        dialect=text.dialect(),
        force=force,
    )
    show(found, as_json, quiet, output)


@app.command()
@interruptible
def check(
    model: opt.ModelFile,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Tell whether the intervals of a model can be believed; if not, the exit code is 1."""
    from bayesring.command.judged import check_file

    found = check_file(model, progress=not quiet)
    show(found, as_json, quiet, None)
    if not found["believable"]:
        sys.exit(UNBELIEVABLE)


@app.command()
@interruptible
def report(
    model: opt.ModelFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help="HTML page to write.")
    ] = "report.html",
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write a page on a model: its data, findings, checks, slices, and how to reproduce it."""
    from bayesring.command.judged import report_file

    found = report_file(model, output, progress=not quiet, force=force)
    show(found, as_json, quiet, output)


@app.command()
@interruptible
@ungrouped
def compare(
    models: Annotated[list[str], typer.Argument(metavar="MODELS", help="Files that fit wrote.")],
    on: Annotated[str, typer.Option(metavar="IN", help="Values that no model was fitted to.")],
    *,
    text: Text,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Compare models by the log score of held-out values, with the error of the difference."""
    from bayesring.command.judged import compare_files

    dialect = text.dialect()
    show(compare_files(models, on, dialect=dialect), as_json, False, None)


@app.command()
@interruptible
def info(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="File that fit wrote.")
    ] = None,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Tell what a model file holds; without one, the versions of everything in use."""
    from bayesring.command.facts import about_model, about_us

    show(about_us() if model is None else about_model(model), as_json, False, None)


@app.command()
@interruptible
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Which cells are known, and the chains.")] = 0,
    table: Annotated[
        str | None,
        typer.Option(help="Write a climate table with gaps to this file instead, to try with."),
    ] = None,
    force: opt.Force = False,
    debug: opt.Debug = False,
) -> None:
    """Complete a hyperspectral scene (145 x 145 x 200) from 1 % of its cells."""
    from bayesring.command.demo import check_demo, run_demo, summary, write_climate, write_demo

    if table is not None:
        n_rows, n_known = write_climate(table, seed, force)
        console.print(f"{table}: {n_rows:,} rows, of which {n_known:,} have a value.")
        return
    check_demo(out, force)
    console.print("Indian Pines, 145 x 145 pixels x 200 bands: 1 % of 4,205,000 cells known.")
    result, pictures, ring = run_demo(seed)
    write_demo(out, result, pictures, ring)
    grid = Table(show_header=False)
    for name, text in summary(result).items():
        grid.add_row("hidden cells in their 90 % interval" if name == "coverage" else name, text)
    console.print(grid)
    console.print(f"Pictures and report: {out}/completion.png, {out}/rank.png, {out}/report.html")


def _required(output: str | None, as_json: bool) -> str:
    if output is None:
        raise ValueError("an output file is required: name it with -o.")
    if output == "-" and as_json:
        raise ValueError("--json and -o - would both write to standard output; choose one.")
    return output


def main() -> None:
    """Entry point: errors become one sentence and exit code 2, interrupts exit code 130."""
    ending.run(app)
