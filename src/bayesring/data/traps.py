"""What looks wrong with data before they are fitted: the traps that most tables fall into.

Each check has a cause that can be named, and is silent on data that are merely irregular: sparse,
heavy-tailed, sampled with replacement, with a long tail of rare labels. `tests/test_traps.py` holds
each of them to that, on random tables and on the public data sets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.data.cellnumbers import cell_numbers
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations
from bayesring.model.types import FloatArray, IntArray
from bayesring.wording import as_text, shown

FEW = 20
"""Values below which nothing but codes, labels and constants is looked at."""
MOST_ROWS = 5_000_000
"""Rows above which repeated cells are not counted."""
PIECE = 1 << 16
"""Rows that are looked up at a time."""
CODES = (
    *(-9999.9, -999.9, -99.9, 99.9, 999.9, 9999.9),
    *(-99999.0, -9999.0, -999.0, -99.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, -999999.0),
    *(-8888.0, -888.0, -88.0, -32768.0, 32767.0, 1e20, 1e30, -1e30, 9.969209968386869e36),
)
"""Numbers that stand for a missing value in files of many programs."""
REPEATED = 1 / 3
"""Share of rows in a cell that has one already, from which a mode may have been left out."""
WITHIN = 0.5
"""Variance within cells, over that of all values, from which repeats do not look like repeats of
one measurement."""
STRAY = 0.05
"""Share of rows that repeat a cell up to which they look like mistakes."""
TAIL, TOPS, CHANCE = 20, 3, 1e-5
"""Values that say how long a tail is; values that may lie beyond it; and probability of a gap
below which it is not left to the tail."""
MANY, OTHERS = 20, 5
"""Values that every other label has, and number of other labels, if one with a single value is
worth a warning."""
RARE = 0.05
"""Share of labels with a single value up to which they are worth it."""
ERRORS = 4.5
"""Standard errors by which numbers of values must be more equal than by chance."""
LOOK_ALIKE = 3
"""Labels that must all look alike to be told."""
DATE = re.compile(
    r"[0-3]?[0-9]([./-])[0-3]?[0-9]\1(1[6-9]|2[0-2])[0-9]{2}"
    r"|(1[6-9]|2[0-2])[0-9]{2}([./])[0-1]?[0-9]\4[0-3]?[0-9]"
)
"""Days as people write them, but for 2024-01-31, which is read as a day."""
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
VARIANTS = (str.islower, str.isupper, str.istitle)
"""How the same word is written by different people; an identifier in mixed case is not."""


class DataWarning(UserWarning):
    """Something in the data looks wrong."""


def summarise_data(data: Observations, labels: Labels) -> str:
    """One line on what there is to fit."""
    modes = " x ".join(
        f"{name} ({size:,})" for name, size in zip(labels.names, data.shape, strict=True)
    )
    n, cells = len(data.values), float(prod(data.shape))
    low, high = float(np.min(data.values)), float(np.max(data.values))
    sites = [(name, own) for name, own in zip(labels.names, labels.sites, strict=False) if own]
    placed = "".join(f" Places of {name!r} {own.words}." for name, own in sites)
    return (
        f"{modes}: {n:,} value{'s' * (n != 1)} for {cells:,.0f} cells, {100 * n / cells:.3g} %, "
        f"from {low:.4g} to {high:.4g}.{placed}"
    )


def find_traps(data: Observations, labels: Labels, known: bool = False) -> list[str]:
    """Sentences on what looks wrong; `known` if there is one on values far off already."""
    values = () if known else _of_values(data)
    counts = [
        np.bincount(column, minlength=size)
        for column, size in zip(data.coords.T, data.shape, strict=True)
    ]
    return [*traps_of_labels(labels, counts), *values, *_of_repeats(data, labels)]


def traps_of_labels(labels: Labels, counts: Sequence[IntArray]) -> Iterator[str]:
    """Sentences on labels that look wrong, given how many values each of a mode's labels has."""
    for name, levels, own in zip(labels.names, labels.levels, counts, strict=True):
        if levels is not None:
            if len(levels) == 1:
                yield (
                    f"{name!r} has one label only, {as_text(levels[0])}, and tells nothing apart: "
                    "leave it out."
                )
            if levels.dtype.kind == "U":
                yield from _alike(levels, name)
                yield from _of_another_kind(levels, name)
        yield from _single(own, levels, name)


