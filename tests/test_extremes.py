"""Values, keys and shapes at the edges of what numbers can hold: they work, or a sentence says."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayesring import TensorRing, complete, load
from bayesring.data.files import read_data, write_table
from bayesring.data.observations import Observations
from bayesring.posterior.convergence import DiagnosticWarning
from bayesring.posterior.suggest import candidate_cells, is_observed

QUICK = {"warmup": 5, "draws": 5, "chains": 1, "random_state": 0, "progress": False, "n_jobs": 1}
SHAPE = (4, 3, 3)
CELLS = np.argwhere(np.ones(SHAPE))


def normal(n=36, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def fitted(y, rank=2, X=CELLS, **settings):
    return TensorRing(rank, **(QUICK | settings)).fit(X, y)


def predictions(ring, X=CELLS):
    return np.stack([*ring.predict(X, return_std=True), *ring.predict_interval(X)])


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e299])
@pytest.mark.parametrize("inference", ["gibbs", "online-em"])
def test_units_do_not_matter(scale, inference):
    """The same fit as in ordinary units, but for rounding."""
    own = {"inference": inference} | ({"epochs": 3} if inference == "online-em" else {})
    expected = predictions(fitted(normal(), **own))
    found = predictions(fitted(normal() * scale, **own))
    np.testing.assert_allclose(found / scale, expected, rtol=1e-6)


@pytest.mark.parametrize("value", [1e-300, -1e300, 5e-324, 0.0, 1e16 + 2])
@pytest.mark.filterwarnings("ignore:.*there is nothing to learn")
def test_equal_values_are_predicted(value):
    found = predictions(fitted(np.full(len(CELLS), value)))
    assert np.isfinite(found).all()
    assert (found[1] >= 0).all()
    assert np.abs(found[0] - value).max() <= max(abs(value), 1.0)


@pytest.mark.parametrize("inference", ["gibbs", "online-em"])
@pytest.mark.filterwarnings("ignore:.*there is nothing to learn")
def test_equal_values_have_narrow_intervals(inference):
    """From the defaults; they once reached from -0.5 to 14.5."""
    X = np.random.default_rng(1).integers(0, 9, (300, 3))
    ring = TensorRing(inference=inference, random_state=0, progress=False).fit(X, np.full(300, 7.0))
    lower, upper = ring.predict_interval(X)
    assert np.all((lower > 6) & (lower <= 7) & (upper >= 7) & (upper < 8))


def test_subnormal_values():
    found = predictions(fitted(np.round(normal() * 10) * 5e-324))
    assert np.isfinite(found).all()
    assert np.abs(found[0]).max() < 1e-300


def test_neighbours_of_a_large_number():
    """1e16 and 1e16 + 2 are next to each other among floats: their difference is all there is."""
    values = 1e16 + 2.0 * (normal() > 0)
    ring = fitted(values)
    assert set(ring.observed_.values.tolist()) == {1e16, 1e16 + 2}
    found = predictions(ring)
    assert np.isfinite(found).all()
    assert np.abs(found[0] - 1e16).max() < 100


@pytest.mark.parametrize("value", [1.1e304, -1.7e308])
def test_values_too_large_for_arithmetic_are_refused(value):
    values = normal()
    values[7] = value
    with pytest.raises(ValueError, match=r"between -1e\+304 and 1e\+304, got .* in row 7;"):
        fitted(values)


@pytest.mark.parametrize("value", [1e12, -1e12, 1e300])
def test_a_value_beside_which_all_others_drown_is_said(value):
    values = normal()
    values[5] = value
    with pytest.warns(UserWarning, match=re.escape(f"y holds {value:g} in row 5, over 1,000,000")):
        found = predictions(fitted(values))
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "values",
    [normal(), np.exp(4 * normal()), np.arange(36) == 7, 1e16 + normal()],
    ids=["normal", "heavy tails", "one of many", "far from zero"],
)
def test_ordinary_values_are_not_complained_about(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", category=DiagnosticWarning)
        fitted(values)


BIG = 2**53 + 1
ROUNDED = (
    r"holds integers beyond 2\^53 .* such as 9007199254740993 in .*, which becomes 90071992547409"
)


def test_integers_that_floats_cannot_hold_are_said(tmp_path):
    values = np.arange(len(CELLS)) + 2**53
    with pytest.warns(UserWarning, match=f"y {ROUNDED}"):
        fitted(values)
    table = {"a": CELLS[:, 0], "b": CELLS[:, 1], "c": CELLS[:, 2], "v": values.astype(object)}
    table["v"][0] = None
    for make in (pl.DataFrame, pa.table):
        frame = make({name: column.tolist() for name, column in table.items()})
        with pytest.warns(UserWarning, match=f"value column 'v' {ROUNDED}"):
            found = complete(frame, modes=["a", "b", "c"], value="v", rank=1, **QUICK)
        assert found.table["v"].to_pylist()[1:] == values[1:].tolist() if make is pa.table else True
    with pytest.warns(UserWarning, match=f"data {ROUNDED}"):
        complete(np.ma.masked_equal(values.reshape(SHAPE), 2**53 + 9), rank=1, **QUICK)
    path = tmp_path / "x.csv"
    path.write_text("a,b,v\n" + "".join(f"{i},{j},{2**53 + i}\n" for i in range(3) for j in "xy"))
    with pytest.warns(UserWarning, match=rf"'v' {ROUNDED}"):
        read_data(str(path), ["a", "b"], "v")


def test_integers_that_floats_hold_are_not_complained_about():
    values = (np.arange(len(CELLS)) + 2**52) * 4
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", category=DiagnosticWarning)
        fitted(values)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_large_integer_keys_stay_apart(library, tmp_path):
    """As floats, 2^53 and 2^53 + 1 would be the same key."""
    keys = [2**53, BIG, 2**63 - 1, -(2**63)]
    table = {"a": np.repeat(keys, 6), "b": np.tile([0, 1, 2], 8), "v": np.repeat(keys, 6) * 1e-18}
    ring = TensorRing(2, **QUICK).fit(library(table), modes=["a", "b"], value="v")
    assert ring.labels_.levels[0].tolist() == sorted(keys)
    ring.save(tmp_path / "m.ring")
    asked = {"a": np.array(keys, dtype=np.int64), "b": np.zeros(4, dtype=np.int64)}
    expected = ring.predict(np.stack([[1, 2, 3, 0], np.zeros(4, int)], axis=1))
    for model in (ring, load(tmp_path / "m.ring")):
        assert np.array_equal(model.predict(library(asked)), expected)
        unsigned = {"a": np.array(keys[:3], dtype=np.uint64), "b": np.zeros(3, dtype=np.int64)}
        assert np.array_equal(model.predict(library(unsigned)), expected[:3])
        with pytest.warns(UserWarning, match=r"Labels that the fit did not know: 1 of 'a'"):
            model.predict(library({"a": [2.0**53, 2.0**53 + 2], "b": [0, 0]}))


def test_integer_keys_beyond_64_bits_are_kept_as_text():
    table = {"a": [2**64 - 1, 1, 2], "b": [0, 1, 1], "v": [1.0, 2.0, 3.0]}
    for frame in (pl.DataFrame(table, schema_overrides={"a": pl.UInt64}), pd.DataFrame(table)):
        ring = TensorRing(1, **QUICK).fit(frame, modes=["a", "b"], value="v")
        assert ring.labels_.levels[0].tolist() == ["1", str(2**64 - 1), "2"]


def test_new_labels_that_no_type_holds_with_the_old_ones():
    table = {"a": [BIG, 1, 2], "b": [0, 1, 1], "v": [1.0, 2.0, 3.0]}
    ring = TensorRing(1, inference="online-em", **QUICK).fit(pa.table(table), modes=["a", "b"])
    with pytest.raises(ValueError, match=r"'a' holds float64 labels such as 0\.5, but .* int64"):
        ring.partial_fit(pa.table({"a": [0.5], "b": [0], "v": [1.0]}))


def test_large_integers_survive_csv(tmp_path):
    path = tmp_path / "x.csv"
    text = f"a,b,v\n{BIG},x,1.5\n{2**63 - 1},y,2.5\n{2**63},x,\n"
    path.write_text(text)
    write_table(str(path), read_data(str(path), ["a", "b"], "v"))
    assert path.read_text() == text


@pytest.mark.parametrize("shape", [(3,) * 50, (2,) * 63, (60_000,) * 4])
def test_more_cells_than_can_be_numbered(shape, tmp_path):
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, size, 60) for size in shape], axis=1)
    ring = TensorRing(1, shape=shape, **QUICK).fit(X, normal(60))
    ring.save(tmp_path / "m.ring")
    ring = load(tmp_path / "m.ring")
    assert ring.shape_ == shape
    assert np.isfinite(predictions(ring, X)).all()
    suggested = ring.suggest(3, np.concatenate([X, X[::-1], (X + 1) % shape]))
    assert suggested.shape == (3, len(shape))
    assert not (suggested[:, None] == X).all(axis=2).any()
    with pytest.raises(ValueError, match=r"takes .* GiB, but .* are free; predict the cells"):
        ring.predict_tensor()


def test_cells_are_drawn_where_they_cannot_be_numbered():
    shape = (100_000,) * 4
    cells = candidate_cells(shape, None, 0, 500)
    assert cells.shape == (500, 4)
    assert cells.max() > 90_000
    observed = Observations(cells[:9], normal(9), shape)
    assert is_observed(cells, observed).tolist() == [True] * 9 + [False] * 491


def test_a_report_on_fifty_modes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (60, 50))
    page = fitted(normal(60), 1, X, shape=(3,) * 50).report(tmp_path / "r.html", progress=False)
    assert "mode 49" in page.read_text()


def test_too_many_modes_are_refused():
    with pytest.raises(ValueError, match="The data have 64 modes, but at most 63"):
        fitted(normal(3), 1, np.zeros((3, 64), dtype=int))


def test_a_rank_larger_than_any_mode():
    ring = fitted(normal(), 9)
    assert ring.rank_ == (9, 9, 9)
    assert np.isfinite(predictions(ring)).all()


@pytest.mark.parametrize("value", [1e300, -1e300, 2.0**53, np.inf, -np.inf, np.nan, 0.5])
def test_floats_that_are_no_coordinates_are_shown_as_given(value):
    X = CELLS.astype(float)
    X[3, 1] = value
    with pytest.raises(ValueError, match=re.escape(f"such as {value} in row 3, column 1")):
        fitted(normal(), X=X)


def test_durations_are_no_coordinates():
    with pytest.raises(ValueError, match=r"integer coordinates .* got timedelta64"):
        fitted(normal(), X=CELLS.astype("m8[s]"))


@pytest.mark.parametrize("n_draws", [2**50, 2**63, 10**30])
def test_more_draws_than_fit_into_memory(n_draws):
    with pytest.raises(ValueError, match=r"draws of 36 cells takes .* ask for fewer draws at a"):
        fitted(normal()).sample(CELLS, n_draws)


MILLION = """
import resource, time
import numpy as np
from bayesring import TensorRing
n = 10**6
rng = np.random.default_rng(0)
X = np.stack([rng.permutation(n), rng.integers(0, 50, n), rng.integers(0, 20, n)], axis=1)
begin = time.perf_counter()
ring = TensorRing(progress=False, random_state=0).fit(X, rng.standard_normal(n))
assert np.isfinite(ring.predict(X[:1000])).all()
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.mark.slow
def test_a_million_labels_with_one_observation_each():
    """From the defaults, on two cores: within ten minutes, and in bounded memory."""
    done = subprocess.run(
        [sys.executable, "-c", MILLION],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    )
    seconds, gibibytes = map(float, done.stdout.split())
    assert seconds < 600
    assert gibibytes < 8
