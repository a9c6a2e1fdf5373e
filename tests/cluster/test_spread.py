"""Data in partitions become the very blocks, units and held-out cells of the data as a whole."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesring.data import observations
from bayesring.data.blocks import blocks_of_modes
from bayesring.data.inputs import observe
from bayesring.data.moments import moments_of
from bayesring.data.observations import standardised
from bayesring.data.rowparts import table_part
from bayesring.data.splitting import hold_out, rejoin
from bayesring.data.tables import Columns
from bayesring.engine import spread as module
from bayesring.engine.spread import shares, spread_over
from bayesring.model.types import Given
from tests.cluster.serial import Serial

MODES = ("a", "b", "c")
COLUMNS = Columns(MODES, "y")


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Values are stored in float32 from a few observations on, as they are on a cluster."""
    monkeypatch.setattr(observations, "COMPACT", 10)
    monkeypatch.setattr(module, "COMPACT", 10)


def table(rng, n, shape=(3, 7, 5), distinct=None):
    """A long table with text, numbers and dates as keys, equal rows among them."""
    values = rng.standard_normal(distinct or n)
    return pd.DataFrame(
        {
            "a": np.array([f"label {i}" for i in range(shape[0])])[rng.integers(shape[0], size=n)],
            "b": 10 * rng.integers(shape[1], size=n),
            "c": np.datetime64("2020-01-01") + rng.integers(shape[2], size=n),
            "y": values[rng.integers(len(values), size=n)],
        }
    )


def spread(frame, edges, extras=None, n_threads=3):
    """The table in partitions that end at `edges`."""
    ends = [0, *sorted(edges), len(frame)]
    parts = [
        table_part(frame.iloc[a:b], number, COLUMNS, extras or {})
        for number, (a, b) in enumerate(pairwise(ends))
    ]
    return spread_over(Serial(n_threads), lambda: parts, MODES, "y")[0]


def same_blocks(found, expected):
    assert len(found) == len(expected)
    for own, other in zip(found, expected, strict=True):
        for name in ("mode", "number", "first", "is_part"):
            assert getattr(own, name) == getattr(other, name)
        for name in ("bounds", "others", "values"):
            left, right = getattr(own, name), getattr(other, name)
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)
        for left, right in zip(own.given, other.given, strict=True):
            assert (left is None) == (right is None)
            if left is not None:
                np.testing.assert_array_equal(left, right)


def check_layout(frame, parted, extras=None, block_size=9):
    data, labels, _ = observe(frame, None, None, list(MODES), "y", extras or {})
    for own, other in zip(parted.coding.levels, labels.levels, strict=True):
        assert own.dtype == other.dtype
        np.testing.assert_array_equal(own, other)
    units = parted.moments.mean, parted.moments.deviation or 1.0
    laid = parted.standardised(*units).lay_out(block_size, [True, False, True])
    expected = blocks_of_modes(standardised(data, *units), block_size, [True, False, True])
    for groups, blocks in zip(laid, expected, strict=True):
        assert [head.number for heads, _ in groups for head in heads] == list(range(len(blocks)))
        same_blocks([block for _, own in groups for block in own], blocks)


@settings(max_examples=15)
@given(
    st.integers(12, 300),
    st.lists(st.integers(0, 300), max_size=5),
    st.integers(1, 9),
    st.integers(1, 6),
    st.integers(0, 2**32 - 1),
)
def test_blocks_are_those_of_the_whole(n, edges, n_threads, distinct, seed):
    rng = np.random.default_rng(seed)
    frame = table(rng, n, (1 + seed % 3, 4, 3), distinct)
    check_layout(frame, spread(frame, [min(e, n) for e in edges], n_threads=n_threads))


@pytest.mark.parametrize("n_threads", [1, 2, 5, 40])
def test_what_else_is_known_stays_with_its_rows(rng, n_threads):
    frame = table(rng, 200, distinct=3)
    frame["w"], frame["e"] = rng.integers(0, 3, 200), rng.random(200)
    frame["low"] = np.where(rng.random(200) < 0.2, 0.1, np.nan)
    frame.loc[~np.isnan(frame["low"]), "y"] = np.nan
    extras = {"sample_weight": "w", "value_error": "e", "value_lower": "low"}
    check_layout(frame, spread(frame, [3, 90], extras, n_threads), extras)


def test_moments_are_those_of_the_whole(rng):
    frame = table(rng, 500)
    frame["y"] *= 10.0 ** rng.integers(-9, 9, 500)
    frame["t"] = rng.random(500) + 0.1
    found = spread(frame, [0, 7, 7, 300], {"exposure": "t"})
    expected = moments_of(frame["y"].to_numpy(), frame["t"].to_numpy())
    assert found.moments == expected
    assert found.seen == expected._replace(exposure=found.seen.exposure)


