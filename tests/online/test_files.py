"""Learning from Parquet files: as well as from memory, and errors in a sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, load
from bayesring.data.parquet import Coding, FileRows, ParquetRows, sources_of
from bayesring.engine.streams import Streams
from tests.online.planted import SHAPE, make, planted, rms

MODES = ["who", "when", "what"]
NAMES = np.array([f"station {i:02d}" for i in range(20)])


def table_of(X, y):
    return pd.DataFrame({"who": NAMES[X[:, 0]], "when": X[:, 1], "what": X[:, 2], "seen": y})


@pytest.fixture(scope="module")
def data():
    X, y, f = planted(np.random.default_rng(7), 5_000)
    return table_of(X, y), f


@pytest.mark.ci
def test_files_teach_as_well_as_memory(data, tmp_path):
    """A folder of two files, keys that are text, rows without a value; then on with a table.

    Seen to fail: values left in their units; held-out rows not skipped in the counts.
    """
    table, f = data
    table.assign(seen=table["seen"].where(np.arange(5_000) % 100 > 0)).iloc[:2_000].to_parquet(
        tmp_path / "a.parquet"
    )
    table.iloc[2_000:3_000].to_parquet(tmp_path / "b.parquet", row_group_size=300)
    test, truth = table.iloc[3_000:], f[3_000:]
    streamed = make(epochs=15).fit(tmp_path, modes=MODES, value="seen")
    assert streamed.shape_ == SHAPE
    assert streamed.n_observations_ == 3_000 - 20
    assert streamed.observed_ is None
    assert list(streamed.labels_.levels[0]) == sorted(set(table["who"]))
    held = make(epochs=15, chains=1).fit(table.iloc[:3_000], modes=MODES, value="seen")
    error = rms(streamed.predict(test) - truth)
    assert error < 1.3 * rms(held.predict(test) - truth) + 0.1
    found = streamed.predict_table(test)
    inside = np.mean((found["lower"] <= test["seen"]) & (test["seen"] <= found["upper"]))
    assert 0.84 <= inside <= 0.96
    assert streamed.estimates_[0].n_observations == 3_000 - 20 - len(streamed.held_out_.values)
    again = make(epochs=15, n_jobs=2).fit(str(tmp_path), modes=MODES, value="seen")
    np.testing.assert_array_equal(again.predict(test), streamed.predict(test))
    again.save(tmp_path / "model.ring")
    for each in (again, other := load(tmp_path / "model.ring")):
        each.partial_fit(test.iloc[:500])
    np.testing.assert_array_equal(again.predict(test), other.predict(test))
    assert rms(again.predict(test) - truth) < 1.05 * error


def test_held_out_rows_are_neither_learned_from_nor_chosen_by(data, tmp_path):
    """Every row is held out or learned from, and none of both; the size has a sample of the rest.

    Values tell the rows apart.
    """
    data[0].assign(seen=np.arange(5_000.0)).to_parquet(tmp_path / "a.parquet", row_group_size=700)
    files = ParquetRows(tmp_path, MODES, "seen")
    survey = files.survey()
    sources = sources_of(files, survey, Coding(survey.labels), seed=3)
    assert sources.is_held_out
    held = set(sources.judged.values)
    assert len(held) == 500
    streams = Streams.of_chain(3, 0)
    for rows, n in ((sources.part, 4_500), (sources.whole, 4_500), (sources.sample, 4_500)):
        chunks = list(rows.chunks(streams, 0))
        seen = np.concatenate([chunk.values for chunk in chunks])
        assert len(set(seen)) == len(seen) == n
        assert not held & set(seen)
        columns = np.concatenate([chunk.columns for chunk in chunks], axis=1)
        for own, counts in zip(columns, rows.counts, strict=True):
            np.testing.assert_array_equal(np.bincount(own, minlength=len(counts)), counts)


def test_binary_files(tmp_path):
    X, y, _ = planted(np.random.default_rng(8), 5_000, steep=3.0)
    table = table_of(X, y)
    table.iloc[:4_000].to_parquet(tmp_path / "links.parquet")
    model = make(likelihood="bernoulli").fit(tmp_path / "links.parquet", modes=MODES, value="seen")
    share = y[4_000:].mean()
    base = share * np.log(share) + (1 - share) * np.log(1 - share)
    assert model.score(table.iloc[4_000:]) > 0.85 * base
    table.assign(seen=table["seen"] / 2).to_parquet(tmp_path / "halves.parquet")
    with pytest.raises(ValueError, match=r"0 (or|and) 1"):
        make(likelihood="bernoulli").fit(tmp_path / "halves.parquet", modes=MODES, value="seen")


@pytest.mark.parametrize("n", [3, 8, 60, 499])
def test_few_rows(data, tmp_path, n):
    """Too few to hold any out. Seen to fail: a loss over no held-out row, as it once was."""
    table = data[0].iloc[:n]
    table.to_parquet(tmp_path / "few.parquet")
    model = make(2, epochs=1).fit(tmp_path / "few.parquet", modes=MODES, value="seen")
    assert model.held_out_ is None
    assert np.isfinite(model.predict(table)).all()


def test_constant_values(data, tmp_path):
    data[0].iloc[:600].assign(seen=3.7).to_parquet(tmp_path / "same.parquet")
    model = make(2, epochs=12).fit(tmp_path / "same.parquet", modes=MODES, value="seen")
    assert model.posterior_.scale == 3.7
    np.testing.assert_allclose(model.predict(data[0].iloc[:20]), 3.7, atol=0.2)


def test_errors_in_a_sentence(data, tmp_path):
    table, path = data[0].iloc[:400], tmp_path / "some.parquet"
    table.to_parquet(path)
    right = {"modes": MODES, "value": "seen"}
    with pytest.raises(ValueError, match="modes must name its key columns and value its column"):
        make().fit(path)
    with pytest.raises(ValueError, match="y must be left out"):
        make().fit(path, table["seen"], **right)
    with pytest.raises(ValueError, match="inference='gibbs' needs its data in memory"):
        TensorRing(2).fit(path, **right)
    with pytest.raises(ValueError, match="has no column 'nope'"):
        make().fit(path, modes=MODES, value="nope")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        make().fit(tmp_path / "none.parquet", **right)
    table.assign(seen=pd.array([pd.NA] * 400, dtype="Float64")).to_parquet(path)
    with pytest.raises(ValueError, match="holds no value in any of its 400 rows"):
        make().fit(path, **right)


def test_a_nan_is_named_with_file_and_row(data, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(data[0].iloc[:400])
    values = table["seen"].to_numpy().copy()
    values[123] = np.nan
    place = table.column_names.index("seen")
    bad = table.set_column(place, "seen", pa.array(values, from_pandas=False))
    pq.write_table(bad, tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"bad\.parquet.*row 123|row 123.*bad\.parquet"):
        make().fit(tmp_path / "bad.parquet", modes=MODES, value="seen")


@pytest.mark.parametrize("broken", ["first pass", "later pass", "last pass"])
def test_files_that_break_off(data, tmp_path, monkeypatch, broken):
    """What was learned before is kept, unless nothing was.

    Seen to fail: settling, or letting the rate fall, on a stream that has ended; losing all when
    the last pass fails.
    """
    data[0].iloc[:2_000].to_parquet(tmp_path / "a.parquet")
    whole, passes = FileRows.chunks, []

    def chunks(self, streams, epoch):
        passes.append(epoch)
        yield from whole(self, streams, epoch)
        if len(passes) == breaks_at:
            raise OSError("File a.parquet, row 7 and after: cannot be read.")

    monkeypatch.setattr(FileRows, "chunks", chunks)
    breaks_at = 0
    good = make(epochs=12).fit(tmp_path, modes=MODES, value="seen")
    breaks_at = {"first pass": 1, "later pass": 2, "last pass": len(passes)}[broken]
    passes.clear()
    ring = make(epochs=12)
    if broken == "first pass":
        monkeypatch.setattr(FileRows, "chunks", lambda *_: iter_failing())
    with pytest.raises((OSError, ValueError), match=r"row 7 and after: cannot be read\.") as caught:
        ring.fit(tmp_path, modes=MODES, value="seen")
    if broken == "first pass":
        assert not hasattr(ring, "posterior_")
        return
    assert "What was learned before is kept" in str(caught.value)
    ring.save(tmp_path / "kept.ring")
    cells = data[0].iloc[:5]
    kept = load(tmp_path / "kept.ring").predict(cells)
    assert np.isfinite(kept).all()
    if broken == "last pass":  # all was learned, only the error bars are rougher
        np.testing.assert_allclose(kept, good.predict(cells), rtol=0.1, atol=0.1)


def iter_failing():
    raise OSError("File a.parquet, row 7 and after: cannot be read.")
    yield
