"""What tests of circular and of spatial modes share."""

from __future__ import annotations

import numpy as np

from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.model.joint import draw_prior, simulate
from bayesring.model.types import RingSize
from bayesring.priors.gradual import Gradual
from tests.sampling.ladder import COORDS, SHAPE
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