def _alike(levels: NDArray[Any], name: str) -> Iterator[str]:
    """Labels that differ in spaces, or in case, as the same word does by mistake."""
    seen: dict[str, str] = {}
    pairs = []
    for text in levels.tolist():
        plain = " ".join(unicodedata.normalize("NFKC", text).split())
        other = seen.setdefault(plain.casefold(), text)
        if other == text:
            continue
        spaces = " ".join(unicodedata.normalize("NFKC", other).split()) == plain
        words = len(plain) >= 3 and all(
            any(is_variant(each.strip()) for is_variant in VARIANTS) for each in (text, other)
        )
        if spaces or words:
            pairs.append((other, text))
    if pairs:
        one, other = pairs[0]
        yield (
            f"{len(pairs):,} label{'s' * (len(pairs) != 1)} of {name!r} "
            f"differ{'s' * (len(pairs) == 1)} from another only in spaces or case, such as "
            f"{shown(one)} and {shown(other)}: they are taken as different."
        )


def _of_another_kind(levels: NDArray[Any], name: str) -> Iterator[str]:
    """Labels that are text, but all look like dates, or like numbers with a decimal comma."""
    texts = [text.strip() for text in levels.tolist()]
    if len(texts) >= LOOK_ALIKE and all(DATE.fullmatch(text) for text in texts):
        yield (
            f"Labels of {name!r}, such as {shown(texts[0])}, look like dates but are text, which "
            "has no order: write them as 2024-01-31, or as times."
        )
    if len(texts) >= LOOK_ALIKE and all(DECIMAL_COMMA.fullmatch(text) for text in texts):
        yield (
            f"Labels of {name!r}, such as {shown(texts[0])}, look like numbers with a decimal "
            "comma but are text: make them numbers."
        )


def _single(counts: IntArray, levels: NDArray[Any] | None, name: str) -> Iterator[str]:
    """A label with one value, where all others have many: misspelt, perhaps."""
    single = np.flatnonzero(counts == 1)
    others = counts[counts > 1]
    if not len(single) or len(single) > max(1, RARE * len(counts)) or len(others) < OTHERS:
        return
    if others.min() < max(MANY, 0.5 * np.median(others)):
        return  # some labels are just rare
    label = single[0] if levels is None else levels[single[0]]
    yield (
        f"{len(single):,} label{'s' * (len(single) != 1)} of {name!r}, such as {as_text(label)}, "
        f"ha{'ve' if len(single) != 1 else 's'} a single value, while every other has at least "
        f"{others.min():,}: is it misspelt? Its predictions rest on the others."
    )


def _of_values(data: Observations) -> Iterator[str]:
    values = np.asarray(data.values, dtype=float)
    if data.given.censored is not None:
        values = values[~data.given.censored]
    if not len(values):
        return
    ordered = np.sort(values)
    if ordered[0] == ordered[-1]:
        if len(ordered) > 1:
            yield f"All {len(ordered):,} values are {ordered[0]:g}: there is nothing to learn."
        return
    code = _code(ordered)
    if code is not None:
        times = int(np.count_nonzero(ordered == code))
        yield (
            f"{times:,} value{'s are' if times != 1 else ' is'} {code:g}, "
            f"{_unlike(code, ordered)}: if that stands for a missing value, make it one."
        )
        return
    stray = None if len(ordered) < FEW else _far(ordered)
    if stray is not None:
        row = int(np.argmax(values == stray))
        where = f"row {row:,}" if len(data.values) == len(values) else "one row"
        yield (
            f"The value {stray:.6g} in {where} of the known ones is far outside the rest: a slip, "
            "perhaps, of the decimal point."
        )


def _code(ordered: FloatArray) -> float | None:
    """A code for missing values that is the smallest or largest, with a gap wider than the rest.

    Or a negative one, where all other values are zero or more.
    """
    for end in (0, -1):
        code = float(ordered[end])
        rest = ordered[ordered != code]
        if code not in CODES or len(np.unique(rest)) < 2:
            continue
        gap = rest[0] - code if end == 0 else code - rest[-1]
        if gap > rest[-1] - rest[0] or code < 0 <= rest[0]:
            return code
    return None


def _unlike(code: float, ordered: FloatArray) -> str:
    """How a code differs from the other values."""
    rest = ordered[ordered != code]
    wide = max(rest[0] - code, code - rest[-1]) > rest[-1] - rest[0]
    return "far from all others" if wide else "while all others are zero or more"


def _far(ordered: FloatArray) -> float | None:
    """A value at either end that lies much farther out than the tail there lets expect.

    Fewer than 48 values cannot tell: of so few, a heavy tail leaves one as far out now and then.

    If a tail falls by a power law, of any exponent, then i log(x_i / x_{i+1}) of its distances
    x_1 > x_2 > ... from the median are independent and exponential with one mean; lighter tails
    have smaller gaps. The mean is estimated from the values after the gap.
    """
    median = float(np.median(ordered))
    for end in (1, -1):
        distances = end * (ordered[::-end][: TAIL + TOPS + 1] - median)
        if len(distances) <= TAIL + TOPS or distances[-1] <= 0:
            continue
        if len(np.unique(distances)) < 0.75 * len(distances):
            continue  # too few different values to know the tail by
        gaps = np.arange(1, len(distances)) * -np.diff(np.log(distances))
        for place in reversed(range(TOPS)):
            usual = float(np.mean(gaps[place + 1 :]))
            ratio = gaps[place] / max(usual, 1e-12)
            count = len(gaps) - place - 1
            if (1 + ratio / count) ** -count < CHANCE / TOPS:
                return float(median + end * distances[0])
    return None


