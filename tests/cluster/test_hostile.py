"""Data and clusters that nobody wishes for: one sentence each, or the bits of a single machine."""

from __future__ import annotations

import threading
import time

import dask
import numpy as np
import pytest
from dask import array, bag, dataframe
from distributed import Client, wait

from bayesring import TensorRing, TensorRingClassifier, complete
from bayesring.data import blocks
from bayesring.data.sitecolumns import joint_places, places_in_part
from bayesring.engine import connection
from bayesring.engine.dask import Cluster, ClusterLost
from bayesring.engine.placing import HeldGroup, Placed
from bayesring.priors import Spatial
from tests.cluster.local import MODES, long_table, pretend_few_are_many, same_draws, start

pytestmark = pytest.mark.filterwarnings("ignore::bayesring.data.traps.DataWarning")
SETTINGS = {"rank": 2, "warmup": 1, "draws": 1, "chains": 1, "random_state": 3, "progress": False}
NAMED = {"modes": MODES, "value": "y"}


@pytest.fixture(scope="module", autouse=True)
def few_are_many(client):
    """Data of three hundred observations stay on the cluster."""
    before, blocks.BLOCK_SIZE = blocks.BLOCK_SIZE, 150
    pretend_few_are_many(300)
    client.run(pretend_few_are_many, 300)
    yield
    blocks.BLOCK_SIZE = before
    pretend_few_are_many(500_000)
    client.run(pretend_few_are_many, 500_000)


def in_parts(*frames):
    return dataframe.from_delayed(
        [dask.delayed(each) for each in frames], meta=frames[0].iloc[:0], verify_meta=False
    )


def refused(client, X, match, likelihood="gaussian", **given):
    with pytest.raises((TypeError, ValueError), match=match) as caught:
        TensorRing(likelihood=likelihood, **SETTINGS).fit(X, client=client, **(NAMED | given))
    assert "\n" not in str(caught.value)


def test_partitions_that_do_not_fit_together(client, rng):
    frame = long_table(rng, 400)
    there = frame.assign(day=frame["day"].dt.tz_localize("Europe/Berlin"))
    refused(client, in_parts(there[:200], frame[200:]), "with a time zone in some partitions and")
    without = in_parts(frame[:200], frame[200:].drop(columns="depth"))
    refused(client, without, r"^Partition 1 has no column 'depth'; its columns are")
    far = in_parts(frame[:200].assign(y=1.0), frame[200:].assign(y=10_000.0))
    refused(client, far, "at most 30 consecutive integers", likelihood="ordinal")
    refused(client, in_parts(frame[:0], frame[:0]), "X is empty: none of its partitions has a row")


def test_the_row_of_a_wrong_value_is_that_of_its_partition(client, rng, tmp_path):
    """Rows without a value and rows without weight are counted, too."""
    frame = long_table(rng, 900).assign(w=np.arange(900) % 2.0)
    frame["y"] = frame["y"].where(frame["y"].isna(), 1.0)
    frame.loc[801, "y"] = 0.5
    expected = r"^Partition 2: y must be 0 or 1 .* got 0.5 in row 201"
    parts = in_parts(frame[:300], frame[300:600], frame[600:])
    refused(client, parts, expected, likelihood="bernoulli")
    refused(client, parts, expected, likelihood="bernoulli", sample_weight="w")
    for number in range(3):
        own = frame[300 * number : 300 * number + 300]
        own.to_parquet(tmp_path / f"{number}.parquet", row_group_size=100)
    refused(client, tmp_path, r"^File 2.parquet: .* got 0.5 in row 201", likelihood="bernoulli")
    texts = frame.astype({"y": object})
    texts.loc[801, "y"] = "oops"
    parts = in_parts(texts[:300], texts[300:])
    refused(client, parts, r"^Partition 1: .* 'oops' in row 501", sample_weight="w")
    online = TensorRing(2, inference="online-em", likelihood="bernoulli", progress=False)
    with pytest.raises(ValueError, match=r"Bernoulli likelihood, got 0\.5\. Only"):
        online.fit(tmp_path, client=client, **NAMED)  # the largest value has no row


