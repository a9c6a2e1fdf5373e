"""One seed, one result: the same bits on any number of threads, for any number of blocks each."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from bayesring import TensorRing
from bayesring.data.blocks import Block, blocks_of_modes
from bayesring.data.observations import Observations
from bayesring.engine import threads as module
from bayesring.engine.operations import UPDATES, StatisticsTask
from bayesring.engine.streams import Purpose, Streams
from bayesring.engine.threads import ONE_THREAD, Threads
from bayesring.infer import gibbs
from bayesring.infer.chains import Sampling, run_chains
from bayesring.infer.length import Length
from bayesring.infer.problem import Method, make_problem
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model import ring
from bayesring.model.rank import Adaption, FixedRank, StrandGrowth
from bayesring.model.spec import Model
from bayesring.model.types import RingSize
from bayesring.priors import GammaProcess, NormalGamma, RingPrior
from tests.models import CORE_PRIORS, LIKELIHOODS, SAMPLERS, name_of, random_coords

SHAPE = (3, 40, 30)
GAUSSIAN = Gaussian(2.0, 2.0, 3.0)
QUICK = (Gaussian, Bernoulli)
"""Likelihoods in `make test`; the others are in `make test-ci`."""


def make_data(rng, likelihood, n=600):
    coords = random_coords(rng, SHAPE, n)
    values = likelihood.simulate(rng, rng.standard_normal(n), likelihood.initial_nuisance())
    return Observations(coords, values, SHAPE)


def run_on(n_jobs, data, model, sampling):
    """An outcome on so many threads."""
    with Threads(n_jobs) as engine:
        return run_chains(data, model, sampling, engine)


def empty_blocks(n):
    """Blocks for maps that do not look into them."""
    none = np.empty((1, 0), dtype=np.int32), np.empty(0)
    return [Block(0, number, number, np.array([0, 0]), *none, False) for number in range(n)]


def assert_same(one, two):
    for (draws, trace), (other_draws, other_trace) in zip(one, two, strict=True):
        for a, b in zip(draws, other_draws, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(trace.rank, other_trace.rank)
        np.testing.assert_array_equal(trace.log_likelihood, other_trace.log_likelihood)


@pytest.mark.parametrize("rank", [FixedRank(3), FixedRank(12), FixedRank(2, strands=5)], ids=str)
@pytest.mark.parametrize(("likelihood", "core_prior", "update"), SAMPLERS, ids=name_of)
def test_same_bits_on_one_and_two_threads(rng, likelihood, core_prior, update, rank):
    """Many small blocks, some of them parts of one large slice."""
    data, prior = make_data(rng, likelihood), RingPrior.of(core_prior)
    assert any(block.is_part for block in blocks_of_modes(data, 64)[0])
    method = Method(UPDATES[update], block_size=64)
    model, sampling = Model(likelihood, prior, rank), Sampling(Length(2, 2, 2**30), 5, 1, method)
    results = [run_on(n_jobs, data, model, sampling).chains for n_jobs in (1, 2, 3)]
    assert_same(results[0], results[1])
    assert_same(results[0], results[2])


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(Adaption(every=2, kappa1=-1e-9, threshold=0.0), marks=pytest.mark.ci),
        StrandGrowth(every=6),
    ],
    ids=name_of,
)
@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(each, id=name_of(each), marks=() if type(each) in QUICK else pytest.mark.ci)
        for each in LIKELIHOODS
    ],
)
def test_same_bits_with_adaption_and_chains_side_by_side(rng, likelihood, policy):
    """With held-out calibration of the noise too, where the likelihood has it."""
    data, prior = make_data(rng, likelihood), RingPrior.of(CORE_PRIORS[-1])
    if isinstance(likelihood, Gaussian):
        likelihood = Gaussian()
    model = Model(likelihood, prior, policy)
    sampling = Sampling(Length(90, 3, 2**30), 5, 3, Method(block_size=100))
    results = [run_on(n_jobs, data, model, sampling) for n_jobs in (1, 2)]
    assert results[0].likelihood == results[1].likelihood
    results = [each.chains for each in results]
    assert_same(*results)
    assert results[0][0][1].rank.max() > 2
    first, second = results[0][0][0].flat, results[0][1][0].flat
    assert first.shape != second.shape or not np.allclose(first, second)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_same_bits_whoever_maps_the_blocks(rng, likelihood):
    """One worker taking every block in reverse order still gives the blocks' own results."""
    prior, method = RingPrior.of(CORE_PRIORS[-1]), Method(block_size=64)
    problem = make_problem(make_data(rng, likelihood), likelihood, prior, method)
    asked = []

    class Backwards(Threads):
        def map_blocks(self, operation, task, blocks):
            asked.append(len(blocks))
            return [operation(task, block) for block in tuple(blocks)[::-1]][::-1]

    streams = Streams.of_chain(1, 0)
    state = gibbs.init(streams, problem, RingSize(2, (3, 3, 3)))
    forwards_state, _ = gibbs.step(streams, 1, state, problem)
    backwards_state, _ = gibbs.step(streams, 1, state, problem, Backwards())
    assert len(asked) == 4
    assert max(asked) > 3
    for one, two in zip(forwards_state.cores, backwards_state.cores, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("update", UPDATES)
def test_slices_of_many_blocks_are_those_of_one(rng, monkeypatch, update):
    """Cut or not: with the same noise for the same slice, it does not matter where blocks begin."""
    likelihood, prior = GAUSSIAN, RingPrior((NormalGamma(),), GammaProcess(3.0))
    data, size = make_data(rng, likelihood), RingSize(2, (2, 3, 2))
    one, many = (
        make_problem(data, likelihood, prior, Method(UPDATES[update], n)) for n in (10_000, 64)
    )
    assert all(len(own) > 2 for own in many.views)
    assert any(block.is_part for block in many.views[0]) == UPDATES[update].cuts_slices
    noise = [rng.standard_normal((n, np.prod(size.core_shape(d, 1)))) for d, n in enumerate(SHAPE)]
    right = Streams.rng

    def by_slice(self, scan, purpose, mode=0, number=0):
        if purpose is not Purpose.SLICES:
            return right(self, scan, purpose, mode, number)
        first = problem.views[mode][number].first

        def standard_normal(shape):
            n_slices = shape[0] if isinstance(shape, tuple) else 1
            return noise[mode][first : first + n_slices].reshape(shape)

        return SimpleNamespace(standard_normal=standard_normal)

    monkeypatch.setattr(Streams, "rng", by_slice)
    streams, scans = Streams.of_chain(1, 0), []
    for problem in (one, many):
        state = gibbs.init(streams, problem, size)
        for scan in (1, 2, 3):
            state, _ = gibbs.step(streams, scan, state, problem)
        scans.append(state)
    for found, expected in zip(scans[1].cores, scans[0].cores, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(scans[1].nuisance, scans[0].nuisance, rtol=1e-7)


def test_statistics_of_many_blocks_add_up_to_those_of_one(rng):
    likelihood = LIKELIHOODS[1]  # whose statistics are not drawn
    data = make_data(rng, likelihood)
    prior = RingPrior.of(CORE_PRIORS[0])
    one, many = (
        make_problem(data, likelihood, prior, Method(block_size=size)) for size in (10_000, 50)
    )
    assert len(one.views[0]) == 1
    assert len(many.views[0]) > 3
    streams = Streams.of_chain(1, 0)
    state = gibbs.init(streams, one, RingSize(2, (2, 2, 2)))
    task = StatisticsTask(ring.flatten(state.cores), likelihood, state.nuisance, streams, 1)
    statistics = [ONE_THREAD.statistics(task, problem.views[0]) for problem in (one, many)]
    np.testing.assert_allclose(*statistics, rtol=1e-12)


def test_estimator_gives_the_same_predictions_on_any_number_of_threads(rng):
    data = make_data(rng, LIKELIHOODS[-1])
    predictions = []
    for n_jobs in (1, 2):
        model = TensorRing(
            2, warmup=5, draws=5, n_jobs=n_jobs, random_state=3, progress=False, shape=SHAPE
        ).fit(data.coords, data.values)
        predictions.append(
            [
                *model.predict(data.coords, return_std=True),
                *model.predict_interval(data.coords),
                model.sample(data.coords, 7),
                *model.predict_tensor(return_std=True),
            ]
        )
    for one, two in zip(*predictions, strict=True):
        np.testing.assert_array_equal(one, two)


def test_order_of_rows_does_not_matter(rng):
    """To the bit, with observations held out."""
    data = make_data(rng, Gaussian())
    shuffle = rng.permutation(len(data.values))
    one, two = (
        TensorRing(2, warmup=90, draws=5, random_state=3, progress=False, shape=SHAPE)
        .fit(data.coords[rows], data.values[rows])
        .predict(data.coords)
        for rows in (slice(None), shuffle)
    )
    np.testing.assert_array_equal(one, two)


def test_fits_side_by_side_give_the_bits_of_fits_alone(rng):
    """The limit on BLAS is one of the whole process: overlapping fits share it and put it back."""
    data = make_data(rng, Gaussian())

    def fit(draws):
        model = TensorRing(9, warmup=4, draws=draws, random_state=3, progress=False, shape=SHAPE)
        return model.fit(data.coords, data.values).predict(data.coords)

    def blas_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = blas_threads()
    alone = [fit(draws) for draws in (3, 30)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(fit, (3, 30)))
    for one, two in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, two)
    assert blas_threads() == before


def test_the_first_failure_stops_all_chains():
    """The chain that fails is named, and an endless one does not keep it waiting."""

    def work(chain):
        if chain == 1:
            raise ValueError("chain 1 failed")
        while True:
            list(threads.map_blocks(number_of, None, empty_blocks(1)))

    with Threads(2) as threads, pytest.raises(ValueError, match="chain 1 failed"):
        threads.map_chains(work, [0, 1, 2])


def number_of(task, block):
    return block.number


def test_an_engine_that_was_stopped_can_be_opened_again():
    """Seen to fail: every block of the next fit stopped at once."""

    def fail(chain):
        raise ValueError("it failed")

    threads = Threads(2)
    with threads, pytest.raises(ValueError, match="it failed"):
        threads.map_chains(fail, [0, 1])
    with threads:
        assert list(threads.map_blocks(number_of, None, empty_blocks(3))) == [0, 1, 2]


@pytest.mark.parametrize("failing", [0, 7, 19])
def test_a_block_that_fails_ends_the_map_and_leaves_the_threads_usable(failing):
    blocks = empty_blocks(20)

    def work(task, block):
        if block.number == failing:
            raise ValueError(f"block {block.number} failed")
        return block.number

    with Threads(3) as threads:
        with pytest.raises(ValueError, match=f"block {failing} failed"):
            list(threads.map_blocks(work, None, blocks))
        for results in (threads.map_blocks(number_of, None, blocks) for _ in range(50)):
            assert list(results) == list(range(20))
        assert next(iter(threads.map_blocks(number_of, None, blocks))) == 0


def test_results_come_in_the_order_of_the_blocks():
    """However long each takes: the first is ready last."""
    others = threading.Semaphore(0)

    def work(task, block):
        if block.number:
            others.release()
            return block.number
        for _ in range(5):
            assert others.acquire(timeout=10)
        return 0

    with Threads(3) as threads:
        assert list(threads.map_blocks(work, None, empty_blocks(6))) == list(range(6))


def test_chains_share_the_threads_that_none_of_them_needs():
    """Two chains on four threads: no more than four ever work at once."""
    blocks = empty_blocks(40)
    lock, barrier = threading.Lock(), threading.Barrier(2)
    working: list[int] = []
    most = []

    def work(task, block):
        with lock:
            working.append(block.number)
            most.append(len(working))
        time.sleep(0.001)
        with lock:
            working.remove(block.number)
        return block.number

    def chain(number):
        barrier.wait()
        return list(threads.map_blocks(work, None, blocks))

    with Threads(4) as threads:
        assert threads.map_chains(chain, [0, 1]) == [list(range(40))] * 2
    assert 2 < max(most) <= 4


def test_a_piece_that_fails_stops_the_others():
    """As an interrupt does, which would take as long as the work of all of them otherwise."""
    stopped, begun = [], threading.Event()

    def work(piece):
        if piece == 0:
            assert begun.wait(timeout=10)
            raise ValueError("piece 0 failed")
        begun.set()
        for _ in range(300):
            try:
                threads.go_on()
            except module.Stopped:
                stopped.append(piece)
                raise
            time.sleep(0.01)

    with Threads(2) as threads, pytest.raises(ValueError, match="piece 0 failed"):
        threads.map_pieces(work, [0, 1])
    assert stopped == [1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_second_signal_does_not_end_the_wait_for_those_at_work(monkeypatch, error):
    """Ctrl-C or SIGTERM again, while chains finish their block and save themselves."""
    calls = []

    def interrupted(futures, until):
        calls.append(until)
        if len(calls) == 1:
            raise error

    monkeypatch.setattr(module, "_wait", interrupted)
    module._wait_regardless([])
    assert len(calls) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_of_compiled_code_is_raised_as_what_it_is(error):
    """Numba makes it the cause of a SystemError. One without such a cause stays."""

    def work(piece):
        if piece == 0:
            raise SystemError("by itself")
        try:
            raise error
        except error as cause:
            raise SystemError("returned a result with an exception set") from cause

    for n_jobs, pieces in ((1, [1, 2]), (2, [1])):
        with pytest.raises(error):
            Threads(n_jobs).map_pieces(work, pieces)
    with pytest.raises(SystemError, match="by itself"):
        Threads(1).map_pieces(work, [0])


def test_checks_end_on_ctrl_c():
    """Seen to fail: half of the interrupts ended in a SystemError."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (300, 3)), rng.normal(size=300)
    settings = {"warmup": 100, "draws": 400, "chains": 2, "n_jobs": 1, "progress": False}
    ring = TensorRing(2, random_state=0, **settings).fit(X, y)
    ring.check()
    for seconds in np.linspace(0.02, 0.1, 16):
        with interrupted_after(seconds), pytest.raises(KeyboardInterrupt):
            check_for_ever(ring)


def check_for_ever(ring):
    while True:
        ring.check()


@contextmanager
def interrupted_after(seconds):
    """The alarm clock presses Ctrl-C."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