@pytest.mark.parametrize("whole_fibres", [False, True])
def test_the_same_cells_are_held_out(rng, whole_fibres):
    frame = table(rng, 4000, (4, 30, 40))
    if whole_fibres:
        places = np.argwhere(np.broadcast_to(rng.random((30, 40)) < 0.6, (4, 30, 40)))
        frame = pd.DataFrame(rng.permutation(places), columns=list(MODES))
        frame["y"] = rng.standard_normal(len(frame))
    data = observe(frame, None, None, list(MODES), "y")[0]
    found = spread(frame, [500, 3000])
    units = found.moments.mean, found.moments.deviation
    rest, held = found.standardised(*units).hold_out(5)
    explored, expected = hold_out(standardised(data, *units), 5)
    assert held.pattern == expected.pattern
    assert (held.pattern.mode is not None) == whole_fibres
    np.testing.assert_array_equal(held.data.coords, expected.data.coords)
    np.testing.assert_array_equal(held.data.values, expected.data.values)
    assert held.data.values.dtype == expected.data.values.dtype
    for groups, blocks in zip(
        rest.lay_out(100, [True] * 3), blocks_of_modes(explored, 100), strict=True
    ):
        same_blocks([block for _, own in groups for block in own], blocks)
    again = rest.whole(held).lay_out(100, [True] * 3)
    for groups, blocks in zip(again, blocks_of_modes(rejoin(explored, expected), 100), strict=True):
        same_blocks([block for _, own in groups for block in own], blocks)


def test_partitions_without_rows_or_values(rng):
    frame = table(rng, 60)
    frame.loc[:19, "y"] = np.nan
    frame.loc[0, "a"] = "a label without a value"
    check_layout(frame, spread(frame, [0, 10, 20, 20, 60]))


def test_no_value_anywhere(rng):
    frame = table(rng, 20)
    frame["y"] = np.nan
    with pytest.raises(ValueError, match=r"value column 'y' holds no value in any of its 20 rows"):
        spread(frame, [7])


def test_a_bad_row_is_named_with_its_partition(rng):
    frame = table(rng, 60)
    frame.loc[41, "a"] = None
    with pytest.raises(ValueError, match=r"^Partition 1: column 'a' has no key in row 11"):
        spread(frame, [30])


def test_keys_of_different_kinds(rng):
    frame = table(rng, 60)
    parts = [
        table_part(each, 0, COLUMNS, {}) for each in (frame, frame.assign(b=frame["b"].astype(str)))
    ]
    with pytest.raises(ValueError, match="column 'b' holds numbers in some partitions and text"):
        spread_over(Serial(), lambda: parts, MODES, "y")


def test_gathered_rows_are_those_of_the_table(rng):
    frame = table(rng, 60)
    data = observe(frame, None, None, list(MODES), "y")[0]
    found = spread(frame, [30]).gathered()
    np.testing.assert_array_equal(found.coords, data.coords)
    np.testing.assert_array_equal(found.values, data.values)
    assert found.given == Given()


def test_shares_are_equal():
    runs = shares([5] * 256, 4)
    assert [run.stop - run.start for run in runs] == [64] * 4
    assert len(shares([1, 1], 9)) == 2


def test_tasks_do_not_grow_with_partitions(rng):
    """Some per thread and mode, however many partitions there are."""
    frame = table(rng, 3000)
    found = spread(frame, range(50, 3000, 50), n_threads=2)
    found.cluster.names.clear()
    found.lay_out(100, [True] * 3)
    builds, parts = 2 * module.SORTS, 2 * module.PARTS_PER_THREAD
    assert len(found.cluster.names) <= 3 * (builds * (parts + 1) + 5 * parts + 2)


def test_reductions_lose_nothing():
    """More pieces than one task takes, in several rounds."""
    for n in (1, 8, 9, 20, 70):
        joined = Serial().reduce("join", lambda parts: [*chain(*parts)], [[k] for k in range(n)])
        assert joined == list(range(n))


def test_moments_of_what_was_observed_itself(rng):
    """Units come from values, not from what stands for those of which only an end is known."""
    frame = table(rng, 60).dropna()
    frame["lower"] = np.where(np.arange(len(frame)) % 3 == 0, 50.0, np.nan)
    frame.loc[frame["lower"].notna(), "y"] = np.nan
    extras = {"value_lower": "lower"}
    parts = [frame[:20], frame[20:]]

    def read():
        return [table_part(each, n, COLUMNS, extras) for n, each in enumerate(parts)]

    spread, _ = spread_over(Serial(), read, MODES, "y")
    assert spread.seen == moments_of(frame["y"].dropna().to_numpy())
    assert spread.moments.largest == 50.0


def test_fingerprints_do_not_depend_on_how_the_data_are_cut(rng):
    """But on every key, value and weight: a fit must not go on with other data."""
    frame = table(rng, 60)
    frame["weight"] = 1.0 + rng.random(60)
    extras = {"sample_weight": "weight"}
    whole = spread(frame, [], extras).fingerprint()
    again = spread(frame.sample(frac=1.0, random_state=0), [7, 30, 31], extras, 1).fingerprint()
    np.testing.assert_array_equal(again, whole)
    swapped = {}
    for column in frame:
        other = frame.copy()
        other.loc[[0, 1], column] = frame.loc[[1, 0], column].to_numpy()
        swapped[column] = (spread(other, [9], extras).fingerprint() != whole).all()
        differs = frame[column][0] != frame[column][1]
        assert swapped[column] == differs, column
    assert sum(swapped.values()) >= 3
    assert (spread(frame, []).fingerprint() != whole).all(), "weights count, too"