def test_names_and_kinds_of_arguments(client, rng):
    frame = long_table(rng, 60)
    parts = dataframe.from_pandas(frame, npartitions=2)
    refused(client, parts, "sample_weight names 'ww', which is not a column", sample_weight="ww")
    refused(client, parts, "but X is no table in memory that has them", features={"day": ["h"]})
    for other in (array.ones((3, 2)), parts["y"], bag.from_sequence([1, 2])):
        refused(client, other, "X must be a Dask DataFrame, or data in memory, got a dask")
    zero = dataframe.from_pandas(frame.assign(w=0.0), npartitions=2)
    refused(client, zero, "or one with a positive sample_weight", sample_weight="w")


@pytest.mark.ci
def test_maps_are_recognised(client, rng, tmp_path):
    """Latitudes and longitudes of a key's labels, as in a table in memory."""
    frame = long_table(rng, 500)
    frame = frame.assign(lat=3.0 * frame["depth"], LON=np.sin(frame["depth"]))
    here = TensorRing(**SETTINGS).fit(frame, **NAMED)
    assert isinstance(here.prior_.modes[2], Spatial)
    parts = in_parts(frame[:200], frame[:0], frame[200:230], frame[230:])
    frame.to_parquet(tmp_path / "log.parquet", row_group_size=100)
    for source, given in ((parts, NAMED), (tmp_path, NAMED), (parts, {})):
        there = TensorRing(**SETTINGS).fit(source, client=client, **given)
        same_draws(here.posterior_, there.posterior_)
        assert there.labels_.names == tuple(MODES)
        np.testing.assert_array_equal(
            there.labels_.sites_of(2).places, here.labels_.sites_of(2).places
        )
    moved = frame.assign(lat=frame["lat"].where(frame.index != 499, 1.0))  # in the last partition
    for other in (moved, frame.assign(lat=50.0 * frame["depth"])):
        parts = in_parts(other[:200], other[200:])
        there = TensorRing(**SETTINGS).fit(parts, client=client, **NAMED)
        assert not isinstance(there.prior_.modes[2], Spatial)


def test_partitions_say_together_where_labels_lie(rng):
    """Each may know some labels only, and each may contradict another."""
    frame = long_table(rng, 90).assign(lat=lambda own: 3.0 * own["depth"], lon=1.0)
    pair, low = ("lat", "lon"), frame["depth"] < 4

    def joint(*parts):
        found = [places_in_part(part, n, pair, ["depth"]) for n, part in enumerate(parts)]
        return joint_places(found, pair)[0].rows

    assert len(joint(frame[low], frame[~low])) == frame["depth"].nunique()
    assert joint(frame, frame.assign(lat=frame["lat"] + 1.0)) is None


def test_huge_values_do_not_warn(client, rng, recwarn):
    frame = long_table(rng, 90).assign(y=1e60)
    frame.loc[3:, "y"] = 2e60
    TensorRing(**SETTINGS).fit(in_parts(frame), client=client, **NAMED)
    assert not [each for each in recwarn if "overflow" in str(each.message)]


def test_methods_that_need_data_in_memory_say_so(client, rng):
    frame = long_table(rng, 200)
    parts = dataframe.from_pandas(frame, npartitions=2)
    ring = TensorRing(**SETTINGS).fit(frame, **NAMED)
    for ask in (ring.predict, ring.predict_interval, ring.sample, ring.score, ring.fold_in):
        with pytest.raises(TypeError, match="X is a Dask DataFrame, but data in memory are"):
            ask(parts)
    with pytest.raises(TypeError, match="cells must be a Dask DataFrame"):
        ring.predict_table(parts["y"])


