"""Predictions and completions of Dask DataFrames are those of the tables that they stand for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from dask import dataframe

from bayesring import TensorRing, complete
from tests.cluster.local import MODES, long_table

pytestmark = pytest.mark.filterwarnings("ignore::bayesring.data.traps.DataWarning")
SETTINGS = {"rank": 2, "warmup": 2, "draws": 2, "chains": 2, "random_state": 3, "progress": False}


@pytest.fixture(scope="module")
def fitted():
    frame = long_table(np.random.default_rng(1), 400)
    return frame, TensorRing(**SETTINGS).fit(frame, modes=MODES, value="y")


@pytest.mark.filterwarnings("ignore:Labels that the fit did not know")
def test_tables_are_predicted_by_partition(client, fitted):
    frame, ring = fitted
    cells = frame.assign(sensor=frame["sensor"].where(frame.index % 5 > 0, "new"))
    parts = dataframe.from_pandas(cells, npartitions=3)
    found = ring.predict_table(parts, 0.8)
    assert list(found.columns) == [*MODES, "mean", "std", "lower", "upper"]
    with pytest.warns(UserWarning, match="Labels that the fit did not know"):
        expected = ring.predict_table(cells, 0.8)
    pd.testing.assert_frame_equal(
        client.compute(found).result(), expected, rtol=1e-9, check_dtype=False
    )  # cells that are asked for together share products, so the last digits may differ
    with pytest.raises(ValueError, match=r"X names 'day', which is not a column of the table"):
        ring.predict_table(parts.drop(columns="day"))


def test_partitions_have_exposures_and_medians(client, fitted):
    frame, _ = fitted
    counts = frame.assign(y=np.arange(len(frame)) % 4, hours=1.0 + np.arange(len(frame)) % 3)
    named = {"modes": MODES, "value": "y", "exposure": "hours"}
    ring = TensorRing(likelihood="poisson", **SETTINGS).fit(counts, **named)
    parts = dataframe.from_pandas(counts, npartitions=3)
    found = client.compute(ring.predict_table(parts, point="median", exposure="hours")).result()
    expected = ring.predict_table(counts, point="median", exposure="hours")
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, check_dtype=False)
    with pytest.raises(ValueError, match="a column of the Dask DataFrame by its name"):
        ring.predict_table(parts, exposure=counts["hours"].to_numpy())


def test_a_dask_frame_is_completed_with_medians(client, fitted):
    frame = fitted[0].drop_duplicates(MODES)
    parts = dataframe.from_pandas(frame, npartitions=2)
    given = SETTINGS | {"modes": MODES, "value": "y", "likelihood": "gaussian"}
    found = complete(parts, client=client, point="median", **given)
    assert found.mean is None
    table, gaps = found.table.compute(), frame["y"].isna()
    expected = found.model.predict_table(frame[gaps], point="median")["median"]
    np.testing.assert_allclose(table["median"][gaps.to_numpy()], expected, rtol=1e-9)
    filled = found.median.compute()["y"]
    np.testing.assert_array_equal(filled, table["median"])


def test_results_are_written_by_the_workers(client, fitted, tmp_path):
    frame, ring = fitted
    ring.predict_table(dataframe.from_pandas(frame, npartitions=3)).to_parquet(tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 3
    found = pd.read_parquet(tmp_path / "out")
    np.testing.assert_allclose(found["mean"], ring.predict_table(frame)["mean"], rtol=1e-9)


def test_completion_of_a_dask_frame(client, fitted):
    frame = fitted[0].drop_duplicates(MODES)  # no gap is known from another row
    parts = dataframe.from_pandas(frame, npartitions=3)
    given = SETTINGS | {"modes": MODES, "value": "y", "likelihood": "gaussian"}
    there, here = complete(parts, client=client, **given), complete(frame, **given)
    assert there.n_filled == here.n_filled == int(frame["y"].isna().sum())
    for name in ("mean", "std", "lower", "upper", "table"):
        own, other = getattr(there, name).compute(), getattr(here, name)
        pd.testing.assert_frame_equal(own, other, rtol=1e-9, check_dtype=False)
    with pytest.raises(ValueError, match="fill must be 'missing' for a Dask DataFrame"):
        complete(parts, client=client, fill="all", **given)
