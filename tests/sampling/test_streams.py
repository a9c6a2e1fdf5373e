"""No two pieces of work share a random stream, whatever tells them apart."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from bayesring.data.blocks import blocks_of_modes
from bayesring.data.observations import Observations
from bayesring.engine.streams import PURPOSES, Purpose, Streams
from bayesring.engine.threads import Threads
from bayesring.infer.chains import Sampling, run_chains
from bayesring.infer.length import Length
from bayesring.infer.problem import Method
from bayesring.model.rank import FixedRank
from bayesring.model.spec import Model
from bayesring.model.types import NOTHING
from bayesring.priors import Fixed, GammaProcess, RingPrior
from tests.models import LIKELIHOODS, name_of, random_coords

SHAPE, BLOCK_SIZE, SCANS, CHAINS = (3, 40, 30), 64, 4, 2


def test_all_that_names_a_stream_tells_it_apart():
    """Seed s with chain 1 is not seed s + 1 with chain 0; scan, purpose, mode and block count."""
    seen: dict[tuple[int, ...], tuple[int, ...]] = {}
    for seed, chain in product(range(3), range(3)):
        streams = Streams.of_chain(seed, chain)
        for place in product(range(3), Purpose, range(3), range(3)):
            numbers = tuple(streams.rng(*place).integers(0, 2**62, 2).tolist())
            assert numbers not in seen, f"{(seed, chain, *place)} is {seen[numbers]}"
            seen[numbers] = (seed, chain, *place)


def test_a_stream_is_the_same_whenever_it_is_made():
    one, two = (Streams.of_chain(5, 2).rng(7, Purpose.GAINS, 1, 3).random(9) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_a_stream_is_that_of_its_key():
    """As NumPy makes it from key and counter; the streams are made in a quicker way."""
    streams = Streams.of_chain(5, 2)
    counter = [0, 3, PURPOSES + Purpose.GAINS, 7]
    plain = np.random.Philox(key=np.array(streams.key, dtype=np.uint64), counter=counter)
    found = streams.rng(7, Purpose.GAINS, 1, 3)
    np.testing.assert_array_equal(found.bytes(64), np.random.Generator(plain).bytes(64))


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_chains_use_every_stream_once(rng, monkeypatch, likelihood):
    """Each block, or slice that was cut, has its own; weights and the rest have theirs."""
    used, make = [], Streams.rng

    def noted(self, *place, **named):
        found = make(self, *place, **named)
        state = found.bit_generator.state["state"]
        used.append((*state["key"].tolist(), *state["counter"].tolist()))
        return found

    monkeypatch.setattr(Streams, "rng", noted)
    values = likelihood.simulate(rng, rng.standard_normal(600), likelihood.initial_nuisance())
    data = Observations(random_coords(rng, SHAPE, 600), values, SHAPE)
    model = Model(likelihood, RingPrior((Fixed(),), GammaProcess()), FixedRank(2))
    sampling = Sampling(Length(0, SCANS, 2**30), 5, CHAINS, Method(block_size=BLOCK_SIZE))
    with Threads(1) as engine:
        run_chains(data, model, sampling, engine)
    assert len(set(used)) == len(used)
    blocks = [block for own in blocks_of_modes(data, BLOCK_SIZE) for block in own]
    cut = {(block.mode, block.first) for block in blocks if block.is_part}
    whole = sum(not block.is_part for block in blocks)
    first = sum(block.mode == 0 for block in blocks)
    assert cut
    assert whole > 2 * len(SHAPE)
    expected = {
        Purpose.SLICES: whole + len(cut),
        Purpose.AUGMENT: len(blocks) if likelihood.augments(NOTHING) else 0,
        Purpose.HYPER: len(SHAPE),
        Purpose.WEIGHTS: len(SHAPE),
        Purpose.GAINS: len(SHAPE),
        Purpose.NUISANCE: 1,
        Purpose.STATISTICS: first if likelihood.draws_for_statistics(NOTHING) else 0,
    }
    counts = Counter(Purpose(counter % PURPOSES) for *_, counter, _ in used)
    assert counts.pop(Purpose.START) == CHAINS * len(SHAPE)
    times = CHAINS * SCANS
    assert counts == {purpose: times * n for purpose, n in expected.items() if n}
