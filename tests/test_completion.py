"""`complete` on arrays, dense, masked or sparse; binary values, levels, memory, refusals."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sparse
import xarray as xr

from bayesring import checks, complete
from bayesring.data.kinds import choose_by_moments
from bayesring.data.moments import moments_of
from bayesring.data.traps import DataWarning
from tests.gappy import (
    KEYS,
    QUICK,
    SHAPE,
    STATISTICS,
    gappy_array,
    long_columns,
)


@pytest.fixture(scope="module")
def array():
    return gappy_array()


@pytest.fixture(scope="module")
def completed(array):
    return complete(array, **QUICK)


def test_arrays_keep_what_is_known_and_fill_the_rest(array, completed):
    known = ~np.isnan(array)
    for name in STATISTICS:
        found = getattr(completed, name)
        assert type(found) is np.ndarray
        assert found.shape == SHAPE
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[known], 0.0 if name == "std" else array[known])
    assert np.all(completed.std[~known] > 0)
    assert np.all(completed.lower[~known] < completed.mean[~known])
    assert np.all(completed.mean[~known] < completed.upper[~known])
    assert completed.n_filled == np.count_nonzero(~known)
    assert np.isnan(array).any(), "the data given stay as they were"


def test_the_filled_cells_are_the_models_predictions(array, completed):
    cells = np.argwhere(np.isnan(array))
    mean, std = completed.model.predict(cells, return_std=True)
    lower, upper = completed.model.predict_interval(cells, level=0.9)
    for name, expected in zip(STATISTICS, (mean, std, lower, upper), strict=True):
        np.testing.assert_allclose(getattr(completed, name)[np.isnan(array)], expected, rtol=1e-9)


def test_precision_of_fractions_is_kept(array):
    assert complete(array.astype(np.float32), **QUICK).mean.dtype == np.float32


def test_masked_arrays(array, completed):
    values = np.where(np.isnan(array), -999.0, array)
    found = complete(np.ma.masked_array(values, np.isnan(array)), **QUICK)
    for name in STATISTICS:
        result = getattr(found, name)
        assert isinstance(result, np.ma.MaskedArray)
        assert not result.mask.any()
        np.testing.assert_array_equal(result.data, getattr(completed, name))


def test_masked_whole_numbers_become_fractions():
    counts = np.ma.masked_array(np.arange(24).reshape(2, 3, 4), np.arange(24) % 5 == 0)
    assert complete(counts, **QUICK).mean.dtype == np.float64


def coo(array, fill_value=0.0, explicit_nan=()):
    """The known cells, and some unknown ones, as explicit entries."""
    cells = np.argwhere(~np.isnan(array))
    cells = np.concatenate([cells, np.reshape(explicit_nan, (-1, 3)).astype(int)])
    values = array[tuple(cells.T)]
    return sparse.COO(cells.T, values, shape=array.shape, fill_value=fill_value)


def test_sparse_arrays_fill_what_is_asked(array, completed):
    """A zero fill is no observation: the result is that of the array with NaN."""
    gap = np.argwhere(np.isnan(array))[3]
    data = coo(array, explicit_nan=[gap])
    some = complete(data, **QUICK)
    assert isinstance(some.mean, sparse.COO)
    assert some.n_filled == 1
    assert some.mean.nnz == data.nnz
    np.testing.assert_allclose(
        some.mean.todense()[tuple(gap)], completed.mean[tuple(gap)], rtol=1e-9
    )
    every = complete(data, fill="all", **QUICK)
    assert every.n_filled == completed.n_filled
    for name in STATISTICS:
        np.testing.assert_array_equal(getattr(every, name).todense(), getattr(completed, name))


def test_few_cells_of_a_large_tensor_are_filled():
    """27,000,000,000 cells, of which none but those asked for is ever worked out."""
    corners = np.array([[5, 6, 7], [2999, 0, 7], [0, 0, 0], [2999, 2999, 2999]])
    data = sparse.COO(corners.T, [1.0, 2.0, np.nan, np.nan], shape=(3000, 3000, 3000))
    found = complete(data, **QUICK)
    assert found.n_filled == 2
    assert np.isfinite(found.upper.data).all()


def test_implicit_entries_are_observed_if_asked(array):
    gap = tuple(np.argwhere(np.isnan(array))[0])
    found = complete(coo(array, explicit_nan=[gap]), implicit="observed", **QUICK)
    assert isinstance(found.mean, sparse.COO)
    assert found.model.n_observations_ == array.size - 1
    assert found.mean.fill_value == 0
    assert found.mean.todense()[gap] != 0


def test_zeros_and_ones_are_taken_as_binary(array, capsys):
    binary = np.where(np.isnan(array), np.nan, array > np.nanmedian(array))
    found = complete(binary, **QUICK | {"progress": True})
    assert found.model.likelihood == "bernoulli"
    assert "0 or 1: treated as binary" in found.notes[0]
    assert "treated as binary" in " ".join(capsys.readouterr().err.split())
    gaps = np.isnan(binary)
    assert np.all((found.lower >= 0) & (found.upper <= 1), where=gaps)
    assert np.all(found.lower[gaps] < found.upper[gaps])
    as_numbers = complete(binary, likelihood="gaussian", **QUICK)
    assert as_numbers.model.likelihood == "gaussian"
    assert as_numbers.notes == ()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_value_alone_is_not_taken_as_binary(array, value):
    """A column of zeros may be anything."""
    with pytest.warns(DataWarning, match="there is nothing to learn"):
        found = complete(np.where(np.isnan(array), np.nan, value), **QUICK)
    assert found.model.likelihood == "gaussian"
    assert not any("binary" in note for note in found.notes)


def test_one_value_alone_of_many_is_not_taken_as_binary():
    """The same where only moments are known."""
    for value in (0.0, 1.0):
        assert choose_by_moments(moments_of(np.full(9, value)), 9).likelihood == "gaussian"
    assert choose_by_moments(moments_of(np.array([0.0, 1.0])), 2).likelihood == "bernoulli"


def test_intervals_have_the_level_asked_for(array, completed):
    found = complete(array, level=0.5, **QUICK)
    assert (completed.level, found.level) == (0.9, 0.5)
    gaps = np.isnan(array)
    lower, upper = found.model.predict_interval(np.argwhere(gaps), 0.5)
    np.testing.assert_allclose(found.lower[gaps], lower, rtol=1e-6)
    np.testing.assert_allclose(found.upper[gaps], upper, rtol=1e-6)
    wide = completed.upper[gaps] - completed.lower[gaps]
    assert np.all(found.upper[gaps] - found.lower[gaps] < 0.7 * wide)


def test_what_does_not_fit_into_memory_is_refused(array, monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 2**10)
    with pytest.raises(ValueError, match=r"shape \(5, 6, 4\) takes 0\.0 GiB, but 0\.0 GiB"):
        complete(array, **QUICK)
    rows = np.flatnonzero(~np.isnan(array.ravel()))
    data = pd.DataFrame(long_columns(array, rows))
    message = r"table of 5 x 6 x 4 = 120 cells takes .* free; list the cells that you need"
    with pytest.raises(ValueError, match=message):
        complete(data, modes=KEYS, value="t", fill="all", **QUICK)


def test_a_huge_table_is_refused_before_any_work():
    data = pd.DataFrame({name: np.arange(30_000) for name in "abc"} | {"t": np.ones(30_000)})
    with pytest.raises(ValueError, match=r"30000 x 30000 x 30000 = 27,000,000,000,000 cells takes"):
        complete(data, modes=["a", "b", "c"], value="t", fill="all", **QUICK)


WIDE = pd.DataFrame({"station": ["a", "b"], "Jan": [1.0, 2.0], "Feb": [2.0, 3.0], "Mar": [0.0, 1]})
LONG = pd.DataFrame({"a": ["x", "x", "y"], "b": [1, 2, 1], "c": [1, 1, 2], "t": [1.0, np.nan, 2.0]})


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (np.ones((2, 3)), {}, "there is nothing to fill: all 6 cells have a value."),
        (np.full((2, 3), np.nan), {}, "data holds no value at all: every cell is missing."),
        (np.array([1.0, np.nan]), {}, "data must have at least 2 modes, got the shape (2,)."),
        (np.array([["a", "b"]]), {}, "data must hold real numbers, got values of type <U1."),
        (
            np.array([[1.0, np.inf], [0.0, np.nan]]),
            {},
            "data must be finite or NaN, got infinity in cell (0, 1).",
        ),
        (np.ones((2, 2)), {"modes": ["a"]}, "modes and value name the columns of a table, but"),
        (LONG, {"fill": "al"}, "fill must be 'all' or 'missing', got 'al'. Did you"),
        (LONG, {"level": 90}, "level must lie strictly between 0 and 1, got 90."),
        (LONG, {"modes": ["a", "z"], "value": "t"}, "modes names 'z', which is not a column of"),
        (LONG, {"modes": ["a", "b"], "value": "T"}, "value names 'T', which is not a column of"),
        (LONG, {"modes": "ab", "value": "t"}, "modes must be a list of column names, got the text"),
        (LONG, {"modes": ["a", "a", "b"], "value": "t"}, "modes names a column twice: ['a', 'a',"),
        (LONG, {"modes": ["a", "t"], "value": "t"}, "value 't' is also among the modes"),
        (LONG, {"modes": ["a"], "value": "t"}, "modes must name at least 2 key columns, got ['a']"),
        (LONG, {"value": "a"}, "modes and value are required: name the key columns and the"),
        (
            LONG.assign(b=[1, 2, 3]),
            {},
            "then every row has a different label in 'b', which no key",
        ),
        (LONG.set_index("a"), {"modes": ["a", "b"], "value": "t"}, "'a', which is in the index of"),
        (
            LONG.dropna(),
            {"modes": ["a", "c"], "value": "t"},
            "nothing to fill: no value is missing among the 2 given; fill='all' fills the other 2 ",
        ),
        (LONG.assign(mean=1), {"modes": ["a", "b"], "value": "t"}, "already has a column 'mean'"),
        (
            LONG.assign(b=[1, None, 2]),
            {"modes": ["a", "b"], "value": "t"},
            "no key in row 1: every",
        ),
        (LONG.assign(a=["x", None, "y"]), {}, "column 'a' has no key in row 1: every row must say"),
        (LONG.assign(a=["x", 3, "y"]), {}, "column 'a' holds Python objects of type int and str"),
        (
            LONG.assign(t="?"),
            {"value": "t"},
            "value column 't' holds the text '?' in row 0, but numbers are required.",
        ),
        (LONG.assign(t=[1, np.inf, 2]), {}, "value column 't' must be finite, got infinity in row"),
        (
            LONG.assign(t=np.nan),
            {},
            "value column 't' holds no value in any of its 3 rows.",
        ),
        (LONG.iloc[:0], {}, "data is empty: found a table with 0 rows."),
        (
            WIDE,
            {},
            "the table looks wide: it has 3 columns of numbers such as 'Jan' and 'Feb'; make it "
            "long first, with table.melt(id_vars=['station'], var_name='column'",
        ),
        (pl.from_pandas(WIDE), {}, "with table.unpivot(index=['station'], variable_name='column'"),
        (LONG["t"], {}, "data is a pandas.Series; give a table, for example data.reset_index()."),
        (xr.Dataset(), {}, "data is an xarray.Dataset; give one of its variables"),
        (sparse.COO(np.eye(3)).to_scipy_sparse(), {}, "give sparse.COO.from_scipy_sparse(data)."),
        (sparse.COO(np.eye(3)).asformat("gcxs"), {}, "convert it with .asformat('coo')."),
        (sparse.COO(np.eye(3)), {}, "among the 3 given; fill='all' fills the other 6 cells."),
        (
            sparse.COO(np.eye(3)),
            {"implicit": "zero"},
            "implicit must be 'missing' or 'observed', got",
        ),
    ],
)
def test_refusals_are_one_sentence(data, arguments, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        complete(data, **arguments, **QUICK)
