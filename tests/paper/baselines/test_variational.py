"""The variational baselines: bound against brute force and Monte Carlo, updates, pruning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from paper.baselines import BayesianCP, BayesianRingVI, TooLarge
from paper.baselines.variational import Gamma
from tests.paper.baselines.reference_models import (
    CP,
    PRIORS,
    Ring,
    brute_bound,
    cp_entries,
    planted,
    ring_entries,
)

MODELS = [CP, Ring]


def advanced(model, sweeps=2):
    state, bound = model.state, None
    for _ in range(sweeps):
        state, bound = model.module.sweep(state, model.views, PRIORS)
    return state, bound


@pytest.mark.parametrize("shape", [(4, 5), (4, 3, 5), (3, 4, 2, 3)], ids=str)
@pytest.mark.parametrize("kind", MODELS)
def test_bound_is_that_of_brute_force(kind, shape, rng):
    rank = 3 if kind is CP else (2, 3, 1, 2)[: len(shape)]
    model = kind(rng, shape, rank)
    state, bound = advanced(model)
    assert bound == pytest.approx(brute_bound(model, state), rel=1e-10)


@pytest.mark.parametrize("kind", MODELS)
def test_bound_is_the_mean_of_log_joint_minus_log_posterior(kind, rng):
    """Densities from scipy and entries of drawn slices: no formula of the bound is used."""
    n_draws = 4000
    model = kind(rng)
    state, bound = advanced(model)
    gammas = model.gammas(state)
    drawn = [rng.gamma(each.shape, size=(n_draws, each.shape.size)) / each.rate for each in gammas]
    total = sum(
        stats.gamma.logpdf(x, PRIORS.c0, scale=1 / PRIORS.d0).sum(axis=1)
        - stats.gamma.logpdf(x, q.shape, scale=1 / q.rate).sum(axis=1)
        for x, q in zip(drawn, gammas, strict=True)
    )
    tau = rng.gamma(state.noise.shape, size=n_draws) / state.noise.rate
    total += stats.gamma.logpdf(tau, PRIORS.alpha0, scale=1 / PRIORS.beta0)
    total -= stats.gamma.logpdf(tau, state.noise.shape, scale=1 / state.noise.rate)
    slices = []
    for (mean, second, _, _), precision in zip(
        model.slices(state), model.precision_of(*drawn), strict=True
    ):
        each = np.empty((n_draws, *mean.shape))
        for i, centre in enumerate(mean):
            q = stats.multivariate_normal(centre, second[i] - np.outer(centre, centre))
            each[:, i] = q.rvs(n_draws, random_state=rng).reshape(n_draws, -1)
            total -= q.logpdf(each[:, i])
        deviation = precision[:, None, :] ** -0.5
        total += stats.norm.logpdf(each, scale=deviation).sum(axis=(1, 2))
        slices.append(each)
    fitted = model.entries(slices)
    values = model.data.values
    total += stats.norm.logpdf(values, fitted, tau[:, None] ** -0.5).sum(axis=1)
    error = total.std() / np.sqrt(n_draws)
    assert abs(total.mean() - bound) < 4.5 * error
    assert error < 0.02 * abs(bound)


def scaled(gamma, by):
    return Gamma(gamma.shape, gamma.rate * by)


@pytest.mark.parametrize("by", [0.97, 1.03])
@pytest.mark.parametrize("kind", MODELS)
def test_gamma_factors_are_optimal(kind, by, rng):
    """Any other rate of tau or of the last lambda updated, the bound is lower."""
    model = kind(rng)
    state, bound = advanced(model)
    assert brute_bound(model, state._replace(noise=scaled(state.noise, by))) < bound
    *first, last = model.gammas(state)
    changed = scaled(last, by) if kind is CP else (*first, scaled(last, by))
    assert brute_bound(model, state._replace(relevance=changed)) < bound


def test_rows_of_a_mode_are_optimal(rng):
    """The mean and covariance of the last mode updated, moved either way, lower the bound.

    The sweep is undone for lambda and tau, whose old values the rows were best for.
    """
    model = CP(rng)
    before, _ = advanced(model)
    after, _ = model.module.sweep(before, model.views, PRIORS)
    state = before._replace(factors=after.factors)
    best = brute_bound(model, state)
    *others, last = state.factors
    for move in (0.02, -0.02):
        shift = move * rng.standard_normal(last.mean.shape)
        mean = last.mean + shift
        outer = mean[:, :, None] * mean[:, None, :] - last.mean[:, :, None] * last.mean[:, None, :]
        moved = last._replace(mean=mean, second=last.second + model.module._triangles(outer))
        assert brute_bound(model, state._replace(factors=(*others, moved))) < best
        wider = (1 + move) * last.second - move * model.module._triangles(
            last.mean[:, :, None] * last.mean[:, None, :]
        )
        moved = last._replace(second=wider)
        assert brute_bound(model, state._replace(factors=(*others, moved))) < best


def test_slices_of_a_core_are_optimal(rng):
    model = Ring(rng)
    before, _ = advanced(model)
    after, _ = model.module.sweep(before, model.views, PRIORS)
    state = before._replace(cores=after.cores)
    best = brute_bound(model, state)
    *others, last = state.cores
    n, rows, columns = last.mean.shape
    mean, second, _, _ = list(model.slices(state))[-1]
    for move in (0.02, -0.02):
        centre = mean + move * rng.standard_normal(mean.shape)
        outer = centre[:, :, None] * centre[:, None, :] - mean[:, :, None] * mean[:, None, :]
        wider = (1 + move) * second - move * mean[:, :, None] * mean[:, None, :]
        for new_mean, new_second in ((centre, second + outer), (mean, wider)):
            moved = last._replace(
                mean=new_mean.reshape(n, rows, columns),
                second=model.module.pack(new_second, rows, columns),
            )
            assert brute_bound(model, state._replace(cores=(*others, moved))) < best


@pytest.mark.parametrize("threshold", [0.0, 1e-6], ids=["never pruned", "pruned"])
@pytest.mark.parametrize(
    ("model", "entries"),
    [(BayesianCP(6), cp_entries), (BayesianRingVI(4), ring_entries)],
    ids=["cp", "ring"],
)
def test_bound_never_falls(model, entries, threshold, seed):
    (coords, values), _ = planted(seed, (10, 11, 12), 800, entries, noise=0.3)
    model.set_params(threshold=threshold, max_iter=150, tol=0.0, random_state=seed, progress=False)
    bounds = model.fit(coords, values).lower_bounds_
    assert len(bounds) == 150
    gains = np.diff(bounds)
    assert gains.min() > -1e-9 * np.abs(bounds).max()
    full = 6 if isinstance(model, BayesianCP) else (4, 4, 4)
    assert (model.rank_ == full) == (threshold == 0.0)


@pytest.mark.parametrize(
    ("model", "entries", "rank"),
    [
        (BayesianCP(10), cp_entries, 3),
        (BayesianRingVI(4, max_iter=200), ring_entries, (2, 2, 2)),
    ],
    ids=["cp", "ring"],
)
def test_planted_rank_is_found_and_intervals_cover(model, entries, rank, seed):
    """The true rank by pruning, errors near the noise of 0.3, honest standard deviations.

    One start may end in a local optimum with a factor too many; the best bound of three does not.
    """
    (coords, values), (cells, truth) = planted(seed, (20, 20, 20), 4000, entries, noise=0.3)
    fits = [
        clone(model).set_params(random_state=start, progress=False).fit(coords, 40 + 7 * values)
        for start in range(3)
    ]
    assert max(np.max(np.subtract(each.rank_, rank)) for each in fits) <= 1
    model = max(fits, key=lambda each: each.lower_bounds_[-1])
    mean, std = model.predict(cells, return_std=True)
    assert model.rank_ == rank
    error = mean - (40.0 + 7.0 * truth)
    assert np.sqrt(np.mean(error**2)) < 7.0 * 0.33
    assert 0.86 < np.mean(np.abs(error) < 1.645 * std) < 0.94


@pytest.mark.parametrize(
    ("kind", "model"), [(CP, BayesianCP(2)), (Ring, BayesianRingVI((2, 3, 1)))], ids=["cp", "ring"]
)
def test_variance_is_that_of_draws_from_the_posterior(kind, model, rng):
    """Exact E[f^2] - E[f]^2 against Monte Carlo, at a random posterior, noise taken off.

    Seen to fail when covariances between components are counted once instead of twice.
    """
    problem = kind(rng, rank=model.rank)
    coords = problem.data.coords
    model.set_params(max_iter=1, random_state=0, progress=False)
    model.fit(coords, problem.data.values, shape=problem.data.shape)
    slices, drawn = [], []
    for mean, _, _, _ in problem.slices(problem.state):
        roots = 0.3 * rng.standard_normal((*mean.shape, mean.shape[1]))
        slices.append((mean, mean[:, :, None] * mean[:, None, :] + roots @ roots.mT))
        draws = rng.standard_normal((20_000, *mean.shape))
        drawn.append(mean + np.einsum("ikl,nil->nik", roots, draws))
    model.state_ = problem.with_slices(model.state_, slices)
    noise = model.state_.noise
    found = model._moments(coords, True).variance - float(noise.rate / (noise.shape - 1))
    np.testing.assert_allclose(found, problem.entries(drawn).var(axis=0), rtol=0.15)


def test_what_does_not_fit_is_refused_in_a_sentence(rng):
    coords, values = rng.integers(0, 10, (50, 3)), rng.standard_normal(50)
    settings = {"random_state": 0, "progress": False}
    with pytest.raises(TooLarge, match=r"rank \(40, 40, 40\) needs about .* GiB .* may be used"):
        BayesianRingVI(40, max_memory=2**30, **settings).fit(coords, values)
    with pytest.raises(TooLarge, match=r"may take about .* hours, more than max_hours=1e-06"):
        BayesianRingVI(8, max_hours=1e-6, **settings).fit(coords, values)
    assert issubclass(TooLarge, MemoryError)


def test_pieces_do_not_matter(rng, monkeypatch):
    """Slices worked on one at a time give what all at once do."""
    coords, values = rng.integers(0, 6, (200, 3)), rng.standard_normal(200)
    model = BayesianRingVI(2, max_iter=5, random_state=0, progress=False)
    whole, deviation = model.fit(coords, values).predict(coords, return_std=True)
    monkeypatch.setattr("paper.baselines.ring_vi.CHUNK_BYTES", 8 * 16 * 3)
    parts, part_deviation = model.fit(coords, values).predict(coords, return_std=True)
    np.testing.assert_allclose(parts, whole, rtol=1e-9)
    np.testing.assert_allclose(part_deviation, deviation, rtol=1e-9)
