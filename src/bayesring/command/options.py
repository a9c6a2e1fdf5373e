"""The options of commands, with their help."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any

import typer

show_tracebacks = False
"""Whether --debug was given."""


def _debug(wanted: bool) -> None:
    global show_tracebacks
    show_tracebacks = show_tracebacks or wanted


def names_in(text: str | None) -> list[str] | None:
    """Names between commas."""
    return None if text is None else [name.strip() for name in text.split(",")]


def features_in(texts: list[str] | None) -> dict[str, str] | None:
    """Files or columns by the mode that they describe."""
    if not texts:
        return None
    for text in texts:
        if not all(text.partition("=")):
            raise ValueError(f"--features must be MODE=FILE, got {text!r}.")
    found = {text.partition("=")[0]: text.partition("=")[2] for text in texts}
    if len(found) < len(texts):
        raise ValueError(f"--features must name every mode once, got {' and '.join(texts)}.")
    return found


def share_in(texts: list[str] | None) -> list[tuple[str, ...]] | None:
    """Pairs of modes with the same labels, some of them with the word symmetric."""
    if not texts:
        return None
    found = [tuple(part.strip() for part in text.split("=")) for text in texts]
    for text, pair in zip(texts, found, strict=True):
        if not all(pair) or len(pair) < 2 or pair[2:] not in ((), ("symmetric",)):
            raise ValueError(f"--share must be MODE=MODE or MODE=MODE=symmetric, got {text!r}.")
    return found


def order_in(text: str) -> str | list[str] | dict[str, bool | float] | None:
    """Modes that are ordered: auto, none, or a list; with periods, a mapping."""
    if text in ("auto", "none"):
        return "auto" if text == "auto" else None
    names = names_in(text)
    pairs = [name.rpartition(":") for name in names or ()]
    if not any(name and _is_number(period) for name, _, period in pairs):
        return names
    found: dict[str, bool | float] = {}
    for whole, (name, _, period) in zip(names or (), pairs, strict=True):
        if name and _is_number(period):
            found[name] = float(period)
        else:
            found[whole] = True
    return found


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def rank_in(text: str) -> str | int | tuple[int, ...]:
    """Return "auto", a number, or one number per bond."""
    numbers = text.split(",")
    if not all(number.strip().isdigit() for number in numbers):
        return text
    return int(text) if len(numbers) == 1 else tuple(map(int, numbers))


def length_in(text: str) -> str | int:
    """Return "auto" or a number of scans; anything else is refused by the estimator."""
    return int(text) if text.removeprefix("-").isdigit() and text.isascii() else text


def mask_in(text: str | None) -> str | list[str] | None:
    """One mode, or several."""
    names = names_in(text)
    return names[0] if names is not None and len(names) == 1 else names


Source = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="CSV, TSV, Parquet, Arrow, XLSX, NPY, NPZ, NetCDF or Zarr; a folder or a quoted "
        "pattern of tables; - for CSV on stdin.",
    ),
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="File that fit wrote.")]
Output = Annotated[str | None, typer.Option("--output", "-o", help="File to write; - for stdout.")]
Force = Annotated[
    bool, typer.Option("--force", "-f", help="Replace a file that bayesring did not write.")
]
Modes = Annotated[str | None, typer.Option(help="Key columns of a table, between commas.")]
Value = Annotated[str | None, typer.Option(help="Column of values, or name of the array.")]
Sep = Annotated[
    str | None,
    typer.Option(help="Separator of CSV, such as ; or tab; seen from the header if left out."),
]
Decimal = Annotated[str, typer.Option(help="Decimal mark of CSV: . or a comma.")]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of CSV, such as latin-1; UTF-8 if left out.")
]
Na = Annotated[
    str | None,
    typer.Option(
        help="Words or numbers for a missing value, between commas, besides the usual ones: "
        "-999,missing for example."
    ),
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a spreadsheet that has several.")]
Mask = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="Leave gaps where nothing is known along this mode, or these: land, say, by time.",
    ),
]
Likelihood = Annotated[
    str,
    typer.Option(
        help="auto, gaussian, student-t, negative-binomial, poisson, ordinal or bernoulli; auto "
        "looks at the values."
    ),
]
Inference = Annotated[
    str,
    typer.Option(help="gibbs, or online-em: quick on large data, Parquet larger than memory."),
]
Level = Annotated[float, typer.Option(help="Share of hidden values that intervals should cover.")]
Point = Annotated[
    str, typer.Option(help="mean or median: the estimate, and the name of its column.")
]
Rank = Annotated[str, typer.Option(help="auto, one number, or one per bond between commas.")]
Chains = Annotated[
    int | None, typer.Option(help="Independent chains, or rings of online EM; chosen if left out.")
]
Draws = Annotated[str, typer.Option(help="Scans kept per chain, or auto: until they suffice.")]
Warmup = Annotated[
    str, typer.Option(help="Scans thrown away per chain, or auto: until the chains stand still.")
]
MaxTime = Annotated[
    float | None, typer.Option(help="Seconds after which chains end, as soon as all have draws.")
]
MaxMemory = Annotated[int, typer.Option(help="Bytes that the kept draws may take.")]
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
        "--order",
        help="Modes that change gradually, day,depth for example; hour:24 for one that comes "
        "round after 24; auto or none.",
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
Share = Annotated[
    list[str] | None,
    typer.Option(
        "--share",
        metavar="MODE=MODE",
        help="Modes with the same labels, sender=receiver for example; with =symmetric if cells "
        "and their mirror images are one; repeatable.",
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Time, area or population that a count is of: a column of IN."
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="How many equal rows a row stands for: a column of IN."),
]
ValueError_ = Annotated[
    str | None,
    typer.Option(
        "--value-error",
        metavar="COLUMN",
        help="Standard deviation with which a value was measured: a column of IN.",
    ),
]
ValueLower = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Lower ends of missing values, a detection limit say."),
]
ValueUpper = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Upper ends of missing values.")
]
SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells",
        help="In CSV, put ' before text that a spreadsheet would run: =, +, - or @ first.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary, or an error, as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Debug = Annotated[bool, typer.Option("--debug", callback=_debug, help="Show the traceback.")]


def dialect_of(
    sep: str | None, decimal: str, encoding: str | None, na: str | None, sheet: str | None = None
) -> Any:
    """How the text of an input is to be read."""
    from bayesring.data.dialects import Dialect

    return Dialect(sep, decimal, encoding, tuple(names_in(na) or ()), sheet).checked()
