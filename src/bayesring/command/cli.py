"""The command line: parses, calls, exits."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bayesring.command.showing import console, show

app = typer.Typer(
    help="Bayesian completion of multiway data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
INTERRUPTED = 130
"""Exit code after Ctrl-C or SIGTERM, as in shells."""
show_tracebacks = False
go_on = ""
"""How to resume, said after an interrupt."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM; not a KeyboardInterrupt, because typer handles that itself."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Convert interrupts so that `main` can report them."""

    @wraps(command)
    def run(*arguments: Any, **named: Any) -> None:
        try:
            command(*arguments, **named)
        except KeyboardInterrupt as interrupt:
            raise Interrupted from interrupt

    return run


def _debug(wanted: bool) -> None:
    global show_tracebacks
    show_tracebacks = show_tracebacks or wanted


def _list(text: str | None) -> list[str] | None:
    """Names between commas."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _order(text: str) -> str | list[str] | None:
    """Modes that are ordered: auto, none, or a list."""
    return {"auto": "auto", "none": None}.get(text, _list(text))


def _features(texts: list[str] | None) -> dict[str, str] | None:
    """Files or columns by the mode that they describe."""
    if not texts:
        return None
    for text in texts:
        if not all(text.partition("=")):
            raise ValueError(f"--features must be MODE=FILE, got {text!r}.")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}


def _rank(text: str) -> str | int | tuple[int, ...]:
    """Return "auto", a number, or one number per bond."""
    numbers = text.split(",")
    if not all(number.strip().isdigit() for number in numbers):
        return text
    return int(text) if len(numbers) == 1 else tuple(map(int, numbers))


Source = Annotated[
    str,
    typer.Argument(
        metavar="IN", help="CSV, Parquet, Arrow, NPY, NPZ, NetCDF or Zarr; - for CSV on stdin."
    ),
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="File that fit wrote.")]
Output = Annotated[str | None, typer.Option("--output", "-o", help="File to write; - for stdout.")]
Modes = Annotated[str | None, typer.Option(help="Key columns of a table, between commas.")]
Value = Annotated[str | None, typer.Option(help="Column of values, or name of the array.")]
Likelihood = Annotated[
    str,
    typer.Option(
        help="auto, gaussian, student-t, negative-binomial, poisson, ordinal or bernoulli; auto "
        "looks at the values."
    ),
]
Level = Annotated[float, typer.Option(help="Share of hidden values that intervals should cover.")]
Rank = Annotated[str, typer.Option(help="auto, one number, or one per bond between commas.")]
Chains = Annotated[
    int | None, typer.Option(help="Independent chains, or rings of online EM; chosen if left out.")
]
Draws = Annotated[int, typer.Option(help="Scans kept per chain.")]
Warmup = Annotated[int, typer.Option(help="Scans thrown away per chain.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same file, byte for byte.")]
Jobs = Annotated[int | None, typer.Option(help="Threads; all cores if left out.")]
CheckpointFolder = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Folder for the state of the fit; the same command resumes from it.",
    ),
]
CheckpointEvery = Annotated[float, typer.Option(help="Seconds between two checkpoints.")]
KeepPartial = Annotated[
    bool,
    typer.Option("--keep-partial", help="If interrupted, write the result of the draws so far."),
]
Ordered = Annotated[
    str,
    typer.Option(
        "--order", help="Modes that change gradually, day,depth for example; auto or none."
    ),
]
FeatureFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="MODE=FILE",
        help="Table with a row per label of a mode, or columns of IN between commas; repeatable.",
    ),
]
SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells",
        help="In CSV, put ' before text that a spreadsheet would run: =, +, - or @ first.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Debug = Annotated[bool, typer.Option("--debug", callback=_debug, help="Show the traceback.")]


@app.callback()
def _root() -> None:
    """Bayesian completion of multiway data."""


