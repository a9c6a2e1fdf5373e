"""Online EM on workers in other processes: the bits of one machine, whatever happens to them."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dask import dataframe, delayed
from distributed import Client, LocalCluster

from bayesring import TensorRing
from bayesring.data import batches
from bayesring.data.parquet import Coding, ParquetRows, lanes, shuffling
from bayesring.data.parquet.frames import FramePartition
from bayesring.engine import dask as module
from bayesring.engine import remoterows
from bayesring.engine.dask import ClusterLost
from bayesring.engine.gradients import BatchSums
from bayesring.engine.remoteframes import SpreadFrame, tally_partition
from bayesring.infer import members, online
from tests.cluster.local import MODES, OPTIONS, kill_one, long_table, make_whole, same_draws, start
from tests.cluster.serial import Serial

pytestmark = pytest.mark.filterwarnings("ignore::bayesring.data.traps.DataWarning")
SETTINGS = {
    "rank": 2,
    "inference": "online-em",
    "epochs": 2,
    "random_state": 3,
    "progress": False,
    "n_jobs": 1,
}


@pytest.fixture
def log(rng, tmp_path):
    """Files with row groups of several sizes, and gaps."""
    folder = tmp_path / "log"
    folder.mkdir()
    frame = long_table(rng, 2_400)
    frame[:1_300].to_parquet(folder / "a.parquet", row_group_size=180)
    frame[1_300:].to_parquet(folder / "b.parquet", row_group_size=333)
    return folder


@pytest.fixture
def large(monkeypatch):
    """Batches of 200 rows are large ones of 4 blocks; lanes hold few rows at a time."""
    monkeypatch.setattr(batches, "LARGE", 100)
    monkeypatch.setattr(online, "LARGE", 100)
    monkeypatch.setattr(members, "LARGE", 100)
    monkeypatch.setattr(batches, "BLOCK_ROWS", 50)
    for each in (lanes, shuffling):
        monkeypatch.setattr(each, "POOL", 1_500)
        monkeypatch.setattr(each, "BATCH", 400)
        monkeypatch.setattr(each, "LANES", 3)


def fit(data, **given):
    settings = SETTINGS | {name: given.pop(name) for name in list(given) if name in SETTINGS_TOO}
    return TensorRing(**settings).fit(data, modes=MODES, value="y", **given)


SETTINGS_TOO = {"batch_size", "epochs", "chains"}


def same(one, other):
    same_draws(one.posterior_, other.posterior_)
    np.testing.assert_array_equal(one.estimates_[0].cores, other.estimates_[0].cores)
    for own, its in zip(one.labels_.levels, other.labels_.levels, strict=True):
        np.testing.assert_array_equal(own, its)
    if one.held_out_ is not None:
        np.testing.assert_array_equal(one.held_out_.mean, other.held_out_.mean)


def test_small_batches_of_files(client, log, monkeypatch):
    """Rows come from the workers in every pass; few would come once."""
    monkeypatch.setattr(remoterows, "FEW", 0)
    same(fit(log), fit(log, client=client))


@pytest.mark.parametrize("few", [0, 100])
def test_rows_come_in_the_order_that_is_asked_for(few):
    """Of one lane: row groups apart from each other, and next to each other."""
    rows = np.arange(18, dtype=np.int32).reshape(9, 2)
    lane = remoterows.CodedLane(rows, ((2,), (3,), (1, 3)))
    here = [lane] if len(rows) <= few else None
    held = remoterows.HeldLanes([lane], [lane.sizes], [slice(0, 3)], here)
    cluster = Serial()
    for order, expected in (([2, 0], [5, 6, 7, 8, 0, 1]), ([1, 2, 0], [2, 3, 4, 5, 6, 7, 8, 0, 1])):
        pool = np.zeros_like(rows)
        placed = remoterows.RemoteLane(cluster, held, order).fill(pool)
        np.testing.assert_array_equal(pool[:placed], rows[expected])
    assert bool(cluster.names) == (here is None)


@pytest.mark.usefixtures("large")
def test_large_batches_of_files(client, log):
    here = fit(log, batch_size=200)
    same(here, fit(log, batch_size=200, client=client))
    assert not np.array_equal(here.estimates_[0].cores, fit(log).estimates_[0].cores)


@pytest.mark.ci
@pytest.mark.usefixtures("large")
def test_large_batches_of_arrays(client, rng, monkeypatch):
    """Rows go from here to the workers; few Dask partitions come here first."""
    frame = long_table(rng, 900)
    monkeypatch.setattr(module, "INLINE", 0)
    monkeypatch.setattr(online, "MOST_SAMPLED", 0)
    here = fit(frame, batch_size=200, chains=2)
    same(here, fit(frame, batch_size=200, chains=2, client=client))
    parts = dataframe.from_pandas(frame, npartitions=3)
    same(here, fit(parts, batch_size=200, chains=2, client=client))


@pytest.mark.ci
def test_chains_around_the_rings_run_there(client, rng):
    frame = long_table(rng, 400)
    same(fit(frame, epochs=1, chains=1), fit(frame, epochs=1, chains=1, client=client))


@pytest.mark.ci
@pytest.mark.usefixtures("large")
def test_a_killed_worker_changes_nothing(client, log, monkeypatch):
    """Its lanes are read again, and its sums made again."""
    here, seen = fit(log, batch_size=200), []
    whole = module.Cluster.batch_sums

    def killing(*arguments):
        seen.append(arguments)
        if len(seen) in (10, 30):
            kill_one(client, len(seen) // 10)
        return whole(*arguments)

    monkeypatch.setattr(module.Cluster, "batch_sums", killing)
    same(here, fit(log, batch_size=200, client=client))
    assert len(seen) > 30
    make_whole(client)


@pytest.mark.ci
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("n_workers", [1, 3])
def test_any_number_of_workers(log, n_workers):
    with LocalCluster(n_workers=n_workers, **OPTIONS) as local, Client(local) as client:
        same(fit(log, batch_size=200), fit(log, batch_size=200, client=client))
        same(fit(log), fit(log, client=client))


@pytest.mark.ci
@pytest.mark.usefixtures("large")
def test_the_scheduler_is_lost(log, tmp_path, monkeypatch):
    """A clear error; with a checkpoint, the fit goes on elsewhere and ends with the same bits.

    Batches are large: small ones of few rows are mixed by the driver and need nobody else.
    """
    here, state = fit(log, batch_size=200, epochs=8), tmp_path / "state"
    given = {"batch_size": 200, "epochs": 8, "checkpoint": state, "checkpoint_every": 0.0}
    scheduler = start("scheduler", tmp_path / "address", "--host", "127.0.0.1", "--port", "0")
    alone = "--nthreads", "1", "--no-nanny", "--death-timeout", "5", "--host", "127.0.0.1"
    worker = start("worker", tmp_path / "address", *alone)

    def kill_scheduler():
        while not any("ring-0" in path.name for path in state.rglob("*")):
            time.sleep(0.02)
        scheduler.kill()

    killer = threading.Thread(target=kill_scheduler, daemon=True)
    killer.start()
    client = Client(scheduler_file=str(tmp_path / "address"), timeout=30)
    with pytest.raises(ClusterLost, match="the same call goes on from the last saved state"):
        fit(log, **given, client=client)
    killer.join()
    client.close()
    worker.kill()
    worker.wait()
    scheduler.wait()
    with LocalCluster(n_workers=1, **OPTIONS) as other, Client(other) as again:
        same(here, fit(log, **given, client=again))


def test_a_bad_row_is_named(client, rng, tmp_path):
    frame = long_table(rng, 900)
    frame.loc[777, "day"] = None
    frame.to_parquet(tmp_path / "wrong.parquet", row_group_size=200)
    expected = r"File wrong.parquet, row 777, column 'day': no key; every row must say which cell"
    with pytest.raises(ValueError, match=expected):
        fit(tmp_path, client=client)


def test_a_later_batch_of_a_dask_frame_is_refused(client, rng):
    frame = long_table(rng, 400)
    ring = fit(frame, epochs=1, chains=1)
    with pytest.raises(ValueError, match="X is a Dask DataFrame, and partial_fit learns from"):
        ring.partial_fit(dataframe.from_pandas(frame, npartitions=2))


@pytest.fixture
def many(monkeypatch):
    """Frames of a hundred rows stay on the cluster."""
    monkeypatch.setattr("bayesring.oncluster.COMPACT", 100)


def partitions_and_files(frame, cuts, folder):
    """A Dask DataFrame, one of its partitions empty, and files whose row groups are the others."""
    pieces = [frame[a:b] for a, b in pairwise([0, *cuts, len(frame)])]
    for number, own in enumerate(pieces):
        if len(own):
            own.to_parquet(folder / f"{number}.parquet", index=False)
    return dataframe.from_delayed([delayed(own) for own in pieces], meta=frame[:0])


CUTS = [180, 500, 500, 833, 1_300, 1_666, 2_000]


@pytest.mark.usefixtures("large", "many")
@pytest.mark.ci
def test_partitions_are_row_groups(client, rng, tmp_path):
    """A large Dask DataFrame is as files with these row groups, here or there."""
    frame = long_table(rng, 2_400)
    parts = partitions_and_files(frame, CUTS, tmp_path)
    here, there = fit(tmp_path, batch_size=200), fit(parts, batch_size=200, client=client)
    same(here, there)
    assert there.n_observations_ == here.n_observations_ < len(frame)
    assert there.table_kind_ == "pandas"
    assert there.labels_.zones == here.labels_.zones
    same(fit(tmp_path), fit(parts, client=client))


@pytest.mark.ci
@pytest.mark.usefixtures("large", "many")
def test_lost_partitions_are_computed_again(rng, tmp_path, monkeypatch):
    """Three workers, of which two are killed one after the other."""
    parts = partitions_and_files(long_table(rng, 2_400), CUTS, tmp_path)
    here, seen = fit(tmp_path, batch_size=200), []
    whole = module.Cluster.batch_sums
    with LocalCluster(n_workers=3, **OPTIONS) as local, Client(local) as client:

        def killing(*arguments):
            seen.append(arguments)
            if len(seen) in (10, 30):
                kill_one(client, len(seen) // 10)
            return whole(*arguments)

        monkeypatch.setattr(module.Cluster, "batch_sums", killing)
        same(here, fit(parts, batch_size=200, client=client))
    assert len(seen) > 30


@pytest.mark.usefixtures("many")
def test_frames_with_more_than_values_are_refused(client, rng):
    frame = long_table(rng, 400).assign(weight=1.0)
    parts = dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="learns from keys and values alone, but X is a Dask Data"):
        fit(parts, client=client, sample_weight="weight")


def partition(frame, number=0):
    return FramePartition(frame, number, tuple(MODES), "y")


def test_partitions_with_faults_are_named(rng):
    frame = long_table(rng, 60)
    other = frame.assign(depth=frame["depth"].astype(str))
    cluster = Serial()
    rows = SpreadFrame(
        cluster, lambda: [partition(frame), partition(other, 1)], tuple(MODES), "y", 120
    )
    expected = r"^Partition 1, column 'depth': holds string, but int64 in partition 0; a column"
    with pytest.raises(ValueError, match=expected):
        rows.survey()
    frame.loc[17, "day"] = None
    with pytest.raises(ValueError, match=r"^Partition 3, row 17, column 'day': no key; every row"):
        tally_partition(partition(frame, 3))
    lengths = iter([60, 59])
    rows = SpreadFrame(
        cluster, lambda: [partition(long_table(rng, next(lengths)))], tuple(MODES), "y", 60
    )
    coding = Coding(rows.survey().labels)
    with pytest.raises(ValueError, match="Partition 0 has changed while it was read: it had 60 ro"):
        rows.take(coding, np.arange(5))


def test_missing_and_odd_columns(rng):
    """NaN is missing in every type of column; categories are labels."""
    frame = long_table(rng, 80)
    plain = tally_partition(partition(frame))[1]
    numbers = pa.array(frame["y"].to_numpy(), from_pandas=False)  # NaN is no null there
    odd = frame.astype({"sensor": "category"}).assign(y=pd.arrays.ArrowExtensionArray(numbers))
    found = tally_partition(partition(odd))[1]
    assert found.summaries == plain.summaries
    for own, its in zip(found.levels + found.counts, plain.levels + plain.counts, strict=True):
        np.testing.assert_array_equal(own, its)
    with pytest.raises(ValueError, match=r"^Partition 0, column 'y': holds .*, but numbers are"):
        partition(frame.assign(y="1"))


def test_sums_of_batches_have_all_their_parts():
    one = BatchSums(np.array([1.0]), np.array([2.0]), np.array([3.0]), np.array([4]))
    both = one.copy().plus(one.plus(one.copy()))
    for number, part in enumerate(both, start=1):
        np.testing.assert_array_equal(part, [3 * number])


def test_lanes_are_coded_again_in_other_units(log):
    """And again without other rows."""
    rows = remoterows.SpreadFiles(Serial(), log, MODES, "y")
    labels = rows.survey().labels
    first = rows._hold(Coding(labels, 0.0, 1.0), np.empty(0, dtype=np.int64))
    other = rows._hold(Coding(labels, 1.0, 2.0), np.empty(0, dtype=np.int64))
    fewer = rows._hold(Coding(labels, 1.0, 2.0), np.array([0, 1]))
    values, others = (held.futures[0].rows[:, -1].view(np.float32) for held in (first, other))
    np.testing.assert_allclose(others, (values - 1) / 2, atol=1e-6)
    assert len(fewer.futures[0].rows) == len(values) - 2


def test_a_checkpoint_knows_the_rows_wherever_they_are_read(log):
    """A fit that began on one machine goes on on a cluster, but never with other rows."""
    here = ParquetRows(log, MODES, "y", 2)
    coding = Coding(here.survey().labels, 0.5, 2.0)
    digests = here.fingerprint(coding)
    assert len(set(digests)) == len(digests) == 12, "one for every row group"
    assert remoterows.SpreadFiles(Serial(3), log, MODES, "y").fingerprint(coding) == digests
