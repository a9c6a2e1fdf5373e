"""One function is climbed: gradients, E-step and shares of batches against the free energy.

Planted bugs that these tests were seen to catch are named in their docstrings.
"""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data.batches import ArrayRows
from bayesring.data.observations import Observations
from bayesring.engine.streams import Streams
from bayesring.infer import learner as learner_module
from bayesring.infer.free_energy import free_energy
from bayesring.model import ring
from bayesring.priors import NormalWishart, RingPrior
from tests.online.learners import (
    LIKELIHOODS,
    PRIORS,
    SHAPES,
    believe,
    covariances_of,
    gradient_of,
    make_learner,
    name_of,
    spread_of,
    weight_gradient_of,
)

EVERY = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
PRIOR = pytest.mark.parametrize("prior", PRIORS, ids=name_of)
SHAPE = pytest.mark.parametrize(("shape", "bonds", "strands"), SHAPES)


def slope(function, state, place, entry, step=1e-4):
    """Central difference of the fourth order along one entry of one array of the state."""

    def at(distance):
        moved = [each.copy() for each in state]
        moved[place].flat[entry] += distance
        return function(moved)

    near, far = at(step) - at(-step), at(2 * step) - at(-2 * step)
    return (8 * near - far) / (12 * step)


@EVERY
@PRIOR
@SHAPE
def test_gradients_are_slopes_of_the_free_energy(rng, likelihood, prior, shape, bonds, strands):
    """Seen to fail: entries of the complement not turned; the prior's pull with the other sign;
    weights left out of the slope of a core.
    """
    learner, columns, values = make_learner(rng, likelihood, prior, shape, bonds, strands)
    laws, covariances = believe(learner, rng)
    state = learner.state
    found = [gradient_of(learner, columns, values)]
    if prior.weights.learned:
        found += weight_gradient_of(learner, columns, values)
    learner.restore(state)
    curvatures = [rng.gamma(2.0, size=each.shape[:2]) for each in covariances]

    def energy(moved):
        learner.restore(moved)
        return free_energy(learner, columns, values, laws, covariances, curvatures)

    for place, gradient in enumerate(found):
        for entry in rng.choice(gradient.size, min(gradient.size, 12), replace=False):
            expected = slope(energy, state, place, entry)
            np.testing.assert_allclose(gradient[entry], expected, rtol=1e-6, atol=1e-6)


@EVERY
@PRIOR
@SHAPE
def test_batches_add_up_to_the_whole(rng, likelihood, prior, shape, bonds, strands):
    """Gradients of the parts of the data, prior shares included, sum to that of all.

    Seen to fail: the whole prior charged to every batch.
    """
    learner, columns, values = make_learner(rng, likelihood, prior, shape, bonds, strands)
    believe(learner, rng)
    whole = gradient_of(learner, columns, values)
    of_parts = [
        gradient_of(learner, np.ascontiguousarray(columns[:, part]), values[part])
        for part in np.array_split(rng.permutation(len(values)), 7)
    ]
    np.testing.assert_allclose(np.sum(of_parts, axis=0), whole, rtol=1e-9, atol=1e-9)


@EVERY
@PRIOR
def test_no_step_lowers_the_free_energy(rng, likelihood, prior):
    """E-steps, and gradient steps on all data, halved until they gain.

    Seen to fail: laws without the spread; a spread of the prior alone; gains taken from
    lambda instead of its square, or from a product one factor short; noise without its prior.
    """
    learner, columns, values = make_learner(rng, likelihood, prior, (3, 4, 3), (2, 3, 2), 2, n=60)
    laws, covariances = believe(learner, rng)
    learner.learn(columns, values, 0.0, expects=False)  # statistics and curvature of all data
    cores = prior.cores
    curvatures = [learner.curvatures(mode) for mode in range(3)]
    curvature = learner.curvature.copy()

    def energy():
        return free_energy(learner, columns, values, laws, covariances, curvatures)

    last = energy()
    gained = []
    for _ in range(6):
        covariances = [covariances_of(learner, mode) for mode in range(3)]
        spreads = [learner.spread(mode) for mode in range(3)]
        for found, each in zip(spreads, covariances, strict=True):
            np.testing.assert_allclose(found, spread_of(each), rtol=1e-9)
        now = energy()
        assert now >= last - 1e-9, "the covariance (20) lowers the free energy"
        learner.expect()
        laws = [cores.conditional(*each) for each in zip(learner.cores, spreads, strict=True)]
        for mode, (core, law) in enumerate(zip(learner.cores, laws, strict=True)):
            expected = cores.slice_prior(core.shape, cores.estimate_hyper(law))
            for found, wanted in zip(learner.slice_priors[mode], expected, strict=True):
                np.testing.assert_allclose(found, wanted)
        after = energy()
        assert after >= now - 1e-9, "the E-step lowers the free energy"
        gained.append(after - now)

        gradient, state, rate = gradient_of(learner, columns, values), learner.state, 1.0
        while rate > 1e-9:
            learner.restore([state[0] + rate * gradient, *state[1:]])
            last = energy()
            if last > after:
                break
            rate /= 2
        assert last > after, "no step along the gradient gains"
        learner.statistics = None
        learner.learn(columns, values, 0.0, expects=False)
        learner.curvature[:] = curvature
    if not isinstance(cores, type(PRIORS[0].cores)):
        assert gained[0] > 0.01  # there was something to gain


