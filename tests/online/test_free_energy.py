"""One function is climbed: gradients, E-step and shares of batches against the free energy.

Planted bugs that these tests were seen to catch are named in their docstrings.
"""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data.batches import ArrayRows, Chunk
from bayesring.data.observations import Observations
from bayesring.engine.streams import Streams
from bayesring.infer import em
from bayesring.infer import estimate as reading
from bayesring.infer.em import Workspace
from bayesring.likelihoods import Gaussian
from bayesring.model import ring
from bayesring.priors import Fixed, NormalWishart, RingPrior
from tests.online.estimates import (
    LIKELIHOODS,
    PRIORS,
    SHAPES,
    believe,
    covariances_of,
    gradient_of,
    learned,
    make_scene,
    name_of,
    spread_of,
    weight_gradient_of,
)
from tests.online.free_energy import free_energy

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
    scene = make_scene(rng, likelihood, prior, shape, bonds, strands)
    scene, parameters, covariances = believe(scene, rng)
    estimate, setting, *data = scene
    found = [gradient_of(scene)]
    if prior.weights.learned:
        found += weight_gradient_of(scene)
    curvatures = [rng.gamma(2.0, size=each.shape[:2]) for each in covariances]

    def energy(state):
        cores, *weights = state
        moved = estimate._replace(cores=cores, weights=tuple(weights))
        return free_energy(moved, setting, data, parameters, covariances, curvatures)

    for place, gradient in enumerate(found):
        for entry in rng.choice(gradient.size, min(gradient.size, 12), replace=False):
            expected = slope(energy, [estimate.cores, *estimate.weights], place, entry)
            np.testing.assert_allclose(gradient.flat[entry], expected, rtol=1e-6, atol=1e-6)


@EVERY
@PRIOR
@SHAPE
def test_batches_add_up_to_the_whole(rng, likelihood, prior, shape, bonds, strands):
    """Gradients of the parts of the data, prior shares included, sum to that of all.

    Seen to fail: the whole prior charged to every batch.
    """
    scene, _, _ = believe(make_scene(rng, likelihood, prior, shape, bonds, strands), rng)
    parts = np.array_split(rng.permutation(len(scene.values)), 7)
    of_parts = [gradient_of(scene, part) for part in parts]
    np.testing.assert_allclose(np.sum(of_parts, axis=0), gradient_of(scene), rtol=1e-9, atol=1e-9)


@EVERY
@PRIOR
def test_no_step_lowers_the_free_energy(rng, likelihood, prior):
    """E-steps, and gradient steps on all data, halved until they gain.

    Seen to fail: distributions without the spread; a spread of the prior alone; gains taken from
    lambda instead of its square, or from a product one factor short; noise without its prior.
    """
    scene = make_scene(rng, likelihood, prior, (3, 4, 3), (2, 3, 2), 2, n=60)
    scene, parameters, covariances = believe(scene, rng)
    setting, modes = scene.setting, range(3)
    priors = setting.prior.modes
    estimate = learned(scene)  # statistics and curvature of all data
    curvature = estimate.curvature
    curvatures = [reading.curvatures(estimate, mode) for mode in modes]

    def energy(estimate):
        data = scene.columns, scene.values
        return free_energy(estimate, setting, data, parameters, covariances, curvatures)

    last = energy(estimate)
    gained = []
    for _ in range(6):
        covariances = [covariances_of(estimate, mode, priors[mode].diagonal) for mode in modes]
        spreads = [reading.spread(estimate, mode, priors[mode])[0] for mode in modes]
        for found, each in zip(spreads, covariances, strict=True):
            np.testing.assert_allclose(found, spread_of(each), rtol=1e-9)
        now = energy(estimate)
        assert now >= last - 1e-9, "the covariance (20) lowers the free energy"
        estimate = em.expect(estimate, setting)
        cores = estimate.core_list
        parameters = [priors[mode].conditional(cores[mode], spreads[mode]) for mode in modes]
        for mode, own in enumerate(priors):
            expected = own.slice_prior(cores[mode], own.estimate_hyper(parameters[mode]))
            for found, wanted in zip(estimate.slice_priors[mode][:3], expected[:3], strict=True):
                np.testing.assert_allclose(found, wanted)
        after = energy(estimate)
        assert after >= now - 1e-9, "the E-step lowers the free energy"
        gained.append(after - now)

        gradient, rate, start = gradient_of(scene._replace(estimate=estimate)), 1.0, estimate
        while rate > 1e-9:
            estimate = start._replace(cores=start.cores + rate * gradient)
            last = energy(estimate)
            if last > after:
                break
            rate /= 2
        assert last > after, "no step along the gradient gains"
        fresh = scene._replace(estimate=estimate._replace(statistics=None))
        estimate = learned(fresh)._replace(curvature=curvature)
    if not isinstance(priors[0], Fixed):
        assert gained[0] > 0.01  # there was something to gain