@app.command()
@_interruptible
def complete(
    source: Source,
    output: Output = None,
    modes: Modes = None,
    value: Value = None,
    fill: Annotated[
        str, typer.Option(help="missing: rows without a value; all: also cells without a row.")
    ] = "missing",
    level: Level = 0.9,
    likelihood: Likelihood = "auto",
    model: Annotated[str | None, typer.Option(help="Also save the model, as fit does.")] = None,
    rank: Rank = "auto",
    order: Ordered = "auto",
    features: FeatureFiles = None,
    chains: Chains = None,
    draws: Draws = 200,
    warmup: Warmup = 300,
    seed: Seed = 0,
    jobs: Jobs = None,
    checkpoint: CheckpointFolder = None,
    checkpoint_every: CheckpointEvery = 30.0,
    keep_partial: KeepPartial = False,
    safe_cells: SafeCells = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show how the input is understood, and stop.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fill the missing values of IN, each with an error bar and an interval."""
    from bayesring.command.workflows import complete_file, preview_file

    if dry_run:
        found = preview_file(source, _list(modes), value, fill, likelihood)
        show(found._asdict(), as_json, quiet, output)
        return
    target = _required(output, as_json)
    summary = complete_file(
        source,
        target,
        modes=_list(modes),
        value=value,
        fill=fill,
        level=level,
        likelihood=likelihood,
        model=model,
        rank=_rank(rank),
        order=_order(order),
        features=_features(features),
        chains="auto" if chains is None else chains,
        draws=draws,
        warmup=warmup,
        random_state=seed,
        n_jobs=jobs,
        progress=not quiet,
        safety=_safety(checkpoint, checkpoint_every, keep_partial),
        safe_cells=safe_cells,
    )
    show(summary, as_json, quiet, output)
    if summary["interrupted"]:
        sys.exit(INTERRUPTED)


@app.command()
@_interruptible
def fit(
    source: Source,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Model file.")] = None,
    modes: Modes = None,
    value: Value = None,
    likelihood: Likelihood = "auto",
    rank: Rank = "auto",
    order: Ordered = "auto",
    features: FeatureFiles = None,
    inference: Annotated[
        str,
        typer.Option(help="gibbs, or online-em: quick on large data, Parquet larger than memory."),
    ] = "gibbs",
    chains: Chains = None,
    draws: Draws = 200,
    warmup: Warmup = 300,
    seed: Seed = 0,
    jobs: Jobs = None,
    checkpoint: CheckpointFolder = None,
    checkpoint_every: CheckpointEvery = 30.0,
    keep_partial: KeepPartial = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to the known values of IN, to predict and report with."""
    from bayesring.command.workflows import fit_file

    summary = fit_file(
        source,
        _required(output, False),
        modes=_list(modes),
        value=value,
        likelihood=likelihood,
        rank=_rank(rank),
        order=_order(order),
        features=_features(features),
        inference=inference,
        chains="auto" if chains is None else chains,
        draws=draws,
        warmup=warmup,
        random_state=seed,
        n_jobs=jobs,
        progress=not quiet,
        safety=_safety(checkpoint, checkpoint_every, keep_partial),
    )
    show(summary, as_json, quiet, output)
    if summary["interrupted"]:
        sys.exit(INTERRUPTED)


@app.command()
@_interruptible
def predict(
    model: ModelFile,
    source: Source,
    output: Output = None,
    level: Level = 0.9,
    safe_cells: SafeCells = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict the cells that IN lists: its keys with mean, std, lower and upper."""
    from bayesring.command.workflows import predict_file

    target = _required(output, as_json)
    found = predict_file(model, source, target, level=level, safe_cells=safe_cells)
    show(found, as_json, quiet, output)


@app.command()
@_interruptible
def report(
    model: ModelFile,
    output: Annotated[
        str, typer.Option("--output", "-o", help="HTML page to write.")
    ] = "report.html",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page on a model: its data, findings, checks, slices, and how to reproduce it."""
    from bayesring.command.workflows import report_file

    show(report_file(model, output, progress=not quiet), as_json, quiet, output)


@app.command()
@_interruptible
def compare(
    models: Annotated[list[str], typer.Argument(metavar="MODELS", help="Files that fit wrote.")],
    on: Annotated[str, typer.Option(metavar="IN", help="Values that no model was fitted to.")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare models by the log score of held-out values, with the error of the difference."""
    from bayesring.command.workflows import compare_files

    show(compare_files(models, on), as_json, False, None)


@app.command()
@_interruptible
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Which cells are known, and the chains.")] = 0,
    table: Annotated[
        str | None,
        typer.Option(help="Write a climate table with gaps to this file instead, to try with."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Complete a hyperspectral scene (145 x 145 x 200) from 1 % of its cells."""
    from bayesring.command.demo import check_demo, run_demo, summary, write_climate, write_demo

    if table is not None:
        n_rows, n_known = write_climate(table, seed)
        console.print(f"{table}: {n_rows:,} rows, of which {n_known:,} have a value.")
        return
    check_demo(out)
    console.print("Indian Pines, 145 x 145 pixels x 200 bands: 1 % of 4,205,000 cells known.")
    result, pictures, ring = run_demo(seed)
    write_demo(out, result, pictures, ring)
    grid = Table(show_header=False)
    for name, text in summary(result).items():
        grid.add_row("hidden cells in their 90 % interval" if name == "coverage" else name, text)
    console.print(grid)
    console.print(f"Pictures and report: {out}/completion.png, {out}/rank.png, {out}/report.html")


def _safety(checkpoint: str | None, every: float, partial: bool) -> Any:
    """Checkpoint and interrupt settings; also sets what `main` says about resuming."""
    from bayesring.command.workflows import Safety
    from bayesring.fitting import Keep

    global go_on
    if checkpoint is not None:
        go_on = f" Run the same command again to resume from {checkpoint}."
    return Safety(Keep(checkpoint, every), partial)


def _required(output: str | None, as_json: bool) -> str:
    if output is None:
        raise ValueError("an output file is required: name it with -o.")
    if output == "-" and as_json:
        raise ValueError("--json and -o - would both write to standard output; choose one.")
    return output


def main() -> None:
    """Entry point: errors become one sentence and exit code 2, interrupts exit code 130."""
    errors = Console(stderr=True, soft_wrap=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except (Exception, KeyboardInterrupt) as error:
        if show_tracebacks:
            traceback.print_exc()
        interrupted = isinstance(error, KeyboardInterrupt | Interrupted)
        expected = (ValueError, TypeError, OSError, ImportError, ArithmeticError, IndexError)
        if interrupted:
            sentence = f"interrupted; no result was written.{go_on}"
        elif isinstance(error, MemoryError):
            sentence = "there is not enough memory; fewer draws or a smaller rank need less."
        elif isinstance(error, expected):
            sentence = str(error)
        else:
            sentence = f"{error!r}, which is a fault of bayesring; --debug shows where."
        errors.print(f"error: {sentence}", markup=False, highlight=False)
        sys.exit(INTERRUPTED if interrupted else 2)
