"""A fit on workers in other processes has the bits of a fit here, whatever happens to them."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import dask
import numpy as np
import pytest
from dask import dataframe
from distributed import Client, LocalCluster, WorkerPlugin

from bayesring import TensorRing, __version__
from bayesring.data import blocks
from bayesring.data.observations import Observations
from bayesring.engine import connection
from bayesring.engine import dask as module
from bayesring.engine.dask import Cluster, ClusterLost
from bayesring.engine.operations import JOINT, UPDATES
from bayesring.engine.spread import spread_over
from bayesring.engine.streams import Streams
from bayesring.engine.threads import Threads
from bayesring.infer import gibbs
from bayesring.infer.problem import Method, make_problem
from bayesring.model.types import Axis, RingSize
from bayesring.priors import Circular, NormalGamma, NormalWishart, RingPrior, Smooth, Spatial
from tests.cluster.local import (
    MODES,
    OPTIONS,
    kill_one,
    long_table,
    make_whole,
    pretend_few_are_many,
    same_draws,
    start,
)
from tests.models import LIKELIHOODS, name_of, random_coords

pytestmark = pytest.mark.filterwarnings("ignore::bayesring.data.traps.DataWarning")
SETTINGS = {"rank": 2, "warmup": 2, "draws": 2, "chains": 2, "random_state": 3, "progress": False}


def scans(engine, likelihood, prior=None, update=JOINT, n_scans=2, rng=None):
    """A few scans of small data in many blocks; slices of the first mode are cut."""
    rng = np.random.default_rng(4) if rng is None else rng
    shape = (3, 20, 8)
    coords = random_coords(rng, shape, 900)
    nuisance = likelihood.draw_nuisance(rng)
    values = likelihood.simulate(rng, np.sin(coords).sum(axis=1), nuisance)
    data, streams = Observations(coords, values, shape), Streams.of_chain(7, 0)
    prior = (prior or RingPrior.of(NormalWishart())).bind([Axis.of_coordinates(n) for n in shape])
    problem = make_problem(data, likelihood, prior, Method(update, block_size=100), engine)
    state = gibbs.init(streams, problem, RingSize(1, (2, 3, 2)))
    for scan in range(1, n_scans + 1):
        state, info = gibbs.step(streams, scan, state, problem, engine)
    return [*state.cores, *state.weights, state.nuisance, info.statistics]


def same(one, other):
    for own, its in zip(one, other, strict=True):
        np.testing.assert_array_equal(own, its)


@pytest.fixture(scope="module")
def cluster(client):
    with Cluster(client) as engine:
        yield engine


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_every_likelihood(cluster, likelihood):
    same(scans(cluster, likelihood), scans(Threads(1), likelihood))


def test_ordered_modes_and_entries(cluster):
    ordered = RingPrior.of(NormalWishart(), Smooth(), NormalWishart())
    same(
        scans(cluster, LIKELIHOODS[0], ordered, n_scans=8),
        scans(Threads(1), LIKELIHOODS[0], ordered, n_scans=8),
    )
    circular = RingPrior.of(NormalWishart(), Circular(21.0), NormalWishart())
    same(
        scans(cluster, LIKELIHOODS[0], circular, n_scans=3),
        scans(Threads(1), LIKELIHOODS[0], circular, n_scans=3),
    )
    alone = LIKELIHOODS[0], RingPrior.of(NormalGamma()), UPDATES["entry"]
    same(scans(cluster, *alone), scans(Threads(1), *alone))


def test_modes_on_a_map(client, rng):
    coords = random_coords(rng, (30, 4, 5), 500)
    values, where = np.sin(coords).sum(axis=1), {0: rng.random((30, 2))}
    here = TensorRing(**SETTINGS).fit(coords, values, positions=where)
    there = TensorRing(**SETTINGS).fit(coords, values, positions=where, client=client)
    assert isinstance(there.prior_.modes[0], Spatial)
    same_draws(here.posterior_, there.posterior_)


def test_a_core_is_sent_when_it_has_changed(cluster, monkeypatch):
    """Large rings go out core by core, each once for all groups and modes until it changes."""
    monkeypatch.setattr(module, "INLINE", 0)
    sent = []
    scatter = cluster.client.scatter

    def counted(data, **options):
        sent.extend(name.rsplit("-", 1)[0] for name in data)
        return scatter(data, **options)

    monkeypatch.setattr(cluster.client, "scatter", counted)
    same(scans(cluster, LIKELIHOODS[0], n_scans=3), scans(Threads(1), LIKELIHOODS[0], n_scans=3))
    cores = [name for name in sent if name.startswith("core")]
    assert len(cores) == 3 + 3 * 3  # all at first, and one after each draw


@pytest.fixture
def few_are_many(client, monkeypatch):
    """Data of a thousand observations stay on the cluster."""
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 150)
    pretend_few_are_many(1_000)
    client.run(pretend_few_are_many, 1_000)
    yield
    pretend_few_are_many(500_000)
    client.run(pretend_few_are_many, 500_000)


@pytest.mark.ci
@pytest.mark.usefixtures("few_are_many")
def test_dask_frames_and_files(client, rng, tmp_path):
    frame = long_table(rng, 2_000)
    here = TensorRing(**SETTINGS).fit(frame, modes=MODES, value="y")
    parts = dataframe.from_pandas(frame, npartitions=5)
    there = TensorRing(**SETTINGS).fit(parts, modes=MODES, value="y", client=client)
    same_draws(here.posterior_, there.posterior_)
    assert there.n_observations_ == here.n_observations_
    for own, other in zip(here.labels_.levels, there.labels_.levels, strict=True):
        np.testing.assert_array_equal(own, other)
    frame.to_parquet(tmp_path / "log.parquet", row_group_size=300)
    there = TensorRing(**SETTINGS).fit(tmp_path, modes=MODES, value="y", client=client)
    same_draws(here.posterior_, there.posterior_)


def test_few_observations_come_here(client, rng):
    frame = long_table(rng, 300)
    here = TensorRing(**SETTINGS).fit(frame, modes=MODES, value="y")
    parts = dataframe.from_pandas(frame, npartitions=3)
    there = TensorRing(**SETTINGS).fit(parts, modes=MODES, value="y", client=client)
    same_draws(here.posterior_, there.posterior_)
    assert there.observed_ is not None


def killing(client, times, gap):
    """Kill a worker every now and then, in the background."""

    def run():
        for number in range(times):
            time.sleep(gap)
            kill_one(client, number)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_killed_worker_changes_nothing(client):
    """Its blocks are sent again."""
    with Cluster(client) as engine:
        killer = killing(client, 1, 0.5)
        found = scans(engine, LIKELIHOODS[0], n_scans=15)
        killer.join()
    same(found, scans(Threads(1), LIKELIHOODS[0], n_scans=15))
    make_whole(client)


@contextmanager
def cluster_of(n_workers):
    """A cluster that may be treated badly, its client and an engine."""
    with (
        LocalCluster(n_workers=n_workers, **OPTIONS) as local,
        Client(local) as client,
        Cluster(client) as engine,
    ):
        yield local, client, engine


@pytest.mark.ci
def test_a_worker_that_dask_gives_up_comes_back(monkeypatch):
    """Dask closes the nanny of a worker that takes longer to start anew than it waits."""
    monkeypatch.setattr(connection, "PATIENCE", 120.0)
    timeout = "distributed.deploy.lost-worker-timeout"
    with cluster_of(1) as (local, client, engine):
        nanny = local.workers[0]

        def lose():
            with dask.config.set({timeout: "1ms"}):
                kill_one(client)
                while local.workers.get(0) is nanny:
                    time.sleep(0.01)

        whole = engine.map_blocks

        def losing(*arguments):
            lose()
            engine.map_blocks = whole
            return whole(*arguments)

        engine.map_blocks = losing
        found = scans(engine, LIKELIHOODS[0])
        assert engine.map_blocks == whole
    same(found, scans(Threads(1), LIKELIHOODS[0]))


@pytest.mark.ci
def test_workers_that_were_sent_away_stay_away():
    """Only a cluster without any worker is asked for more."""
    with LocalCluster(n_workers=2, **OPTIONS) as local, Client(local) as client:
        client.retire_workers([next(iter(client.nthreads()))])
        for name, nanny in list(local.workers.items()):
            if nanny.worker_address not in client.nthreads():
                client.sync(nanny.close)
                local.workers.pop(name)
        with Cluster(client) as engine:
            scans(engine, LIKELIHOODS[0])
            assert len(client.nthreads()) == 1


@pytest.mark.ci
@pytest.mark.parametrize("refused", [0, 2])
def test_a_worker_that_was_closed_is_replaced(refused, monkeypatch):
    """Dask refuses a worker while another of its name says goodbye: it is asked for anew."""
    asked, bring_back = [], connection.bring_back

    def refusing(client):
        asked.append(client)
        if len(asked) > refused:
            bring_back(client)

    monkeypatch.setattr(connection, "bring_back", refusing)
    slow = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with slow, cluster_of(2) as (local, client, engine):
        for nanny in list(local.workers.values()):
            client.sync(nanny.close)
        found = scans(engine, LIKELIHOODS[0])
        make_whole(client)
        assert len(local.worker_spec) == 2
    same(found, scans(Threads(1), LIKELIHOODS[0]))


@pytest.mark.ci
def test_blocks_wait_for_a_worker():
    """A cluster whose only worker starts anew when blocks are laid out."""
    with cluster_of(1) as (_, client, engine):
        kill_one(client)
        while client.nthreads():
            time.sleep(0.01)
        found = scans(engine, LIKELIHOODS[0])
    same(found, scans(Threads(1), LIKELIHOODS[0]))


@pytest.mark.ci
@pytest.mark.usefixtures("few_are_many")
def test_lost_blocks_are_read_again(client, rng, tmp_path):
    """Data that live on the cluster: what a worker held is made again from the files."""
    long_table(rng, 2_400).to_parquet(tmp_path / "log.parquet", row_group_size=300)
    streams, model = Streams.of_chain(7, 0), (LIKELIHOODS[0], RingPrior.of(NormalWishart()))

    def some_scans(kills):
        with Cluster(client) as engine:
            read = engine.read_files(tmp_path, tuple(MODES), "y")
            data = spread_over(engine, read, MODES, "y")[0].standardised(1.0, 1.0)
            problem = make_problem(data, *model, engine=engine)
            state = gibbs.init(streams, problem, RingSize(1, (2, 3, 2)))
            for scan in range(1, 5):
                if scan in kills:
                    kill_one(client, scan)
                state, info = gibbs.step(streams, scan, state, problem, engine)
        return [*state.cores, *state.weights, state.nuisance, info.statistics]

    same(some_scans(kills=()), some_scans(kills=(2, 3)))
    make_whole(client)


@pytest.mark.usefixtures("few_are_many")
def test_malformed_files_are_named(client, rng, tmp_path):
    frame = long_table(rng, 900)
    frame.to_parquet(tmp_path / "good.parquet")
    frame.loc[777, "day"] = None
    frame.to_parquet(tmp_path / "wrong.parquet", row_group_size=200)
    expected = r"File wrong.parquet, row 777, column 'day': no key; every row must say which cell"
    with pytest.raises(ValueError, match=expected):
        TensorRing(**SETTINGS).fit(tmp_path, modes=MODES, value="y", client=client)
    parts = dataframe.from_pandas(frame.astype({"sensor": object}), npartitions=3)
    with pytest.raises(ValueError, match=r"^Partition 2: column 'day' has no key in row 177"):
        TensorRing(**SETTINGS).fit(parts, modes=MODES, value="y", client=client)


def test_another_version_is_refused(client, monkeypatch):
    monkeypatch.setattr(client, "run", lambda *_, **__: {"tcp://somewhere:1": "0.0.1"})
    expected = (
        f"Worker tcp://somewhere:1 has bayesring 0.0.1, but bayesring {__version__} is needed"
    )
    with pytest.raises(RuntimeError, match=expected.replace("+", r"\+")), Cluster(client):
        pass
    monkeypatch.setattr(client, "run", lambda *_, **__: {"tcp://somewhere:1": None})
    with pytest.raises(RuntimeError, match="has no bayesring"), Cluster(client):
        pass


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"client": "tcp://127.0.0.1:1"}, "client must be a distributed.Client, got str"),
        ({"y": [1.0]}, "X is a Dask DataFrame: value must name its column of values"),
        ({"shape": (3, 4)}, "X is a Dask DataFrame, whose labels say the shape"),
        ({"exposure": [1.0]}, "X is a Dask DataFrame: exposure must be the name of a column"),
    ],
)
def test_bad_arguments(client, rng, arguments, expected):
    parts = dataframe.from_pandas(long_table(rng, 30), npartitions=2)
    given = {"modes": MODES, "value": "y", "client": client} | arguments
    with pytest.raises((TypeError, ValueError), match=expected):
        TensorRing(**SETTINGS).fit(parts, **given)


@pytest.mark.ci
def test_the_scheduler_is_lost(rng, tmp_path):
    """A clear error; with a checkpoint, the fit goes on elsewhere and ends with the same bits."""
    frame = long_table(rng, 500)
    settings = SETTINGS | {"warmup": 10, "draws": 40}
    here = TensorRing(**settings).fit(frame, modes=MODES, value="y")
    state = tmp_path / "state"
    given = {"modes": MODES, "value": "y", "checkpoint": state, "checkpoint_every": 0.0}

    scheduler = start("scheduler", tmp_path / "address", "--host", "127.0.0.1", "--port", "0")
    alone = "--nthreads", "1", "--no-nanny", "--death-timeout", "5", "--host", "127.0.0.1"
    worker = start("worker", tmp_path / "address", *alone)

    def kill_scheduler():
        while not any("chain" in path.name for path in state.rglob("*")):
            time.sleep(0.05)
        scheduler.kill()

    killer = threading.Thread(target=kill_scheduler, daemon=True)
    killer.start()
    client = Client(scheduler_file=str(tmp_path / "address"), timeout=30)
    with pytest.raises(ClusterLost, match="the same call goes on from the last saved state"):
        TensorRing(**settings).fit(frame, **given, client=client)
    killer.join()
    client.close()
    worker.kill()
    worker.wait()
    scheduler.wait()
    with LocalCluster(n_workers=1, **OPTIONS) as other, Client(other) as again:
        there = TensorRing(**settings).fit(frame, **given, client=again)
    same_draws(here.posterior_, there.posterior_)


@pytest.mark.ci
@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("n_workers", [3, 2, 1])
def test_any_number_of_workers_and_many_kills(rng, n_workers):
    """Held-out cells included; workers are killed while blocks are made and while chains run."""
    frame = long_table(rng, 2_400)
    settings = SETTINGS | {"warmup": 80, "draws": 4, "chains": 1}
    here = TensorRing(**settings).fit(frame, modes=MODES, value="y")
    assert here.held_out_ is not None
    parts = dataframe.from_pandas(frame, npartitions=5)
    with LocalCluster(n_workers=n_workers, **OPTIONS) as local, Client(local) as client:
        client.run(pretend_few_are_many, 1_000)
        client.register_plugin(Patched())
        killer = killing(client, 4, 5.0)
        there = TensorRing(**settings).fit(parts, modes=MODES, value="y", client=client)
        killer.join()
    same_draws(here.posterior_, there.posterior_)
    np.testing.assert_array_equal(here.held_out_.mean, there.held_out_.mean)


class Patched(WorkerPlugin):
    """Workers that come later are told, too."""

    def setup(self, worker):
        pretend_few_are_many(1_000)
