"""Large batches: every row once, and sums that do not depend on who works on which block."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bayesring.data.batches import ArrayRows, Position, count_blocks, one_pass
from bayesring.data.observations import Observations
from bayesring.data.parquet import Coding, FileRows, ParquetRows
from bayesring.data.parquet.rows import NO_ROWS
from bayesring.engine.gradients import (
    GradientTask,
    parts_within,
    put_together,
    rows_sums,
    tree_sum,
)
from bayesring.engine.streams import Streams
from bayesring.engine.threads import Threads
from bayesring.infer import em
from bayesring.infer.em import Setting
from bayesring.likelihoods import Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import NormalWishart, RingPrior

SHAPE, STREAMS = (5, 7, 4), Streams.of_chain(1, 0)


@pytest.fixture
def data(rng):
    coords = np.stack([rng.integers(size, size=40_000) for size in SHAPE], axis=1)
    return Observations(coords, rng.standard_normal(40_000), SHAPE)


def first_batch(data):
    return next(iter(ArrayRows(data).large_batches(STREAMS, 0, 39_000)))


def test_every_row_once(data, tmp_path):
    frame = pd.DataFrame(data.coords, columns=["a", "b", "c"]).assign(y=data.values)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=3_000)
    files = ParquetRows(tmp_path, ["a", "b", "c"], "y")
    survey = files.survey()
    stream = FileRows(files, Coding(survey.labels), NO_ROWS, survey.counts)
    expected = np.sort(data.values.astype(np.float32))
    for rows in (stream, ArrayRows(data)):
        passes = [list(one_pass(rows, STREAMS, 33_000, epoch)) for epoch in (0, 1)]
        for own in passes:
            found = np.concatenate([batch.values for batch in own])
            np.testing.assert_array_equal(np.sort(found.astype(np.float32)), expected)
            assert all(batch.cuts[0] == 0 and batch.cuts[-1] == batch.n for batch in own)
            assert all(len(batch.cuts) == count_blocks(33_000) + 1 for batch in own)
        assert not np.array_equal(passes[0][0].values, passes[1][0].values)


def test_number_of_blocks():
    assert [count_blocks(2**power) for power in (15, 17, 18, 20, 21, 30)] == [2, 2, 4, 16, 32, 32]


@pytest.mark.parametrize("n_workers", [1, 2, 3, 5, 16])
def test_sums_are_those_of_one_worker(data, rng, n_workers):
    setting = Setting(Gaussian(), RingPrior.of(NormalWishart()).for_shape(SHAPE), Threads(1))
    estimate = em.start(STREAMS, RingSize(1, (2, 3, 2)), ArrayRows(data).counts, setting)
    task = GradientTask(estimate.flat, SHAPE, Gaussian(), estimate.nuisance)
    batch = first_batch(data)
    blocks = np.linspace(0, batch.n, 17).astype(int)  # of unequal sums, and one without rows
    batch = batch._replace(cuts=(0, 0, *blocks[2:].tolist()))

    def of_block(node):
        return rows_sums(task, batch.block(node[0]))

    whole = tree_sum((0, 16), of_block)
    edges = np.unique(np.linspace(0, 16, n_workers + 1).astype(int))
    parts = {
        node: tree_sum(node, of_block)
        for begin, end in pairwise(edges)
        for node in parts_within((0, 16), (int(begin), int(end)))
    }
    for own, its in zip(whole, put_together((0, 16), parts), strict=True):
        np.testing.assert_array_equal(own, its)
    assert whole.counts.sum() == 3 * batch.n


def test_a_step_is_that_of_the_kernel(data):
    """A large batch moves the ring as the same rows in one piece do, up to rounding."""
    setting = Setting(Gaussian(), RingPrior.of(NormalWishart()).for_shape(SHAPE), Threads(1))
    estimate = em.start(STREAMS, RingSize(1, (2, 3, 2)), ArrayRows(data).counts, setting)
    large = first_batch(data)
    found = [
        em.learn(estimate, [(batch, Position())] * 3, 0.01, False, setting)
        for batch in (large, large._replace(cuts=()).doubled())
    ]
    for name in ("cores", "curvature", "weight_gradient", "statistics"):
        own, its = (getattr(each, name) for each in found)
        np.testing.assert_allclose(own, its, rtol=1e-7, atol=1e-9)
    assert not np.allclose(found[0].cores, estimate.cores, atol=1e-3)