@EVERY
@SHAPE
def test_curvature_is_that_of_the_last_pass(rng, likelihood, shape, bonds, strands):
    """The sum of w c^2 of equation (19), for all data in one batch, in parts, and by `measure`.

    Seen to fail: a batch's own share fading with the rest, as it once did. Slices with one
    observation, or all data in one batch, then had no curvature at all.
    """
    prior = PRIORS[0]
    learner, columns, values = make_learner(rng, likelihood, prior, shape, bonds, strands)
    coords = columns[: len(shape)].T
    weight, _ = likelihood.expect(learner.fitted(columns), values, learner.nuisance)
    weighted = ring.weighted(learner.cores, learner.weights)
    expected = []
    for mode, size in enumerate(shape):
        features = ring.features(weighted, learner.weights[mode], mode, coords)
        sums = np.zeros((size, features.shape[1]))
        np.add.at(sums, coords[:, mode], weight[:, None] * features**2)
        expected.append(sums)
    for _ in range(3):  # whatever there was before is forgotten
        learner.learn(columns, values, 0.0, expects=False)
        for mode, sums in enumerate(expected):
            np.testing.assert_allclose(learner.curvatures(mode), sums, rtol=1e-10)
    rows = ArrayRows(Observations(coords, values, shape))
    learner.measure(rows, Streams.of_chain(1, 0), 7)
    for mode, sums in enumerate(expected):
        np.testing.assert_allclose(learner.curvatures(mode), sums, rtol=1e-10)
    learner.curvature[:] = 0.0
    parts = np.array_split(np.arange(len(values)), 4)
    for part in parts * 8:
        learner.learn(np.ascontiguousarray(columns[:, part]), values[part], 0.0, expects=False)
    totals = [sums.sum() for sums in expected]
    found = [learner.curvatures(mode).sum() for mode in range(len(shape))]
    np.testing.assert_allclose(found, totals, rtol=0.2)  # the last rows count most


def test_some_slices_stand_for_all(rng, monkeypatch):
    """Over as many E-steps as there are parts, each slice is looked at once, and a mean is taken.

    Seen to fail: always the same slices; the share left out.
    """
    monkeypatch.setattr(learner_module, "ELEMENTS", 0)
    monkeypatch.setattr(learner_module, "NEWEST", 1.0)
    prior = RingPrior.of(NormalWishart())
    parts, shape = 3, (3 * learner_module.FEWEST, 4, 3)
    learner, columns, values = make_learner(rng, LIKELIHOODS[0], prior, shape, (2, 3, 2), 1, n=200)
    believe(learner, rng)
    learner.learn(columns, values, 0.0, expects=False)
    found = []
    for learner._e_steps in range(5, 5 + parts):
        found.append(learner.spread(0))
    expected = spread_of(covariances_of(learner, 0))
    np.testing.assert_allclose(np.mean(found, axis=0), expected, rtol=1e-9)
    assert not np.allclose(found[0], found[1], rtol=1e-3)
    monkeypatch.setattr(learner_module, "NEWEST", 0.25)
    learner._e_steps += 1
    np.testing.assert_allclose(learner.spread(0), 0.75 * found[2] + 0.25 * found[0], rtol=1e-9)


def test_rows_that_a_batch_does_not_touch_rest(rng):
    """Cores, weighted cores, moments, steps and curvature of other slices keep their bits.

    Seen to fail: the curvature of all slices fading with every batch.
    """
    shape, bonds = (6, 5, 4), (2, 3, 2)
    for prior in PRIORS:
        learner, columns, values = make_learner(rng, LIKELIHOODS[0], prior, shape, bonds, 2)
        learner.learn(columns, values, 0.01, expects=False)
        before = [
            each.copy()
            for each in (learner.flat, learner.weighted, *learner.moments, learner.curvature)
        ]
        few = np.flatnonzero((columns[0] < 2) & (columns[1] != 3))[:4]
        learner.learn(np.ascontiguousarray(columns[:, few]), values[few], 0.01, expects=False)
        after = learner.flat, learner.weighted, *learner.moments, learner.curvature
        touched = [np.isin(np.arange(n), columns[mode, few]) for mode, n in enumerate(shape)]
        slices = np.concatenate(touched)
        entries = np.repeat(slices, np.repeat([c[0].size for c in learner.cores], shape))
        for old, new in zip(before, after, strict=True):
            mask = slices if len(new) == slices.size else entries
            np.testing.assert_array_equal(old[~mask], new[~mask])
            assert np.all(old[mask] != new[mask])
        assert not learner.gradient.any()


def test_slices_without_data_go_to_the_prior_mean(rng):
    learner, columns, values = make_learner(rng, LIKELIHOODS[0], PRIORS[3], (5, 4, 3), (2, 2, 2), 1)
    learner.grow((7, 4, 3))
    learner.learn(columns, values, 0.01, expects=False)
    learner.expect()
    precision, diagonal, linear = learner.slice_priors[0]
    mean = np.linalg.solve(precision + np.diag(diagonal[0]), linear[0])
    np.testing.assert_allclose(learner.cores[0][5:].reshape(2, -1), np.tile(mean, (2, 1)))
    weighted = ring.flatten(ring.weighted(learner.cores, learner.weights)).flat
    np.testing.assert_array_equal(learner.weighted, weighted)
