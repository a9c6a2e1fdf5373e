"""Streams from Parquet: every row once, well mixed, in bounded memory."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesring.data.parquet import Coding
from tests.parquet_files import (
    N,
    check_same_as_in_memory,
    epoch_of,
    in_memory,
    opened,
    planted,
    small_pools,
)

EPOCH = datetime.datetime(2020, 1, 1)
TIMES = [EPOCH + datetime.timedelta(hours=7 * hour) for hour in range(60)]
KEYS = {
    "int8": pa.array(range(-30, 30), pa.int8()),
    "uint8": pa.array(range(60), pa.uint8()),
    "int32": pa.array(range(-30, 30), pa.int32()),
    "uint32": pa.array(range(60), pa.uint32()),
    "int64": pa.array(range(60), pa.int64()),
    "far apart": pa.array([(-1) ** k * 2 ** (k + 3) for k in range(60)], pa.int64()),
    "extreme": pa.array([-(2**63), 2**63 - 1] * 30, pa.int64()),
    "uint64": pa.array(range(2**62, 2**62 + 60), pa.uint64()),
    "floats": pa.array([k / 8 - 2 for k in range(60)], pa.float64()),
    "float32": pa.array([k / 8 - 2 for k in range(60)], pa.float32()),
    "truth": pa.array([k % 3 > 0 for k in range(60)]),
    "text": pa.array([f"é{k}" * (k % 3) for k in range(60)]),
    "large text": pa.array([f"s{k}" for k in range(60)], pa.large_string()),
    "categories": pa.array([f"s{k % 9}" for k in range(60)]).dictionary_encode(),
    "days": pa.array(TIMES, pa.timestamp("us")).cast(pa.date32(), safe=False),
    "times in ns": pa.array(TIMES, pa.timestamp("ns")),
    "times in ms": pa.array(TIMES, pa.timestamp("ms")),
    "time zone": pa.array(TIMES, pa.timestamp("us", "Europe/Paris")),
    "durations": pa.array([datetime.timedelta(hours=k) for k in range(60)], pa.duration("ms")),
}


@pytest.mark.parametrize("kind", KEYS)
def test_every_kind_of_key_is_coded_as_in_memory(tmp_path, rng, kind):
    keys = KEYS[kind].take(pa.array(rng.integers(0, 55, 1000)))
    table = pa.table({"i": keys, "j": rng.integers(0, 5, 1000), "value": rng.normal(size=1000)})
    check_same_as_in_memory(opened(tmp_path / "x.parquet", table), table, ("i", "j"))


VALUES = {
    "truth": pa.array([True, False] * 30),
    "whole": pa.array(range(60), pa.int16()),
    "decimals": pa.array(range(60)).cast(pa.decimal128(21, 2)),
    "float64": pa.array([1e9 + k / 8 for k in range(60)]),
    "with gaps": pa.array([None if k % 4 == 0 else k / 8 for k in range(60)]),
    "half": pa.array(np.arange(60, dtype=np.float16)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_kind_of_value(tmp_path, kind):
    keys = {"i": np.arange(60) // 4, "j": np.arange(60) % 4}
    stored = pa.table({**keys, "value": VALUES[kind]})
    plain = pa.array([None if v is None else float(v) for v in VALUES[kind].to_pylist()])
    rows = opened(tmp_path / "x.parquet", stored, row_group_size=7)
    check_same_as_in_memory(rows, pa.table({**keys, "value": plain}), ("i", "j"))


def test_labels_without_an_observation_are_labels(tmp_path):
    table = pa.table({"i": [0, 1, 1], "j": ["a", "b", "a"], "value": [1.0, None, None]})
    rows = opened(tmp_path / "x.parquet", table)
    survey = rows.survey()
    assert [counts.tolist() for counts in survey.counts] == [[1, 0], [1, 0]]
    assert survey.n_missing == 2
    columns, values = epoch_of(rows, Coding(survey.labels))
    assert (columns.tolist(), values.tolist()) == ([[0], [0]], [1.0])


def test_many_distinct_keys_merge(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("bayesring.data.parquet.reading.BATCH", 250)
    numbers = rng.integers(0, 2**40, 3000)[rng.integers(0, 3000, N)]
    table = pa.table(
        {
            "i": numbers,
            "j": np.char.add("s", numbers[::-1].astype(str)),
            "value": rng.normal(size=N),
        }
    )
    check_same_as_in_memory(opened(tmp_path / "x.parquet", table), table, ("i", "j"))


def test_ranges_that_grow_are_counted(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("bayesring.data.parquet.reading.BATCH", 100)
    steps = np.arange(N)
    table = pa.table({"i": steps // 2, "j": -3 * steps, "value": rng.normal(size=N)})
    check_same_as_in_memory(opened(tmp_path / "x.parquet", table), table, ("i", "j"))
    monkeypatch.setattr(
        "bayesring.data.parquet.keycoding.DENSE", 5000
    )  # the table is given up half-way
    check_same_as_in_memory(opened(tmp_path / "x.parquet", table), table, ("i", "j"))


def test_folder_is_read_in_the_order_of_paths(tmp_path):
    table, folder = planted(), tmp_path / "data"
    (folder / "b").mkdir(parents=True)
    for begin, name in [(0, "a.parquet"), (2000, "b/x.pq"), (3000, "c.parquet")]:
        parquet.write_table(table[begin : {0: 2000, 2000: 3000, 3000: N}[begin]], folder / name)
    for name in ("_SUCCESS", ".hidden.parquet", "notes.txt", "b/_temporary.parquet"):
        (folder / name).write_text("none of the data")
    rows = opened(folder)
    assert rows.n_rows == N
    check_same_as_in_memory(rows, table, ("i", "j"))
    found = rows.take(Coding(rows.survey().labels), np.array([0, 1999, 2000, 3000, N - 1]))
    np.testing.assert_array_equal(found.values, [0, 1999, 2000, 3000, N - 1])


def test_partitioned_folders_give_keys(tmp_path):
    table = planted().append_column("place", pa.array([f"a/{k % 3} é" for k in range(N)]))
    parquet.write_to_dataset(table, tmp_path / "x", partition_cols=["place", "j"])
    check_same_as_in_memory(
        opened(tmp_path / "x", modes=("place", "i", "j")), table, ("place", "i", "j")
    )


def test_widths_of_whole_numbers_may_differ_between_files(tmp_path):
    table, folder = planted(), tmp_path / "x"
    folder.mkdir()
    parquet.write_table(table[:100], folder / "0.parquet")
    wide = table[100:].set_column(0, "i", table["i"][100:].cast(pa.int64()))
    wide = wide.set_column(2, "value", wide["value"].cast(pa.float64()))
    parquet.write_table(wide, folder / "1.parquet")
    expected = pa.concat_tables([table[:100], wide], promote_options="permissive")
    check_same_as_in_memory(opened(folder), expected, ("i", "j"))


def test_every_row_comes_once_in_chunks_of_one_size(tmp_path):
    rows = opened(tmp_path / "x.parquet", planted())
    coding = Coding(rows.survey().labels)
    chunks = list(rows.chunks(coding, 0, 0, rows=768))
    assert [len(chunk.values) for chunk in chunks] == [768] * 6 + [N - 6 * 768]
    assert all(chunk.columns.flags.c_contiguous for chunk in chunks)
    values = np.concatenate([chunk.values for chunk in chunks])
    np.testing.assert_array_equal(np.sort(values), np.arange(N))


def test_many_pools_hold_every_row_once(tmp_path, monkeypatch):
    small_pools(monkeypatch)
    table = planted(20_000)
    rows = opened(tmp_path / "x.parquet", table, row_group_size=130)
    check_same_as_in_memory(rows, table, ("i", "j"))
    sizes = [len(c.values) for c in rows.chunks(Coding(rows.survey().labels), 0, 0, rows=700)]
    assert sizes == [700] * 28 + [400]


def test_same_seed_same_chunks_other_epoch_other_order(tmp_path, monkeypatch):
    small_pools(monkeypatch)
    table = planted()
    rows = opened(tmp_path / "x.parquet", table, threads=1)
    coding = Coding(rows.survey().labels)
    first = epoch_of(rows, coding, 3, 1, rows=500)
    for threads in (1, 2, 5):
        again = epoch_of(opened(tmp_path / "x.parquet", threads=threads), coding, 3, 1, rows=500)
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one, other)
    for seed, epoch in [(3, 2), (4, 1), (1, 3)]:
        other = epoch_of(rows, coding, seed, epoch, rows=500)[1]
        assert abs(np.corrcoef(first[1], other)[0, 1]) < 0.1
        assert np.mean(first[1] == other) < 0.01


def test_chunks_mix_row_groups(tmp_path, monkeypatch):
    """Fails if rows are shuffled only within row groups, or pools hold few of them."""
    small_pools(monkeypatch, pool=3200)
    rows = opened(tmp_path / "x.parquet", planted(24_000), row_group_size=1000)
    coding = Coding(rows.survey().labels)
    for chunk in list(rows.chunks(coding, 0, 0, rows=800))[:24]:
        groups = (chunk.values // 1000).astype(int)
        assert len(np.unique(groups)) >= 8
        assert np.bincount(groups).max() < 300
        neighbours = np.abs(np.diff(chunk.values))
        assert np.median(neighbours) > 2000
        # all places of a pool are alike: the two halves of a chunk see the same row groups
        halves = [np.bincount(half, minlength=24) for half in np.split(groups, 2)]
        assert np.all(np.abs(halves[0] - halves[1]) < 6 * np.sqrt(1 + halves[0] + halves[1]))


def test_permutation_is_uniform(tmp_path, seed):
    """Every place of a small pool holds every row equally often."""
    rows = opened(tmp_path / "x.parquet", planted(6), row_group_size=2)
    coding = Coding(rows.survey().labels)
    found = np.zeros((6, 6))
    for epoch in range(600):
        found[np.arange(6), epoch_of(rows, coding, seed, epoch)[1].astype(int)] += 1
    assert np.sum((found - 100) ** 2 / 100) < 60  # chi-squared of 25 degrees: p of 1e-4


def test_skip_and_take_are_complementary(tmp_path, rng, monkeypatch):
    small_pools(monkeypatch)
    table = planted().set_column(
        2, "value", pa.array(np.arange(N, dtype=np.float32), mask=np.arange(N) % 11 == 0)
    )
    rows = opened(tmp_path / "x.parquet", table)
    coding = Coding(rows.survey().labels)
    held = np.sort(rng.choice(N, 700, replace=False))
    taken = rows.take(coding, held)
    expected = in_memory(table, ("i", "j"))
    known = held[held % 11 > 0]
    np.testing.assert_array_equal(taken.values, known)
    np.testing.assert_array_equal(taken.columns.T, expected.coords[known])
    assert taken.columns.flags.c_contiguous
    rest = epoch_of(rows, coding, skip=held)[1]
    both = np.sort(np.concatenate([rest, taken.values]))
    np.testing.assert_array_equal(both, np.arange(N)[np.arange(N) % 11 > 0])
    assert rows.take(coding, np.zeros(0, dtype=int)).columns.shape == (2, 0)


def test_rows_are_numbered_over_all_files(tmp_path, rng, monkeypatch):
    """Rows to take or to skip may lie in any file of a folder."""
    small_pools(monkeypatch)
    for name, part in (("a", slice(0, 2000)), ("b", slice(2000, 2001)), ("c", slice(2001, N))):
        rows = planted().slice(part.start, part.stop - part.start)
        parquet.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=300)
    rows = opened(tmp_path)
    coding = Coding(rows.survey().labels)
    held = np.sort(rng.choice(N, 700, replace=False))
    taken = rows.take(coding, held).values
    np.testing.assert_array_equal(taken, held)
    rest = epoch_of(rows, coding, skip=held)[1]
    np.testing.assert_array_equal(np.sort(np.concatenate([rest, taken])), np.arange(N))


def test_units_are_taken_out_before_rounding(tmp_path):
    values = 1e9 + np.arange(N) / 8
    table = planted().set_column(2, "value", pa.array(values))
    rows = opened(tmp_path / "x.parquet", table)
    survey = rows.survey()
    coding = Coding(survey.labels, survey.mean, survey.variance**0.5)
    found = np.sort(epoch_of(rows, coding)[1])
    np.testing.assert_allclose(found, (values - values.mean()) / values.std(), atol=1e-6)


def test_survey_reports_progress(tmp_path, monkeypatch):
    monkeypatch.setattr("bayesring.data.parquet.reading.BATCH", 100)
    told = []
    opened(tmp_path / "x.parquet", planted()).survey(lambda *args: told.append(args))
    assert told[0] == (100, N)
    assert told[-1] == (N, N)


def test_an_epoch_can_be_left(tmp_path, monkeypatch):
    small_pools(monkeypatch)
    rows = opened(tmp_path / "x.parquet", planted())
    coding = Coding(rows.survey().labels)
    before = threading.active_count()
    chunks = rows.chunks(coding, 0, 0, rows=100)
    next(chunks)
    chunks.close()
    assert threading.active_count() == before


MEASURE = """
import resource, sys
import numpy as np
from bayesring.data.parquet import Coding, ParquetRows

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

small, large = (ParquetRows(path, ["i", "j", "k"], "value") for path in sys.argv[1:])
peaks = []
for rows in (small, large):
    survey = rows.survey()
    n = sum(len(chunk.values) for chunk in rows.chunks(Coding(survey.labels), 0, 0, 1 << 18))
    assert n == rows.n_rows, n
    peaks.append(peak())
print(*peaks)
"""


@pytest.mark.ci
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Sixteen million rows more, in a single row group: 256 MB if they were all loaded."""
    rng = np.random.default_rng(0)
    n = 1 << 20
    table = pa.table(
        {
            **{name: rng.integers(0, 500, n, dtype=np.int32) for name in "ijk"},
            "value": rng.normal(size=n).astype(np.float32),
        }
    )
    for name, times in [("small", 6), ("large", 22)]:
        joined = pa.concat_tables([table] * times)
        parquet.write_table(joined, tmp_path / name, row_group_size=joined.num_rows)
    found = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "small"), str(tmp_path / "large")],
        capture_output=True,
        text=True,
        check=True,
    )
    small, large = map(float, found.stdout.split())
    assert large - small < 100, (small, large)
