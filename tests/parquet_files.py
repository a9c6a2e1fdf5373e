"""Parquet files for tests, and what their rows must be."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bayesring.data.opentables import open_table
from bayesring.data.parquet import Coding, ParquetRows, shuffling
from bayesring.data.tables import code_table, find_columns

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


def small_pools(monkeypatch, pool=1600, batch=50, lanes=8):
    monkeypatch.setattr(shuffling, "POOL", pool)
    monkeypatch.setattr(shuffling, "LANES", lanes)
    for module in ("shuffling", "reading"):
        monkeypatch.setattr(f"bayesring.data.parquet.{module}.BATCH", batch)