@EVERY
@SHAPE
def test_curvature_is_that_of_the_last_pass(rng, likelihood, shape, bonds, strands):
    """The sum of w c^2 of equation (19), for all data in one batch, in parts, and by `measure`.

    Seen to fail: a batch's own share fading with the rest, as it once did. Slices with one
    observation, or all data in one batch, then had no curvature at all.
    """
    scene = make_scene(rng, likelihood, PRIORS[0], shape, bonds, strands)
    estimate, setting, columns, values = scene
    coords = columns[: len(shape)].T
    fitted = estimate.fitted(columns, setting.engine)
    weight, _ = likelihood.expect(fitted, values, estimate.nuisance)
    weighted = ring.weighted(estimate.core_list, estimate.weights)
    expected = []
    for mode, size in enumerate(shape):
        features = ring.features(weighted, estimate.weights[mode], mode, coords)
        sums = np.zeros((size, features.shape[1]))
        np.add.at(sums, coords[:, mode], weight[:, None] * features**2)
        expected.append(sums)
    for _ in range(3):  # whatever there was before is forgotten
        estimate = learned(scene._replace(estimate=estimate))
        for mode, sums in enumerate(expected):
            np.testing.assert_allclose(reading.curvatures(estimate, mode), sums, rtol=1e-10)
    rows = ArrayRows(Observations(coords, values, shape))
    measured = em.measure(estimate, rows, Streams.of_chain(1, 0), 7, setting)
    for mode, sums in enumerate(expected):
        np.testing.assert_allclose(reading.curvatures(measured, mode), sums, rtol=1e-10)
    empty = measured._replace(curvature=np.zeros_like(measured.curvature))
    parts = np.array_split(np.arange(len(values)), 4)
    after = learned(scene._replace(estimate=empty), parts=parts * 8)
    totals = [sums.sum() for sums in expected]
    found = [reading.curvatures(after, mode).sum() for mode in range(len(shape))]
    np.testing.assert_allclose(found, totals, rtol=0.2)  # the last rows count most


def test_some_slices_stand_for_all(rng, monkeypatch):
    """Over as many E-steps as there are parts, each slice is looked at once, and a mean is taken.

    Seen to fail: always the same slices; the share left out.
    """
    monkeypatch.setattr(reading, "ELEMENTS", 0)
    monkeypatch.setattr(reading, "NEWEST", 1.0)
    prior = NormalWishart()
    parts, shape = 3, (3 * reading.FEWEST, 4, 3)
    scene = make_scene(rng, LIKELIHOODS[0], RingPrior.of(prior), shape, (2, 3, 2), 1, n=200)
    scene, _, _ = believe(scene, rng)
    estimate = learned(scene)
    found = []
    for e_steps in range(5, 5 + parts):
        estimate = estimate._replace(e_steps=e_steps)
        spread, average = reading.spread(estimate, 0, prior)
        np.testing.assert_array_equal(spread, average)
        found.append(spread)
        estimate = estimate._replace(spreads=(average, None, None))
    expected = spread_of(covariances_of(estimate, 0, diagonal=False))
    np.testing.assert_allclose(np.mean(found, axis=0), expected, rtol=1e-9)
    assert not np.allclose(found[0], found[1], rtol=1e-3)
    monkeypatch.setattr(reading, "NEWEST", 0.25)
    spread, _ = reading.spread(estimate._replace(e_steps=5 + parts), 0, prior)
    np.testing.assert_allclose(spread, 0.75 * found[2] + 0.25 * found[0], rtol=1e-9)


