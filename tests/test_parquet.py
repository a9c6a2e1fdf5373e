"""Streams from Parquet: every row once, well mixed, in bounded memory; bad rows are named."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesring.data.parquet import Coding, ParquetRows, shuffling
from bayesring.data.tables import code_table, find_columns, open_table

EPOCH = datetime.datetime(2020, 1, 1)
N = 5000


def planted(n=N, seed=0):
    """Two keys, and a value that tells the row."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "i": rng.integers(-3, 40, n, dtype=np.int32),
            "j": rng.integers(0, 7, n),
            "value": np.arange(n, dtype=np.float32),
        }
    )


def opened(path, table=None, modes=("i", "j"), row_group_size=300, **settings):
    """The rows of a table, after a detour through a file."""
    if table is not None:
        parquet.write_table(table, path, row_group_size=row_group_size)
    return ParquetRows(path, modes, "value", **settings)


def epoch_of(source, coding, seed=0, epoch=0, **settings):
    """All chunks of an epoch: columns (D, n) and values (n,)."""
    chunks = list(source.chunks(coding, seed, epoch, **settings))
    return np.concatenate([c.columns for c in chunks], axis=1), np.concatenate(
        [c.values for c in chunks]
    )


def in_memory(table, modes):
    frame = open_table(table)
    return code_table(frame, find_columns(frame, list(modes), "value"))


def check_same_as_in_memory(rows, table, modes):
    """Labels, counts, moments and the observations of an epoch are those of the table."""
    expected = in_memory(table, modes)
    survey = rows.survey()
    for found, level in zip(survey.labels.levels, expected.labels.levels, strict=True):
        assert found.dtype == level.dtype
        np.testing.assert_array_equal(found, level)
    assert survey.labels._replace(levels=()) == expected.labels._replace(levels=())
    assert survey.shape == expected.shape
    known = ~np.isnan(expected.values)
    assert (survey.n_rows, survey.n_observed) == (len(known), known.sum())
    for mode, counts in enumerate(survey.counts):
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(
            counts, np.bincount(expected.coords[known, mode], minlength=survey.shape[mode])
        )
    values = expected.values[known]
    np.testing.assert_allclose(survey.mean, values.mean(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(survey.variance, values.var(), rtol=1e-12)
    assert (survey.smallest, survey.largest) == (values.min(), values.max())
    assert survey.binary == bool(np.isin(values, (0, 1)).all())
    columns, found = epoch_of(rows, Coding(survey.labels))
    assert (columns.dtype, found.dtype) == (np.int32, np.float32)
    got = np.rec.fromarrays([*columns, found])
    want = np.rec.fromarrays([*expected.coords[known].T.astype(np.int32), values.astype("f4")])
    np.testing.assert_array_equal(np.sort(got), np.sort(want))


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


def small_pools(monkeypatch, pool=1600, batch=50, lanes=8):
    monkeypatch.setattr(shuffling, "POOL", pool)
    monkeypatch.setattr(shuffling, "LANES", lanes)
    for module in ("shuffling", "files"):
        monkeypatch.setattr(f"bayesring.data.parquet.{module}.BATCH", batch)


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


def write_parts(folder, *tables):
    folder.mkdir()
    for part, table in enumerate(tables):
        parquet.write_table(table, folder / f"part-{part}.parquet", row_group_size=300)
    return folder


def with_value(table, row, value):
    values = table["value"].to_pylist()
    values[row] = value
    return table.set_column(2, "value", pa.array(values, table["value"].type))


def with_key(table, row, key):
    keys = table["i"].to_pylist()
    keys[row] = key
    return table.set_column(0, "i", pa.array(keys, table["i"].type))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            with_value(planted(), 4321, np.nan),
            "column 'value': NaN; values must be finite numbers.",
        ),
        (
            with_value(planted(), 4321, -np.inf),
            "column 'value': infinity; values must be finite numbers.",
        ),
        (
            with_value(with_value(planted(), 4320, None), 4321, np.nan),
            "column 'value': NaN; values must be finite numbers.",
        ),
        (
            with_key(planted(), 4321, None),
            "column 'i': no key; every row must say which cell it belongs to, only the value may "
            "be missing.",
        ),
    ],
    ids=["NaN", "infinity", "NaN after a gap", "no key"],
)
def test_bad_rows_are_named(tmp_path, bad, message):
    folder = write_parts(tmp_path / "x", planted(), bad)
    rows = ParquetRows(folder, ["i", "j"], "value")
    message = "^" + re.escape(f"File part-1.parquet, row 4,321, {message}") + "$"
    with pytest.raises(ValueError, match=message):
        rows.survey()
    good = ParquetRows(folder / "part-0.parquet", ["i", "j"], "value").survey()
    with pytest.raises(ValueError, match=message):
        epoch_of(rows, Coding(good.labels))
    assert len(rows.take(Coding(good.labels), np.arange(N + 300)).values) == N + 300


def test_missing_fractions_among_keys_are_named(tmp_path):
    table = planted().set_column(0, "i", pa.array([0.5] * 4999 + [np.nan]))
    with pytest.raises(ValueError, match=r"x\.parquet, row 4,999, column 'i': no key;"):
        opened(tmp_path / "x.parquet", table).survey()


