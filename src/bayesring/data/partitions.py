"""Data in partitions that are never together in one place: what is done with one of them.

1. `rowparts`: a partition is read, and its keys are coded by its own labels.
2. `survey_part`: its labels and counts, and sums of its values, go to whoever puts them together.
3. `coded`: the part in the labels and units of all, with or without what is held out.
4. `split`, `build`: the rows of a mode's blocks are picked from every part, sorted, and cut into
   the blocks that `bayesring.data.blocks` would make of the data as a whole.

All are pure functions, so a partition that is lost can be made again from its source.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.blocks import Block
from bayesring.data.extras import check_carried
from bayesring.data.gaps import known_cells
from bayesring.data.labels import KINDS, Zone, as_keys, encode, extend
from bayesring.data.moments import Tally
from bayesring.data.observations import ABSENT, Observations, in_order
from bayesring.data.rowparts import RowPart
from bayesring.data.splitting import HoldOutRule
from bayesring.kernels import sorting
from bayesring.likelihoods import Likelihood
from bayesring.model.ring import ring_order
from bayesring.model.types import Given, IntArray


class PartSurvey(NamedTuple):
    """What is to be known of a part, or of several together."""

    levels: tuple[NDArray[Any], ...]
    """Sorted labels of each mode."""
    counts: tuple[IntArray, ...]
    """Observations of each label."""
    zones: tuple[Zone | None, ...]
    tally: Tally
    """Of all values."""
    seen: Tally
    """Of values that were observed themselves."""
    fields: frozenset[str]
    """Fields of `Given` that some rows have."""
    n_rows: int
    """Rows with or without a value."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of labels of each mode."""
        return tuple(len(each) for each in self.counts)


def survey_part(part: RowPart) -> PartSurvey:
    """Labels with their counts, and sums of the values."""
    counts = tuple(
        np.bincount(column, minlength=len(own)).astype(np.int64)
        for column, own in zip(part.columns, part.levels, strict=True)
    )
    tally, censored = Tally.of(part.values, part.given.exposure), part.given.censored
    seen = tally if censored is None else Tally.of(part.values[~censored])
    fields = frozenset(name for name, own in part.given._asdict().items() if own is not None)
    return PartSurvey(part.levels, counts, part.zones, tally, seen, fields, part.n_rows)


def joint_survey(parts: Sequence[PartSurvey], names: Sequence[str]) -> PartSurvey:
    """Put surveys together: the labels are those of all, in their order."""
    tally, seen, fields = Tally(), Tally(), frozenset[str]()
    for part in parts:
        tally, seen, fields = tally.plus(part.tally), seen.plus(part.seen), fields | part.fields
    filled = [part for part in parts if part.n_rows] or parts[:1]
    levels, counts = [], []
    for mode, name in enumerate(names):
        own = joint_levels([part.levels[mode] for part in filled], name)
        totals = np.zeros(len(own), dtype=np.int64)
        for part in filled:
            if len(own):
                totals[encode(part.levels[mode], own)] += part.counts[mode]
        levels.append(own)
        counts.append(totals)
        check_zones([part.zones[mode] for part in filled if len(part.levels[mode])], own, name)
    n_rows = sum(part.n_rows for part in parts)
    return PartSurvey(tuple(levels), tuple(counts), filled[0].zones, tally, seen, fields, n_rows)


def check_zones(zones: Sequence[Zone | None], levels: NDArray[Any], name: str) -> None:
    """Refuse times of which some have a zone and some have none."""
    if levels.dtype.kind == "M" and len({zone is None for zone in zones}) > 1:
        raise ValueError(
            f"column {name!r} holds times with a time zone in some partitions and without one in "
            "others; give all with a zone or all without."
        )


def squares_of(part: RowPart, tally: Tally, seen: Tally) -> tuple[int, int]:
    """Sums of squared distances from the mean of all values, and of those that were observed."""
    values, censored = part.values, part.given.censored
    of_all = tally.squares(values)
    return of_all, of_all if censored is None else seen.squares(values[~censored])