def test_e_steps_pass_the_moving_average_on(rng, monkeypatch):
    """Seen to fail: an average that begins anew with every E-step."""
    monkeypatch.setattr(reading, "ELEMENTS", 0)
    prior, shape = RingPrior.of(NormalWishart()), (3 * reading.FEWEST, 4, 3)
    scene = make_scene(rng, LIKELIHOODS[0], prior, shape, (2, 3, 2), 1, n=200)
    estimate = learned(scene)
    for number in range(3):
        expected = reading.spread(estimate, 0, prior.modes[0])[1]
        estimate = em.expect(estimate, scene.setting)
        assert estimate.e_steps == number + 1
        np.testing.assert_array_equal(estimate.spreads[0], expected)
        assert estimate.spreads[1] is None  # of few slices all are looked at


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_statistics_stand_for_all_observations(rng, likelihood):
    """Those of batches, brought to the number of all rows: of one that is all, its own."""
    scene = make_scene(rng, likelihood, PRIORS[0], (3, 4, 2), (2, 3, 1), 1)
    estimate, setting, columns, values = scene
    fitted = estimate.fitted(columns, setting.engine)
    response = likelihood.expect(fitted, values, estimate.nuisance)
    expected = likelihood.statistics(fitted, values, estimate.nuisance, response=response)
    np.testing.assert_allclose(learned(scene).statistics, expected)
    count = 0 if isinstance(likelihood, Gaussian) else 1
    assert expected[count] == len(values)
    for parts in ([np.arange(7)], np.array_split(np.arange(len(values)), 5)):
        found = learned(scene, parts=parts).statistics
        np.testing.assert_allclose(found[count], len(values))


def test_rows_that_a_batch_does_not_touch_rest(rng):
    """Cores, weighted cores, moments, steps and curvature of other slices keep their bits.

    Seen to fail: the curvature of all slices fading with every batch.
    """
    shape, bonds = (6, 5, 4), (2, 3, 2)
    for prior in PRIORS:
        scene = make_scene(rng, LIKELIHOODS[0], prior, shape, bonds, 2)
        estimate, setting, columns, values = scene
        work = Workspace(estimate, setting)

        def arrays(work=work):
            return work.flat, work.ring.flat, *work.adam, work.curvature

        work.learn(Chunk(columns, values), 0.01, expects=False)
        before = [each.copy() for each in arrays()]
        few = np.flatnonzero((columns[0] < 2) & (columns[1] != 3))[:4]
        part = Chunk(np.ascontiguousarray(columns[:, few]), values[few])
        work.learn(part, 0.01, expects=False)
        touched = [np.isin(np.arange(n), columns[mode, few]) for mode, n in enumerate(shape)]
        slices = np.concatenate(touched)
        entries = np.repeat(slices, np.repeat([c[0].size for c in work.cores], shape))
        for old, new in zip(before, arrays(), strict=True):
            mask = slices if len(new) == slices.size else entries
            np.testing.assert_array_equal(old[~mask], new[~mask])
            assert np.all(old[mask] != new[mask])
        assert not work.gradient.any()
        # the kernels keep the weighted cores in step with the cores
        np.testing.assert_allclose(work.ring.flat, work.frozen().flat.flat, rtol=1e-12)


@pytest.mark.parametrize("prior", PRIORS[3:], ids=name_of)
def test_slices_without_data_go_to_the_prior_mean(rng, prior):
    """Seen to fail: weighted cores left as they were before the E-step."""
    scene = make_scene(rng, LIKELIHOODS[0], prior, (5, 4, 3), (2, 2, 2), 1)
    work = Workspace(reading.grown(scene.estimate, (7, 4, 3)), scene.setting)
    work.learn(Chunk(scene.columns, scene.values), 0.01, expects=False)
    work.expect()
    precision, diagonal, linear, *_ = work.slice_priors[0]
    mean = np.linalg.solve(precision + np.diag(diagonal[0]), linear[0])
    np.testing.assert_allclose(work.cores[0][5:].reshape(2, -1), np.tile(mean, (2, 1)))
    weighted = ring.flatten(ring.weighted(work.cores, work.weights)).flat
    np.testing.assert_array_equal(work.ring.flat, weighted)