def test_what_came_before_a_bad_row_is_kept(tmp_path, monkeypatch):
    small_pools(monkeypatch)
    rows = opened(tmp_path / "x.parquet", with_value(planted(50_000), 49_000, np.nan))
    labels = opened(tmp_path / "y.parquet", planted(50_000)).survey().labels
    kept = []
    with pytest.raises(ValueError, match=r"row 49,000, column 'value': NaN"):
        kept += (len(chunk.values) for chunk in rows.chunks(Coding(labels), 0, 0, rows=100))
    assert sum(kept) > 0


def test_unknown_labels_are_named(tmp_path):
    rows = opened(tmp_path / "x.parquet", planted())
    survey = rows.survey()
    text = planted().set_column(0, "i", planted()["i"].cast(pa.string()))
    for table, levels, key in [
        (planted(), survey.labels.levels[0], 99),
        (planted(), np.append(survey.labels.levels[0], 2**50), 99),
        (text, np.sort(survey.labels.levels[0].astype(str)), "99"),
    ]:
        labels = survey.labels._replace(levels=(levels, survey.labels.levels[1]))
        other = opened(tmp_path / "y.parquet", with_key(table, 4000, key))
        with pytest.raises(
            ValueError,
            match=r"y\.parquet, row 4,000, column 'i': 99, which is not among the labels of",
        ):
            epoch_of(other, Coding(labels))
    with pytest.raises(
        ValueError,
        match="column 'i' holds text, but the model was fitted with numbers such as -3",
    ):
        epoch_of(opened(tmp_path / "z.parquet", text), Coding(survey.labels))


def test_columns_and_types_are_checked_before_any_work(tmp_path):
    table = planted()
    text = table.set_column(0, "i", table["i"].cast(pa.string()))
    for number, (second, modes, message) in enumerate(
        [
            (
                table.drop_columns("value"),
                ("i", "j"),
                "File part-1.parquet has no column 'value'; its columns are ['i', 'j'].",
            ),
            (
                table.drop_columns("j"),
                ("i", "j"),
                "File part-1.parquet has no column 'j'; its columns are ['i', 'value'].",
            ),
            (
                text,
                ("i", "j"),
                "File part-1.parquet, column 'i': holds string, but int32 in part-0.parquet; a "
                "column must have one type in all files.",
            ),
            (
                table.set_column(2, "value", text["i"]),
                ("i", "j"),
                "File part-1.parquet, column 'value': holds string, but numbers are required.",
            ),
            (
                table.set_column(0, "i", pa.array([b"x"] * N)),
                ("i", "j"),
                "File part-1.parquet: column 'i' holds values of type binary, but a key must be "
                "text, a number, a date, a duration or a truth value.",
            ),
            (table, ("i",), "modes must name at least 2 key columns, got ['i']."),
            (table, ("i", "i"), "modes names a column twice: ['i', 'i']."),
            (table, ("i", "value"), "value 'value' is also among the modes ['i', 'value']."),
            (table, "ij", "modes must be a list of column names, got the text 'ij'."),
        ]
    ):
        folder = write_parts(tmp_path / str(number), table, second)
        with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
            ParquetRows(folder, modes, "value")
    with pytest.raises(ValueError, match=r"empty\.parquet holds no rows\."):
        opened(tmp_path / "empty.parquet", table[:0])
    gaps = table.set_column(2, "value", pa.nulls(N, pa.float32()))
    with pytest.raises(ValueError, match="'value' holds no value in any of its 5,000 rows"):
        opened(tmp_path / "gaps.parquet", gaps).survey()
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist\."):
        ParquetRows(tmp_path / "nowhere", ["i", "j"], "value")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(FileNotFoundError, match=r"nothing holds no file that ends in \.parquet"):
        ParquetRows(tmp_path / "nothing", ["i", "j"], "value")


def test_damaged_files_are_named(tmp_path):
    folder = write_parts(tmp_path / "x", planted(), planted())
    path = folder / "part-1.parquet"
    whole = path.read_bytes()

    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        ValueError,
        match=r"^File part-1\.parquet is no whole Parquet file: it is cut off or damaged \(.*\)\.$",
    ):
        ParquetRows(folder, ["i", "j"], "value")

    path.write_bytes(whole[:1000] + whole[5000:])
    with pytest.raises(
        ValueError,
        match=r"^File part-1\.parquet is no whole Parquet file: it is cut off or damaged \(it has "
        r"[\d,]+ bytes before its footer, which speaks of [\d,]+ and more\)\.$",
    ):
        ParquetRows(folder, ["i", "j"], "value")

    metadata = parquet.ParquetFile(path.with_name("part-0.parquet")).metadata
    begin = metadata.row_group(4).column(0).dictionary_page_offset
    path.write_bytes(whole[:begin] + b"\xff" * 200 + whole[begin + 200 :])
    rows = ParquetRows(folder, ["i", "j"], "value")
    message = (
        r"^File part-1\.parquet, row 1,200 and after: cannot be read, the file is damaged \(.*\)\.$"
    )
    with pytest.raises(ValueError, match=message):
        rows.survey()
    labels = ParquetRows(path.with_name("part-0.parquet"), ["i", "j"], "value").survey().labels
    with pytest.raises(ValueError, match=message):
        epoch_of(rows, Coding(labels))


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