def test_completions_are_refused_before_the_fit(client, rng):
    frame = long_table(rng, 200)
    given = SETTINGS | NAMED | {"client": client, "likelihood": "gaussian"}
    whole = dataframe.from_pandas(frame.dropna(), npartitions=2)
    with pytest.raises(ValueError, match="there is nothing to fill: column 'y' has a value in"):
        complete(whole, **given)
    parts = dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="implicit='observed' is for sparse arrays"):
        complete(parts, implicit="observed", **given)
    with pytest.raises(ValueError, match="the table already has a column 'std'"):
        complete(parts.assign(std=1.0), **given)
    texts = frame.assign(y=frame["y"].map("{:.3f}".format).where(frame["y"].notna(), ""))
    found = complete(dataframe.from_pandas(texts, npartitions=2), **given)
    assert found.n_filled == frame["y"].isna().sum()
    assert "every row without a value is predicted" in found.notes[0]
    assert found.table["mean"].compute().notna().all()


def test_classifiers(client, rng):
    frame = long_table(rng, 400).dropna()
    frame = frame.assign(y=(frame["y"] > 1.0).astype(int))
    here = TensorRingClassifier(**SETTINGS).fit(frame, **NAMED)
    parts = dataframe.from_pandas(frame, npartitions=2)
    there = TensorRingClassifier(**SETTINGS).fit(parts, client=client, **NAMED)
    same_draws(here.posterior_, there.posterior_)
    np.testing.assert_array_equal(there.predict(frame), here.predict(frame))


def test_patterns_and_folders_that_are_keys(client, rng, tmp_path):
    frame = long_table(rng, 600)
    frame.to_parquet(tmp_path / "log", partition_cols=["sensor"])
    some = frame[frame["sensor"].isin(["s0", "s1"])]
    for path, expected in (("log", frame), ("log/sensor=s[01]", some), ("l*", frame)):
        here = TensorRing(**SETTINGS).fit(expected, **NAMED)
        there = TensorRing(**SETTINGS).fit(tmp_path / path, client=client, **NAMED)
        same_draws(here.posterior_, there.posterior_)


def fails_once(marker):
    """Work that is lost with its worker the first time."""
    if not marker.exists():
        marker.touch()
        raise OSError("the disk of this worker is gone")
    return "done"


def test_work_that_was_lost_is_done_again(client, tmp_path):
    with Cluster(client) as engine:
        assert engine.results([engine.submit("x", fails_once, tmp_path / "one")]) == ["done"]
        blocks_of_one = engine.submit("x", fails_once, tmp_path / "two")
        wait(blocks_of_one)
        assert blocks_of_one.status == "error"
        engine._mend(Placed([HeldGroup((), blocks_of_one)]))
        assert blocks_of_one.result(timeout=20) == "done"
        source = object()
        assert engine.take_back([Placed([], source)], (2, 2)) is source


@pytest.mark.ci
def test_the_last_worker_is_gone(rng, tmp_path, monkeypatch):
    """Nobody waits for ever, neither for results nor to be interrupted."""
    monkeypatch.setattr(connection, "PATIENCE", 3.0)
    monkeypatch.setattr(connection, "GLANCE", 0.2)
    scheduler = start("scheduler", tmp_path / "address", "--host", "127.0.0.1", "--port", "0")
    alone = "--nthreads", "1", "--no-nanny", "--death-timeout", "5", "--host", "127.0.0.1"
    worker = start("worker", tmp_path / "address", *alone)
    try:
        with Client(scheduler_file=str(tmp_path / "address"), timeout=30) as client:
            with Cluster(client) as engine:
                waiting = engine.submit("sleep", time.sleep, 60)
                threading.Timer(1.0, worker.kill).start()
                with pytest.raises(ClusterLost, match="has no worker, and none came within 3 sec"):
                    engine.results([waiting])
            with pytest.raises(ClusterLost, match="has no worker, and none came within 3 seconds"):
                TensorRing(**SETTINGS).fit(long_table(rng, 50), client=client, **NAMED)
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()
