"""Every likelihood and prior that the package lists keeps its protocol."""

from __future__ import annotations

import copy
import inspect
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from bayesring import likelihoods, priors
from bayesring.data.moments import moments_of
from bayesring.engine.operations import UPDATES
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Likelihood
from bayesring.model.types import Axis, Moments, WorkingResponse
from bayesring.posterior import store as storage
from bayesring.priors import Coupling, ModePrior
from tests.models import CORE_PRIORS, LIKELIHOODS, PAIRS, SAMPLERS, draw_model, name_of


def public_methods(protocol):
    return [name for name in vars(protocol) if not name.startswith("_")]


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(
    ("value", "protocol"),
    [(each, Likelihood) for each in LIKELIHOODS] + [(each, ModePrior) for each in CORE_PRIORS],
    ids=name_of,
)
def test_signatures_documents_and_storage(value, protocol):
    assert isinstance(value, protocol)
    assert is_dataclass(value)
    for name in public_methods(protocol):
        expected, found = getattr(protocol, name), getattr(type(value), name)
        if callable(expected):
            assert parameters(expected) == parameters(found), name
            assert found.__doc__, name
    assert value.__doc__
    with pytest.raises(AttributeError):
        value.anything = 1
    rebuilt = storage.from_plain(storage.to_plain(value), {type(value).__name__: type(value)})
    assert rebuilt == value


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_units_of_streams_are_those_of_values_in_memory(likelihood, rng):
    """Streams know mean and deviation up to rounding only."""
    nuisance = likelihood.initial_nuisance()
    values = likelihood.simulate(rng, rng.standard_normal(200), nuisance)
    for each in (values, np.full(200, values[0]), np.zeros(200)):
        binary = bool(np.isin(each, (0, 1)).all())
        streamed = Moments(each.mean(), each.std(), each.min(), each.max(), binary, 1e-12)
        location, scale = likelihood.units_from(moments_of(each))
        assert likelihood.units_from(streamed) == pytest.approx((location, scale))
        assert scale > 0


@pytest.mark.parametrize("package", [likelihoods, priors], ids=lambda p: p.__name__)
def test_every_file_is_listed(package):
    """A file in the folder that defines no listed name would escape all the tests."""
    homes = {inspect.getmodule(getattr(package, name)).__name__ for name in package.__all__}
    for path in Path(package.__file__).parent.glob("*.py"):
        if path.stem not in (
            "__init__",
            "real_valued",
            "count_valued",
            "regression",
            "many_slopes",
            "quick_slopes",
            "first_order",
            "gradual",
            "directed",
        ):  # what some of them have in common
            assert f"{package.__name__}.{path.stem}" in homes


@pytest.mark.parametrize(("likelihood", "core_prior", "update"), SAMPLERS, ids=name_of)
def test_samplers(rng, likelihood, core_prior, update):
    """A scan keeps shapes, leaves its input alone, and is a function of its streams."""
    state, data, prior = draw_model(rng, likelihood, core_prior)
    problem = make_problem(data, likelihood, prior, UPDATES[update])
    streams, before = Streams.of_chain(1, 0), copy.deepcopy(state)
    new, info = gibbs.step(streams, 1, state, problem)
    again, _ = gibbs.step(streams, 1, state, problem)
    other, _ = gibbs.step(streams, 2, state, problem)
    assert new.rank == state.rank
    assert np.isfinite(info.log_likelihood)
    for old, kept, one, two, three in zip(
        before.cores, state.cores, new.cores, again.cores, other.cores, strict=True
    ):
        assert old.shape == one.shape
        np.testing.assert_array_equal(old, kept)
        np.testing.assert_array_equal(one, two)
        assert not np.allclose(one, three)
    assert info.energy > 0


@pytest.mark.parametrize("core_prior", CORE_PRIORS, ids=name_of)
def test_core_priors(rng, core_prior):
    shape = (5, 1, 2, 3)
    hyper = core_prior.draw_hyper(rng, shape)
    core = core_prior.draw_core(rng, shape, hyper)
    assert core.shape == shape
    for updated in (core_prior.update_hyper(rng, core), core_prior.update_hyper(rng, core, hyper)):
        assert [np.shape(a) for a in hyper] == [np.shape(a) for a in updated]
    assert core_prior.bind(Axis(5)) == core_prior
    assert core_prior.coupling is Coupling.NONE
    terms = core_prior.slice_prior(core, hyper)
    assert terms.links is None
    assert terms.precision.shape == (6, 6)
    assert terms.diagonal.shape == terms.linear.shape
    assert terms.linear.shape in [(1, 6), (5, 6)]
    # log_prob differs between two cores as the Gaussian of `slice_prior` does
    other = core_prior.draw_core(rng, shape, hyper)

    def log_gaussian(slices):
        total = 0.0
        for i, g in enumerate(slices.reshape(5, 6)):
            diagonal, linear, factors = (own[0] for own in terms.rows(slice(i, i + 1)))
            precision = factors * terms.precision + np.diag(diagonal)
            total += linear @ g - 0.5 * g @ precision @ g
        return total

    np.testing.assert_allclose(
        core_prior.log_prob(core, hyper) - core_prior.log_prob(other, hyper),
        log_gaussian(core) - log_gaussian(other),
        rtol=1e-9,
    )


