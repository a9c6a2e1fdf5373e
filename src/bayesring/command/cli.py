"""The command line: parses, calls, exits.

Exit codes: 0 if done, 1 if `check` says not to believe the intervals, 2 after an error, 130 after
Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from bayesring.command import ending
from bayesring.command import options as opt
from bayesring.command.ending import INTERRUPTED, UNBELIEVABLE, interruptible
from bayesring.command.screen import console, show
from bayesring.command.where import LocalCluster, Scheduler, Where

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
def complete(
    source: opt.Source,
    output: opt.Output = None,
    modes: opt.Modes = None,
    value: opt.Value = None,
    fill: Annotated[
        str, typer.Option(help="missing: rows without a value; all: also cells without a row.")
    ] = "missing",
    mask: opt.Mask = None,
    level: opt.Level = 0.9,
    likelihood: opt.Likelihood = "auto",
    model: Annotated[str | None, typer.Option(help="Also save the model, as fit does.")] = None,
    rank: opt.Rank = "auto",
    order: opt.Ordered = "auto",
    features: opt.FeatureFiles = None,
    share: opt.Share = None,
    inference: opt.Inference = "gibbs",
    chains: opt.Chains = None,
    draws: opt.Draws = "auto",
    warmup: opt.Warmup = "auto",
    max_time: opt.MaxTime = None,
    max_memory: opt.MaxMemory = 2**30,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
    checkpoint: opt.CheckpointFolder = None,
    checkpoint_every: opt.CheckpointEvery = 30.0,
    keep_partial: opt.KeepPartial = False,
    sep: opt.Sep = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = None,
    na: opt.Na = None,
    sheet: opt.Sheet = None,
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

    reading = Reading(opt.dialect_of(sep, decimal, encoding, na, sheet), opt.mask_in(mask))
    if dry_run:
        names, shared = opt.names_in(modes), opt.share_in(share)
        found = preview_file(source, names, value, fill, likelihood, reading, shared)
        show(found._asdict(), as_json, quiet, output)
        return
    target = _required(output, as_json)
    summary = Where(scheduler, local_cluster).instead_of(complete_file)(
        source,
        target,
        modes=opt.names_in(modes),
        value=value,
        fill=fill,
        level=level,
        likelihood=likelihood,
        model=model,
        rank=opt.rank_in(rank),
        order=opt.order_in(order),
        features=opt.features_in(features),
        share=opt.share_in(share),
        inference=inference,
        chains="auto" if chains is None else chains,
        draws=opt.length_in(draws),
        warmup=opt.length_in(warmup),
        max_time=max_time,
        max_memory=max_memory,
        random_state=seed,
        n_jobs=jobs,
        progress=not quiet,
        safety=_safety(checkpoint, checkpoint_every, keep_partial, force),
        safe_cells=safe_cells,
        reading=reading,
    )
    show(summary, as_json, quiet, output)
    if summary["interrupted"]:
        sys.exit(INTERRUPTED)


@app.command()
@interruptible
def fit(
    source: opt.Source,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Model file.")] = None,
    modes: opt.Modes = None,
    value: opt.Value = None,
    likelihood: opt.Likelihood = "auto",
    rank: opt.Rank = "auto",
    order: opt.Ordered = "auto",
    features: opt.FeatureFiles = None,
    share: opt.Share = None,
    inference: opt.Inference = "gibbs",
    chains: opt.Chains = None,
    draws: opt.Draws = "auto",
    warmup: opt.Warmup = "auto",
    max_time: opt.MaxTime = None,
    max_memory: opt.MaxMemory = 2**30,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
    checkpoint: opt.CheckpointFolder = None,
    checkpoint_every: opt.CheckpointEvery = 30.0,
    keep_partial: opt.KeepPartial = False,
    sep: opt.Sep = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = None,
    na: opt.Na = None,
    sheet: opt.Sheet = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fit a model to the known values of IN, to predict and report with."""
    from bayesring.command.workflows import Reading, fit_file

    summary = Where(scheduler, local_cluster).instead_of(fit_file)(
        source,
        _required(output, False),
        modes=opt.names_in(modes),
        value=value,
        likelihood=likelihood,
        rank=opt.rank_in(rank),
        order=opt.order_in(order),
        features=opt.features_in(features),
        share=opt.share_in(share),
        inference=inference,
        chains="auto" if chains is None else chains,
        draws=opt.length_in(draws),
        warmup=opt.length_in(warmup),
        max_time=max_time,
        max_memory=max_memory,
        random_state=seed,
        n_jobs=jobs,
        progress=not quiet,
        safety=_safety(checkpoint, checkpoint_every, keep_partial, force),
        reading=Reading(opt.dialect_of(sep, decimal, encoding, na, sheet)),
    )
    show(summary, as_json, quiet, output)
    if summary["interrupted"]:
        sys.exit(INTERRUPTED)


@app.command()
@interruptible
def predict(
    model: opt.ModelFile,
    source: opt.Source,
    output: opt.Output = None,
    level: opt.Level = 0.9,
    scheduler: Scheduler = None,
    local_cluster: LocalCluster = None,
    sep: opt.Sep = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = None,
    sheet: opt.Sheet = None,
    safe_cells: opt.SafeCells = False,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Predict the cells that IN lists: its keys with mean, std, lower and upper."""
    from bayesring.command.judged import predict_file

    target = _required(output, as_json)
    dialect = opt.dialect_of(sep, decimal, encoding, None, sheet)
    found = Where(scheduler, local_cluster).instead_of(predict_file)(
        model, source, target, level=level, safe_cells=safe_cells, dialect=dialect, force=force
    )
    show(found, as_json, quiet, output)


@app.command()
@interruptible
def forecast(
    model: opt.ModelFile,
    steps: Annotated[int, typer.Argument(metavar="STEPS", help="How many labels to go on.")],
    output: opt.Output = None,
    mode: Annotated[
        str | None, typer.Option(help="Which mode goes on, if several are ordered.")
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(metavar="IN", help="Labels of the other modes to forecast; all if left out."),
    ] = None,
    level: opt.Level = 0.9,
    sep: opt.Sep = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = None,
    sheet: opt.Sheet = None,
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
        dialect=opt.dialect_of(sep, decimal, encoding, None, sheet),
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
def compare(
    models: Annotated[list[str], typer.Argument(metavar="MODELS", help="Files that fit wrote.")],
    on: Annotated[str, typer.Option(metavar="IN", help="Values that no model was fitted to.")],
    sep: opt.Sep = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = None,
    na: opt.Na = None,
    sheet: opt.Sheet = None,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Compare models by the log score of held-out values, with the error of the difference."""
    from bayesring.command.judged import compare_files

    dialect = opt.dialect_of(sep, decimal, encoding, na, sheet)
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


def _safety(checkpoint: str | None, every: float, partial: bool, force: bool) -> Any:
    """Checkpoint and interrupt settings; also sets what `main` says about resuming."""
    from bayesring.command.workflows import Safety
    from bayesring.fitting import Keep

    if checkpoint is not None:
        ending.go_on = f" Run the same command again to resume from {checkpoint}."
    return Safety(Keep(checkpoint, every), partial, force)


def _required(output: str | None, as_json: bool) -> str:
    if output is None:
        raise ValueError("an output file is required: name it with -o.")
    if output == "-" and as_json:
        raise ValueError("--json and -o - would both write to standard output; choose one.")
    return output


def main() -> None:
    """Entry point: errors become one sentence and exit code 2, interrupts exit code 130."""
    ending.run(app)
