"""Batches: the same from any position on, and no pass over the data more than needed."""

from __future__ import annotations

import gc
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesring.data.batches import ArrayRows, Chunk, Feed, Position, one_pass
from bayesring.data.observations import Observations
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer import members, online
from bayesring.likelihoods import Gaussian
from bayesring.model.types import Given, RingSize
from bayesring.priors import NormalWishart, RingPrior
from tests.models import random_coords

SHAPE = (4, 3, 5)
STREAMS = Streams.of_chain(2, 1)


class CountedRows:
    """Rows in chunks of some size, as files give them; passes begun and rows given are counted."""

    def __init__(self, n, chunk_size=None):
        rng = np.random.default_rng(n)
        self.data = Observations(random_coords(rng, SHAPE, n), rng.random(n), SHAPE)
        self.rows = ArrayRows(self.data)
        self.counts, self._size = self.rows.counts, chunk_size or n
        self.passes, self.fails_at, self.under_way = [], None, 0

    def chunks(self, streams, epoch):
        self.passes.append(epoch)
        self.under_way += 1
        try:
            for columns, values, *_ in self.rows.chunks(streams, epoch):
                for begin in range(0, len(values), self._size):
                    if self.fails_at == (epoch, begin // self._size):
                        raise OSError("cannot be read")
                    cut = slice(begin, begin + self._size)
                    yield Chunk(columns[:, cut], values[cut])
        finally:
            self.under_way -= 1


def straight_through(rows, size, n_batches):
    """Batches and the positions behind them, without a feed."""
    found = []
    for epoch in range(n_batches + 1):
        for number, chunk in enumerate(one_pass(rows, STREAMS, size, epoch)):
            found.append((chunk, Position(epoch, number + 1)))
    return found[:n_batches]


def assert_same(found, expected):
    assert [after for _, after in found] == [after for _, after in expected]
    for (one, _), (two, _) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.columns, two.columns)
        np.testing.assert_array_equal(one.values, two.values)


SIZES = {
    "n": st.integers(1, 30),
    "chunk_size": st.integers(1, 30),
    "size": st.integers(1, 12),
}


def test_what_rows_carry_is_shuffled_with_them():
    """Seen to fail: weights and exposures in the order of the data, those of other rows."""
    rng = np.random.default_rng(3)
    values = rng.random(90)
    data = Observations(random_coords(rng, SHAPE, 90), values, SHAPE, given=Given(weight=values))
    rows = ArrayRows(data)
    small, large = one_pass(rows, STREAMS, 32), rows.large_batches(STREAMS, 0, 32)
    for chunk in (*small, *large):
        np.testing.assert_array_equal(chunk.given.weight, chunk.values)


@given(**SIZES, start=st.integers(0, 14), n_rows=st.integers(1, 60))
def test_any_position_will_do(n, chunk_size, size, start, n_rows):
    """Seen to fail: positions before a batch in the place of those behind it."""
    rows = CountedRows(n, chunk_size)
    expected = straight_through(rows, size, start + n_rows)
    position = expected[start - 1][1] if start else Position()
    found = list(Feed(rows, STREAMS, size).read(position, n_rows))
    assert_same(found, expected[start : start + len(found)])
    in_batches = [len(chunk.values) for chunk, _ in found]
    assert sum(in_batches) >= n_rows > sum(in_batches[:-1])


@given(**SIZES, parts=st.lists(st.integers(1, 25), min_size=1, max_size=6))
def test_going_on_reads_nothing_twice(n, chunk_size, size, parts):
    """Seen to fail: a pass begun anew with every call."""
    rows = CountedRows(n, chunk_size)
    feed, position, found = Feed(rows, STREAMS, size), Position(), []
    for n_rows in parts:
        found += feed.read(position, n_rows)
        position = found[-1][1]
    assert rows.passes == list(range(found[-1][1].epoch + 1))
    assert_same(found, straight_through(rows, size, len(found)))


@given(**SIZES, jumps=st.lists(st.integers(0, 10), min_size=2, max_size=5))
def test_one_feed_may_go_back_and_forth(n, chunk_size, size, jumps):
    """As often as one likes, also after it was left in the middle of a batch that was asked for."""
    rows = CountedRows(n, chunk_size)
    expected = straight_through(rows, size, 20)
    feed = Feed(rows, STREAMS, size)
    for start in jumps:
        position = expected[start - 1][1] if start else Position()
        found = list(islice(feed.read(position, 10**9), 3))
        assert_same(found, expected[start : start + 3])