FOUND = {"tails", "noise_by", "group_mode", "caps", "r", "scatter", "curve"}
"""Settings that the data decide."""


@pytest.mark.parametrize("value", [*LIKELIHOODS, *CORE_PRIORS], ids=name_of)
def test_every_setting_does_something(value, rng):
    """No dead knobs: changing a field changes the log density or the draws."""
    for field in fields(value):
        if field.name in FOUND:
            continue  # tested with what finds it
        old = getattr(value, field.name)
        is_switch = isinstance(old, (bool, int)) and isinstance(value, Likelihood)
        changed = not old if isinstance(old, bool) else 2 * old if is_switch else 1.5 * old + 0.1
        other = replace(value, **{field.name: changed})
        if is_switch:  # of a likelihood: there is a parameter more or less
            assert value.draw_nuisance(rng).shape != other.draw_nuisance(rng).shape, field.name
        elif isinstance(value, Likelihood):
            nuisance = value.draw_nuisance(rng)
            same = value.log_prior(nuisance) == other.log_prior(nuisance)
            starts = value.initial_nuisance(), other.initial_nuisance()
            assert not same or not np.array_equal(*starts), field.name
        else:
            hyper = value.draw_hyper(rng, (4, 1, 2, 2))
            core = value.draw_core(rng, (4, 1, 2, 2), hyper)
            drawn = [
                each.draw_hyper(np.random.default_rng(0), (4, 1, 2, 2)) for each in (value, other)
            ]
            same = all(map(np.array_equal, *drawn))
            assert not same or value.log_prob(core, hyper) != other.log_prob(core, hyper), (
                field.name
            )


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_likelihoods(rng, likelihood):
    nuisance = likelihood.draw_nuisance(rng)
    assert nuisance.shape == likelihood.initial_nuisance().shape
    f = rng.standard_normal(20_000)
    y = likelihood.simulate(rng, f, nuisance)
    likelihood.check(y)
    # simulated values have the stated mean and variance
    residuals = (y - likelihood.mean(f, nuisance)) / np.sqrt(likelihood.variance(f, nuisance))
    assert abs(residuals.mean()) < 0.04
    assert abs(residuals.var() - 1) < 0.06
    # their expectations lose less than any that are moved from there
    losses = [likelihood.loss(y, likelihood.mean(f + gap, nuisance)) for gap in (0.0, 0.5, 1.0, -1)]
    assert losses[0] < losses[1] < losses[2]
    assert losses[0] < losses[3]
    assert losses[0] < likelihood.loss(y, likelihood.mean(-f, nuisance))
    working = likelihood.augment(rng, f, y, nuisance)
    assert working.weight.shape == working.shift.shape == f.shape
    assert np.all(working.weight > 0)
    statistics = likelihood.statistics(f, y, nuisance, response=working)
    halves = []
    for rows in np.split(np.arange(20_000), [77]):
        own = WorkingResponse(working.weight[rows], working.shift[rows])
        halves.append(likelihood.statistics(f[rows], y[rows], nuisance, response=own))
    np.testing.assert_allclose(sum(halves), statistics)
    assert likelihood.update_nuisance(rng, statistics, nuisance).shape == nuisance.shape
    assert all(np.isfinite(v) for v in likelihood.describe(statistics, nuisance, 1.0).values())
    # a new observation falls below its quantile that often
    draws = rng.standard_normal((9, 2000))
    nuisances = np.stack([likelihood.draw_nuisance(rng) for _ in range(9)])
    chosen = rng.integers(0, 9, 2000)
    new = likelihood.simulate(rng, draws[chosen, np.arange(2000)][:, None], nuisances[chosen])[:, 0]
    quantile = likelihood.quantile(0.8, draws, nuisances)
    assert np.mean(new <= quantile) >= 0.77
    assert np.mean(new < quantile) <= 0.83


def test_pairs_are_all_pairs():
    """What continuous integration samples: every two of likelihood, prior and update."""

    def pairs_of(samplers):
        named = [(name_of(a), name_of(b), update) for a, b, update in samplers]
        return {(i, j, own[i], own[j]) for own in named for i, j in ((0, 1), (0, 2), (1, 2))}

    assert pairs_of(PAIRS) == pairs_of(SAMPLERS)
    assert len(PAIRS) == len(LIKELIHOODS) * len(CORE_PRIORS)
