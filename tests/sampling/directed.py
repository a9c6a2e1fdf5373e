"""What tests of circular and of spatial modes share."""

from __future__ import annotations

import numpy as np

from bayesring.data.observations import Observations
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.model.joint import draw_prior, simulate
from bayesring.model.types import Axis, RingSize
from bayesring.priors import NormalWishart, RingPrior, UnitWeights
from bayesring.priors.gradual import Gradual
from tests.sampling.ladder import COORDS, SHAPE, batch_error
from tests.sampling.test_extensions import middle_task
from tests.sampling.test_smooth import GAUSSIAN, log_evidence


def state_and_data(rng, prior, likelihood=GAUSSIAN):
    state = draw_prior(rng, SHAPE, RingSize(2, (2, 1, 2)), likelihood, prior)
    return state, simulate(rng, state, COORDS, SHAPE, likelihood), prior


def check_the_proposal(monkeypatch, state, data, prior, covariance):
    """masses[1] - masses[0] is the log ratio of p(y, held slices | ell), by dense algebra."""
    problem, own = make_problem(data, GAUSSIAN, prior), prior.modes[1]
    constants, held, runs = [], [], []
    constant, right, all_runs = Gradual.log_constant, gibbs._held_mass, gibbs._all_runs

    def noted(found, function):
        return lambda *given: found.append(function(*given)) or found[-1]

    monkeypatch.setattr(Gradual, "log_constant", noted(constants, constant))
    monkeypatch.setattr(gibbs, "_held_mass", noted(held, right))
    monkeypatch.setattr(gibbs, "_all_runs", noted(runs, all_runs))
    for steps in ((0, 1), (3, 4), (6, 5)):
        pair = tuple(state.hyper[1]._replace(step=np.array([step])) for step in steps)
        monkeypatch.setattr(Gradual, "alternatives", lambda self, rng, hyper, pair=pair: pair)
        constants.clear(), held.clear(), runs.clear()
        now = state._replace(hyper=(state.hyper[0], pair[0], state.hyper[2]))
        _, task, blocks = middle_task(now, problem)
        task = task._replace(scan=gibbs.WAKE)  # when zero may be proposed
        gibbs.draw_coupled(task, blocks, own, pair[0])
        found = [
            mass + rest + run.log_mass
            for mass, rest, run in zip(constants, held, runs[0], strict=True)
        ]
        free = np.zeros(4, dtype=bool)
        for run in gibbs.passes(own, 4, task.scan)[0]:
            free[np.arange(*run) % 4] = True
        expected = [log_evidence(now, data, own, each, free, covariance) for each in pair]
        np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8, atol=1e-9)


def starts_that_agree(prior, axis, seed, n=1500, others=4):
    """Chains whose length scale starts at zero and at the longest end up with the same ones.

    Each slice has one observation, half of which is noise.
    """
    rng, shape, size = np.random.default_rng(seed), (axis.n, others, others), RingSize(1, (1, 1, 1))
    whole = RingPrior((prior, NormalWishart(), NormalWishart()), UnitWeights()).bind(
        [axis, Axis(others), Axis(others)]
    )
    step = int(np.argmin(np.abs(prior.lengths - prior.lengths[-1] / 32)))
    hyper = prior.draw_hyper(rng, size.core_shape(0, axis.n))._replace(step=np.array([step]))
    core = prior.draw_core(rng, size.core_shape(0, axis.n), hyper).ravel()
    columns = [np.arange(axis.n), *rng.integers(0, others, (2, axis.n))]
    factors = 1 + 0.3 * rng.standard_normal((2, others))
    f = core * factors[0][columns[1]] * factors[1][columns[2]]
    y = (f - f.mean()) / f.std() + rng.standard_normal(axis.n)
    data = Observations(np.stack(columns, axis=1), y, shape)
    problem, means, errors = make_problem(data, GAUSSIAN, whole), [], []
    for place, start in enumerate((0, len(prior.lengths) - 1)):
        streams = Streams.of_chain(seed, place)
        state = gibbs.init(streams, problem, size)
        own = state.hyper[0]._replace(step=np.array([start]))
        state, found = state._replace(hyper=(own, *state.hyper[1:])), []
        for scan in range(1, n + 1):
            state, _ = gibbs.step(streams, scan, state, problem)
            found.append(int(state.hyper[0].step[0]))
        kept = np.array(found[n // 3 :], dtype=float)
        means.append(kept.mean())
        errors.append(batch_error(kept[:, None], 10)[0])
        assert kept.std() > 0
    assert abs(means[0] - means[1]) < 4 * np.hypot(*errors) + 1, (means, errors)