@given(n=st.integers(0, 60), size=st.integers(1, 12))
def test_batches_of_a_pass_are_alike(n, size):
    """As few as can be, none of them a small rest. Seen to fail: a last batch of what is left."""
    sizes = [chunk.n for chunk in one_pass(CountedRows(n, 60), STREAMS, size)]
    assert sum(sizes) == n
    assert len(sizes) == -(-n // size)
    assert not sizes or max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("n", "rows"),
    [
        (45, 25 * 45),
        (600, 7_500),
        (512 * 25, 512 * 25),
        (512 * 60 + 1, 512 * 60 + 1),
        (10**7, 2**20),
    ],
)
def test_small_data_are_passed_over_more_than_once_between_looks(n, rows):
    """Until there were 25 batches; large data once, or not even that."""
    learning = online.Learning(3, 1, 5, 2**20, 512, 10)
    course = members.Course(
        CountedRows(5).data, learning, RingPrior.of(NormalWishart()), ONE_THREAD
    )
    assert course.look_rows(n) == rows


@pytest.mark.parametrize("fails_at", [(0, 0), (0, 2), (1, 1)])
def test_rows_that_fail_can_be_tried_again(fails_at):
    """The error comes through, and the feed is where it was.

    Seen to fail: a dead generator, which ends in a RuntimeError.
    """
    rows = CountedRows(20, 5)
    expected = straight_through(rows, 3, 16)
    feed, found, position = Feed(rows, STREAMS, 3), [], Position()
    rows.fails_at = fails_at
    for _ in range(2):  # and it fails the same way again
        with pytest.raises(OSError, match="cannot be read"):
            found.extend(feed.read(position, 40))
        position = found[-1][1] if found else Position()
    rows.fails_at = None
    rest = 40 - sum(len(chunk.values) for chunk, _ in found)
    found += feed.read(position, rest)
    assert_same(found, expected[: len(found)])


@pytest.fixture
def _no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
def test_passes_end_without_the_garbage_collector():
    """When a feed is closed, goes elsewhere or is let go of.

    The collector may run in a thread that is just starting and holds locks of `threading`; ending
    the threads that read ahead would then wait for ever, as it once did. Seen to fail: a feed that
    is part of a cycle.
    """
    rows = CountedRows(20, 5)
    feed = Feed(rows, STREAMS, 3)
    (*_, (_, position)) = feed.read(Position(), 4)
    assert rows.under_way == 1
    list(feed.read(Position(3, 1), 4))
    assert rows.under_way == 1
    feed.close()
    assert rows.under_way == 0
    (chunk, _), *_ = feed.read(position, 4)  # closed is not the end
    assert len(chunk.values)
    assert rows.under_way == 1
    del feed
    assert rows.under_way == 0


@pytest.mark.ci
@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize(("name", "more"), [("train", ("ring",)), ("rejoin", ()), ("measured", ())])
def test_passes_end_when_learning_is_interrupted(name, more, monkeypatch):
    """Even if someone holds the traceback, and with it all frames. Seen to fail: feeds and passes
    that nobody closes.
    """
    rows, prior = CountedRows(40, 5), RingPrior.of(NormalWishart())
    data = rows.data
    learning = online.Learning(3, 1, 5, 2**20, 4, 10)
    course = members.Course(data, learning, prior.for_shape(SHAPE), ONE_THREAD)
    member = members.begin(0, RingSize(1, (2, 2, 2)), rows, Gaussian(), course)
    interrupted = Interrupted(5)
    monkeypatch.setattr(Engine, "entries", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        getattr(online, name)(member, rows, course, *more)
    assert caught.tb is not None
    assert interrupted.calls == 5
    assert len(rows.passes) == 1
    assert rows.under_way == 0


class Interrupted:
    """Zeros for fitted entries, until the user loses patience."""

    def __init__(self, at):
        self.at, self.calls = at, 0

    def __call__(self, _, columns):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return np.zeros(columns.shape[1])


def test_every_pass_has_an_order_of_its_own():
    """In memory: the same rows, in an order of stream and pass."""
    rows = CountedRows(200).rows
    orders = [
        np.concatenate([chunk.values for chunk in rows.chunks(streams, epoch)])
        for streams, epoch in ((STREAMS, 0), (STREAMS, 1), (Streams.of_chain(2, 2), 0))
    ]
    for one, two in ((0, 1), (0, 2), (1, 2)):
        assert np.mean(orders[one] == orders[two]) < 0.1
        np.testing.assert_array_equal(np.sort(orders[one]), np.sort(orders[two]))
    again = np.concatenate([chunk.values for chunk in rows.chunks(STREAMS, 1)])
    np.testing.assert_array_equal(again, orders[1])
