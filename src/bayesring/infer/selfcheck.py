"""Posterior simulation-based calibration: whether intervals can be believed on this very table.

Values are simulated from a kept draw at the training cells, y' ~ p(y | f_s, nuisance_s). Given the
observed values and most of the simulated ones, the model is fitted anew at the rank found, and
the other simulated values should lie anywhere in their predictive distributions, equally often:
the draw behind them is one of the posterior given the observed values, so it is one of the
posterior given both. (Saeilynoja, Schmitt, Buerkner and Vehtari, 2025, call this posterior SBC.) If
kept draws are not draws of the posterior, observed and simulated values disagree, and ranks show
it; so does the scatter of the observed values around the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from bayesring.data.observations import Observations, both, in_order
from bayesring.data.splitting import left_out
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.infer.state import Draws
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, RingState
from bayesring.priors import RingPrior

REFITS, FEWEST_REFITS, MOST = 20, 2, 5_000
"""Refits by default, and at least; observations of each at most, half of them simulated."""
HELD, MOST_HELD = 0.2, 500
"""Share of them that is held back, and how many at most."""
FEWEST_SCANS, MOST_SCANS = 10, 100
"""Of a refit; half of them are thrown away."""
LEVELS = (0.5, 0.9)
ERRORS = 3.5
"""Standard errors by which mean coverage may be off."""
BELOW, ABOVE = 0.05, 0.08
"""How far off it may be in any case; too wide is less of a lie than too narrow."""
SCATTER = (0.5, 1.5)
"""Mean squares of the observed residuals, over what the model says, that are in order."""


@dataclass(frozen=True)
class SelfCheck:
    """What refits of simulated data say of the intervals of a fit.

    Attributes
    ----------
    ranks : (refits, n), where each value held back lies among draws of its predictive
        distribution, from 0 to 1; of discrete values, where its expectation lies among theirs.
        Uniform if all is well.
    coverage : share of them in the central interval of each level
    scatter : mean square of the observed residuals y - E[y | f_s], over what the draws say that
        it is; one if all is well, four if the noise is half of what it should be
    believable : whether nothing speaks against the intervals
    sentence : the same in words
    """

    ranks: FloatArray
    coverage: dict[float, float]
    scatter: float
    believable: bool
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class CheckedFit(NamedTuple):
    """A fit to be checked, in standard units."""

    chains: Sequence[Draws]
    shape: tuple[int, ...]
    likelihood: Likelihood
    prior: RingPrior
    data: Observations
    seed: int
    scans: int
    """All scans of the fit, which the refits together do not exceed, unless it had hardly any."""
    n_fits: int = REFITS
    """Refits."""


def run(fitted: CheckedFit, engine: Engine, step: Callable[[str], None]) -> SelfCheck:
    """Check a fit, with fewer refits if it was short. One seed gives one answer, whoever works."""
    affordable = max(FEWEST_REFITS, fitted.scans // FEWEST_SCANS)
    fitted = fitted._replace(n_fits=min(fitted.n_fits, affordable))
    scatter = observed_scatter(fitted, engine)

    def one(number: int) -> FloatArray:
        ranks = refit(fitted, number)
        step("refits of simulated data")
        return ranks

    ranks = np.stack(engine.map_pieces(one, range(fitted.n_fits)))
    return judged(ranks, scatter)


def judged(ranks: FloatArray, scatter: float) -> SelfCheck:
    """What ranks (refits, n) and the scatter of the observed values come to.

    Values of one refit depend on each other, so the error of mean coverage comes from how much it
    varies between refits.
    """
    coverage, off = {}, []
    for level in LEVELS:
        inside = np.mean(np.abs(ranks - 0.5) <= 0.5 * level, axis=1)
        coverage[level] = float(inside.mean())
        error = ERRORS * float(inside.std(ddof=1)) / np.sqrt(len(inside))
        if not -max(BELOW, error) <= coverage[level] - level <= max(ABOVE, error):
            off.append(level)
    held = ", ".join(f"{coverage[level]:.0%} in intervals of {level:.0%}" for level in LEVELS)
    if not SCATTER[0] <= scatter <= SCATTER[1]:
        return SelfCheck(
            ranks,
            coverage,
            scatter,
            False,
            f"Do not believe these intervals: the observed values scatter around the fit with "
            f"{scatter:.2g} times the variance that the model has for them.",
        )
    if off:
        return SelfCheck(
            ranks,
            coverage,
            scatter,
            False,
            "Do not believe these intervals: of values simulated by the model itself, refits "
            f"found {held}.",
        )
    return SelfCheck(
        ranks,
        coverage,
        scatter,
        True,
        "Intervals can be believed here, as far as simulation can tell: of values simulated by the "
        f"model itself, refits found {held}.",
    )


def observed_scatter(fitted: CheckedFit, engine: Engine) -> float:
    """Mean of (y - E[y | f_s])^2 over that of Var[y | f_s], over observations and some draws.

    A draw and the data have, under the model, the joint distribution of a truth and what it
    produces, so that both means agree even though the ring was fitted to these very values.
    """
    data, likelihood = fitted.data, fitted.likelihood
    given = likelihood.locate(data.given, data.along)
    columns = np.ascontiguousarray(data.coords.T, dtype=np.int32)

    def one(number: int) -> tuple[float, float]:
        draws, row = draw_of(fitted, number)
        entries = _entries(draws, row, columns, data)
        gaps = data.values - likelihood.mean(entries, draws.nuisance[row], given)
        expected = likelihood.variance(entries, draws.nuisance[row], given)
        return float(np.mean(gaps**2)), float(np.mean(expected))

    found, expected = np.mean(engine.map_pieces(one, range(fitted.n_fits)), axis=0)
    return float(found / expected)


def draw_of(fitted: CheckedFit, number: int) -> tuple[Draws, int]:
    """The draw that a refit simulates from: chains in turn, spread evenly over each."""
    draws = fitted.chains[number % len(fitted.chains)]
    turns = -(-fitted.n_fits // len(fitted.chains))
    turn = number // len(fitted.chains)
    return draws, (2 * turn + 1) * len(draws.flat) // (2 * turns)


def refit(fitted: CheckedFit, number: int) -> FloatArray:
    """Simulate from one draw, fit most of the values, and rank the others, (n,).

    Among as many draws of the refit and the truth itself, each place is equally likely.
    """
    streams, likelihood = Streams.of_refit(fitted.seed, number), fitted.likelihood
    draws, row = draw_of(fitted, number)
    rng = streams.rng(0, Purpose.SAMPLE)
    observed, simulated = simulate(fitted, draws, row, rng)
    n = len(simulated.values)
    hidden = np.zeros(n, dtype=bool)
    hidden[rng.permutation(n)[: min(max(1, int(HELD * n)), MOST_HELD)]] = True
    kept, held = left_out(simulated, hidden)
    problem = make_problem(in_order(_both(observed, kept)), likelihood, fitted.prior)
    state = state_of(fitted, draws, row, streams)
    columns = np.ascontiguousarray(held.coords.T, dtype=np.int32)
    truth, given = held.values, likelihood.locate(held.given, held.along)
    if likelihood.discrete:
        entries = _entries(draws, row, columns, held)
        truth = likelihood.mean(entries, draws.nuisance[row], given)
    below, counted = np.zeros(len(truth)), 0
    scans = min(max(fitted.scans // fitted.n_fits, FEWEST_SCANS), MOST_SCANS)
    for scan in range(1, scans + 1):
        state, _ = gibbs.step(streams, scan, state, problem)
        if scan > scans // 2:
            flat = ring.flatten(ring.weighted(state.cores, state.weights))
            entries = _with_offset(ONE_THREAD.entries(flat, columns), held)
            expected = likelihood.mean if likelihood.discrete else partial(likelihood.simulate, rng)
            below += expected(entries, state.nuisance, given) < truth
            counted += 1
    return np.asarray((below + rng.random(below.size)) / (counted + 1))


def simulate(
    fitted: CheckedFit, draws: Draws, row: int, rng: Generator
) -> tuple[Observations, Observations]:
    """Some of the observed values, and new ones at some of the training cells."""
    data = fitted.data
    observed, cells = (
        _some(data, np.sort(rng.permutation(len(data.values))[: MOST // 2])) for _ in range(2)
    )
    columns = np.ascontiguousarray(cells.coords.T, dtype=np.int32)
    entries = _entries(draws, row, columns, cells)
    given = fitted.likelihood.locate(cells.given, cells.along)
    values = fitted.likelihood.simulate(rng, entries, draws.nuisance[row], given)
    seen = cells.given._replace(lower=None, upper=None)  # simulated values are known themselves
    return observed, in_order(cells._replace(values=values, given=seen))


def _some(data: Observations, rows: IntArray) -> Observations:
    return Observations(data.coords[rows], data.values[rows], data.shape, given=data.given.at(rows))


def _both(one: Observations, other: Observations) -> Observations:
    """Two sets of observations in one."""
    coords = np.concatenate([one.coords, other.coords])
    values = np.concatenate([one.values, other.values])
    return Observations(coords, values, one.shape, given=both(one, other))


def state_of(fitted: CheckedFit, draws: Draws, row: int, streams: Streams) -> RingState:
    """A kept draw as a state: it is a draw of the refit's posterior, if all is well.

    Gains are not kept; they start at one and are drawn anew in the first scan.
    """
    cores, weights = [], []
    for mode, size in enumerate(fitted.shape):
        left, right = int(draws.bonds[mode - 1]), int(draws.bonds[mode])
        core_shape, start = (size, draws.strands, left, right), int(draws.starts[mode])
        weighted = draws.flat[row, start : start + int(np.prod(core_shape))].reshape(core_shape)
        own = draws.bond_weights(row, mode)
        cores.append(weighted / np.where(own == 0.0, 1.0, own)[:, None])
        weights.append(own)
    prior = fitted.prior.for_shape(fitted.shape)
    hyper = [
        prior.of_mode(mode, cores).update_hyper(streams.rng(0, Purpose.HYPER, mode), core)
        for mode, core in enumerate(cores)
    ]
    gains = tuple(np.ones_like(each) for each in weights)
    return RingState(tuple(cores), tuple(weights), gains, tuple(hyper), draws.nuisance[row])


def _entries(draws: Draws, row: int, columns: IntArray, data: Observations) -> FloatArray:
    """f of one draw at some cells, offset included."""
    flat = ring.FlatRing(draws.flat[row], draws.starts, draws.bonds, draws.strands)
    return _with_offset(ONE_THREAD.entries(flat, columns), data)


def _with_offset(entries: FloatArray, data: Observations) -> FloatArray:
    return entries if data.given.offset is None else entries + data.given.offset