def joint_levels(parts: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    """The sorted distinct labels of all parts."""
    kinds = {KINDS[each.dtype.kind] for each in parts}
    if len(kinds) > 1:
        raise ValueError(
            f"column {name!r} holds {' in some partitions and '.join(sorted(kinds))} in others; a "
            "column must have one type in all."
        )
    whole = parts[0]
    types = {each.dtype.kind for each in parts}
    if len(types) > 1:  # integers and floats: only if they stay what they are
        for each in parts[1:]:
            whole = np.unique(extend(whole, each, name))
    else:
        whole = np.unique(np.concatenate(parts))
    return as_keys(whole, name)


class JointLabels(NamedTuple):
    """What all parts have in common."""

    names: tuple[str, ...]
    levels: tuple[NDArray[Any], ...]
    fields: frozenset[str]
    """Fields of `Given` that some observations have."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of labels of each mode."""
        return tuple(len(each) for each in self.levels)


class Wanted(NamedTuple):
    """Units of the values, and which observations are wanted."""

    location: float = 0.0
    scale: float = 1.0
    rule: HoldOutRule | None = None
    """What is held out; None for nothing."""
    held: bool = False
    """Whether that is wanted which is held out, or the rest."""


def coded(parts: Sequence[RowPart], coding: JointLabels, choice: Wanted) -> Observations:
    """Parts in the labels of all, in standard units, with some or all of their observations."""
    return joined([_coded(part, coding, choice) for part in parts])


def _coded(part: RowPart, coding: JointLabels, choice: Wanted) -> Observations:
    n, (location, scale, *_) = part.columns.shape[1], choice
    columns = np.empty((len(coding.names), n), dtype=np.int32)
    for mode, name in enumerate(coding.names if n else ()):
        codes = encode(part.levels[mode], coding.levels[mode])
        if codes.max() == len(coding.levels[mode]):
            raise ValueError(f"column {name!r} has changed while it was read: it has new labels.")
        columns[mode] = codes[part.columns[mode]]
    with np.errstate(over="ignore"):  # only before units are known, when nobody looks at values
        values = ((part.values.astype(float) - location) / scale).astype(np.float32)
    given = _complete(part.given, coding.fields, n).in_units(location, scale)
    return wanted_of(Observations(columns.T, values, coding.shape, given=given), choice)


def wanted_of(data: Observations, choice: Wanted) -> Observations:
    """The observations that are wanted."""
    given, rule, held = data.given, choice.rule, choice.held
    if rule is None:
        return data
    chosen = rule.chooses(data.coords)
    if given.censored is not None:  # what was not observed cannot judge
        chosen &= ~given.censored
    return _some(data, chosen if held else ~chosen)


def known_bits(data: Observations) -> NDArray[np.uint8]:
    """Which cells of the tensor are known, eight to a byte."""
    return np.packbits(known_cells(data))


def _some(data: Observations, chosen: NDArray[Any]) -> Observations:
    columns = np.ascontiguousarray(data.coords.T[:, chosen])
    return data._replace(coords=columns.T, values=data.values[chosen], given=data.given.at(chosen))


def _complete(given: Given, fields: frozenset[str], n: int) -> Given:
    """The fields that some observations have anywhere, with what stands for them if absent."""
    wanted: Any = {
        name: np.broadcast_to(absent, n) if own is None else own
        for (name, own), absent in zip(given._asdict().items(), ABSENT, strict=True)
        if name in fields and absent is not None
    }
    return Given(**wanted)


def joined(parts: Sequence[Observations]) -> Observations:
    """Observations of several parts."""
    if len(parts) == 1:
        return parts[0]
    columns = np.concatenate([each.coords.T for each in parts], axis=1)
    fields: Any = zip(*(each.given for each in parts), strict=True)
    given = Given(*(None if own[0] is None else np.concatenate(own) for own in fields))
    values = np.concatenate([each.values for each in parts])
    return Observations(columns.T, values, parts[0].shape, given=given)


class Border(NamedTuple):
    """Where the blocks of a mode are divided: a slice, or a cell within a slice that is cut."""

    slice: int
    """The first slice that lies, at least in part, after the border."""
    cell: tuple[int, ...] = ()
    """Its first cell after the border: indices of the other modes, in order; () for all."""
    before: int = 0
    """Observations of that cell that lie before the border."""


def split(data: Observations, mode: int, borders: Sequence[Border]) -> list[Observations]:
    """The rows between borders, one piece more than there are borders.

    Rows of a cell that a border divides are in the pieces on both sides.
    """
    own = data.coords[:, mode]
    firsts = np.array([border.slice for border in borders], dtype=own.dtype)
    low = np.searchsorted(firsts, own, side="right").astype(np.int32)
    high = low.copy()
    for number, border in enumerate(borders):
        if border.cell:  # its slice lies on both sides
            rows = np.flatnonzero(own == border.slice)
            order = _compared(data, mode, rows, border.cell)
            high[rows[order < 0]] = np.minimum(high[rows[order < 0]], number)
            low[rows[order <= 0]] = np.minimum(low[rows[order <= 0]], number)
    starts = sorting.slice_starts(low, len(borders) + 1)
    order, rows = np.empty_like(low), np.arange(len(low), dtype=np.int32)
    sorting.sort_by(low, starts, rows, order)
    twice = np.flatnonzero(high > low)
    pieces = []
    for number, (begin, end) in enumerate(pairwise(starts)):
        also = twice[(low[twice] < number) & (high[twice] >= number)]
        pieces.append(_some(data, np.concatenate([order[begin:end], also])))
    return pieces


def _compared(data: Observations, mode: int, rows: IntArray, cell: Sequence[int]) -> IntArray:
    """Whether rows come before a cell of their slice (-1), are in it (0), or come after (1)."""
    order = np.zeros(len(rows), dtype=np.int8)
    for other, index in zip(_others(mode, len(data.shape)), cell, strict=True):
        found = data.coords[rows, other]
        order[order == 0] = np.sign(found.astype(np.int64) - index)[order == 0]
    return order


def _others(mode: int, order: int) -> list[int]:
    """The other modes, in the order in which the rows of a slice are sorted."""
    return [other for other in range(order) if other != mode]


def count_within(
    data: Observations, mode: int, wanted: Sequence[tuple[int, tuple[int, ...]]]
) -> list[tuple[IntArray, IntArray]]:
    """Counts of the next index among rows of a slice whose first indices are known.

    For every (slice, indices) the indices of the next mode that occur, and how often.
    """
    others = _others(mode, len(data.shape))
    found: list[tuple[IntArray, IntArray]] = []
    for place, known in wanted:
        rows = np.flatnonzero(data.coords[:, mode] == place)
        for other, index in zip(others, known, strict=False):
            rows = rows[data.coords[rows, other] == index]
        found.append(np.unique(data.coords[rows, others[len(known)]], return_counts=True))
    return found


def next_index(counts: Sequence[tuple[IntArray, IntArray]], before: int) -> tuple[int, int]:
    """The index in which row `before` of some rows lies, and the rows before it of that index."""
    indices = np.concatenate([each for each, _ in counts])
    found, places = np.unique(indices, return_inverse=True)
    totals = np.zeros(len(found), dtype=np.int64)
    np.add.at(totals, places, np.concatenate([each for _, each in counts]))
    ends = np.cumsum(totals)
    place = int(np.searchsorted(ends, before, side="right"))
    return int(found[place]), before - int(ends[place] - totals[place])


def build(
    pieces: Sequence[Observations | Sequence[Observations]],
    heads: Sequence[Block],
    skip: int,
    value_type: str,
    after: Any = None,
) -> tuple[Block, ...]:
    """The blocks with these `heads`, from the rows of all parts; the first `skip` are not theirs.

    `heads` are blocks without observations, see `bayesring.data.blocks.heads_of_mode`. This is done
    `after` something else that is not looked at.
    """
    flat = [own for each in pieces for own in ([each] if isinstance(each, Observations) else each)]
    data, mode = in_order(joined(flat)), heads[0].mode
    own = np.ascontiguousarray(data.coords.T[mode]) - np.int32(heads[0].first)
    starts = sorting.slice_starts(own, int(own.max(initial=0)) + 1)
    order, rows = np.empty_like(own), np.arange(len(own), dtype=np.int32)
    sorting.sort_by(own, starts, rows, order)
    values = data.values.astype(np.float32).astype(value_type, copy=False)
    del flat
    blocks, end = [], skip
    for head in heads:
        begin, end = end, end + int(head.bounds[-1])
        rows = order[begin:end]
        others = np.stack([data.coords.T[each][rows] for each in ring_order(mode, len(data.shape))])
        blocks.append(head._replace(others=others, values=values[rows], given=data.given.at(rows)))
    give_back()
    return tuple(blocks)


def give_back() -> None:
    """Return memory that many small arrays have left behind; the C library may not by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def together(parts: Sequence[tuple[Block, ...]]) -> tuple[Block, ...]:
    """The blocks of several parts, in order."""
    return tuple(block for part in parts for block in part)


def either(bits: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Bits that are set in any."""
    return np.asarray(np.bitwise_or.reduce(bits))


def raw(part: RowPart, coding: JointLabels) -> Observations:
    """A part in the labels of all, in the units of the data."""
    return _coded(part, coding, Wanted())._replace(values=part.values)


def check(part: RowPart, likelihood: Likelihood) -> None:
    """Raise an error for values that the likelihood cannot have."""
    try:
        likelihood.check(part.values)
        check_carried(part.given, likelihood)
    except ValueError as error:
        raise part.located(error) from None