def _of_repeats(data: Observations, labels: Labels) -> Iterator[str]:
    """Cells with several values: a mode left out, or a few mistakes."""
    n, shape = len(data.values), data.shape
    if not FEW <= n <= MOST_ROWS or data.given.weight is not None:
        return
    numbers = cell_numbers(data.coords, shape)
    again = _seen_again(numbers)
    repeats = len(again)
    if not repeats:
        return
    chance = _by_chance(data)
    # of few repeats only their own rows, since a sort of all rows by two keys takes much memory
    rows = np.arange(n) if repeats > REPEATED * n else _rows_among(numbers, np.unique(again))
    order = rows[np.lexsort([data.values[rows], numbers[rows]])]
    cells, values = numbers[order], np.asarray(data.values[order], dtype=float)
    starts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    sizes = np.diff(np.append(starts, len(order)))
    last = starts + sizes - 1
    differ = np.flatnonzero(values[starts] != values[last])
    if repeats > REPEATED * n:
        within = values - np.repeat(np.add.reduceat(values, starts) / sizes, sizes)
        share = float(np.sum(within**2)) / repeats / max(float(np.var(values)), 1e-300)
        whole = bool(np.all(values % 1 == 0))
        if (repeats > 2 * chance or _is_regular(sizes)) and share > WITHIN and not whole:
            yield (
                f"There are {n:,} values for {len(starts):,} cells, and values of one cell differ "
                f"by as much as any: a key column may have been left out of {list(labels.names)}."
            )
        return
    unlike_chance = repeats < 0.2 * chance or chance < 0.1 * repeats
    if len(differ) and repeats <= STRAY * n and unlike_chance and chance_is_told(repeats, chance):
        first = starts[differ[0]]
        cell = data.coords[order[first]]
        told = [
            as_text(at if own is None else own[at])
            for own, at in zip(labels.levels, cell, strict=True)
        ]
        yield (
            f"{len(differ):,} cell{'s have' if len(differ) != 1 else ' has'} several rows with "
            f"different values, such as {' / '.join(told)} with {values[first]:g} and "
            f"{values[last[differ[0]]]:g}: they are taken as repeated measurements."
        )


def _seen_again(numbers: IntArray) -> IntArray:
    """The numbers that are there again, each as often as it is after the first time."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[1:][ordered[1:] == ordered[:-1]])


def _rows_among(numbers: IntArray, few: IntArray) -> IntArray:
    """Where numbers are that are among a few, which are sorted."""
    found = []
    for first in range(0, len(numbers), PIECE):
        part = numbers[first : first + PIECE]
        places = np.minimum(np.searchsorted(few, part), len(few) - 1)
        found.append(first + np.flatnonzero(few[places] == part))
    return np.concatenate(found)


def _is_regular(sizes: IntArray) -> bool:
    """Whether cells have more equal numbers of values than if rows were drawn at random.

    Then the number of a cell that has any is a Poisson variable, but never zero.
    """
    mean, variance = float(np.mean(sizes)), float(np.var(sizes))
    rate = mean
    for _ in range(100):
        rate = mean * -np.expm1(-rate)
    expected = mean * (1 + rate - mean)
    return bool(variance < min(0.5, 1 - ERRORS * np.sqrt(2 / len(sizes))) * expected)


def chance_is_told(repeats: int, chance: float) -> bool:
    """Whether the number of repeats differs from that of rows drawn at random, beyond chance."""
    return abs(repeats - chance) > 4 * sqrt(max(chance, 0.05))


def _by_chance(data: Observations) -> float:
    """Rows that would repeat a cell if labels were drawn independently, each as often as it is."""
    n = len(data.values)
    same = 1.0
    for mode, size in enumerate(data.shape):
        counts = np.bincount(data.coords[:, mode], minlength=size)
        same *= float(np.sum((counts / n) ** 2))
    pairs = 0.5 * n * (n - 1) * same
    # of that many pairs, if there are many, several fall into one cell
    cells = 1 / same
    distinct = cells * -np.expm1(n * np.log1p(-1 / cells)) if cells > 1 else 1.0
    return float(max(min(pairs, n - distinct), 0.0))
