"""Who competes: trivial methods, SMURFF, and bayesring with nothing set but the positions.

Counts are also fitted with `likelihood="auto"`, which looks at the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bayesring import TensorRing
from bayesring.model.types import FloatArray, IntArray
from paper.arena import trivial
from paper.arena.contests import Contest
from paper.arena.trivial import Guess, Known
from paper.contenders import OURS, QUICK_RING, SMURFF, Job, PeerChoice, smurff
from paper.smurff_search import choose_inside
from paper.tasks import Task


class RivalSetting(NamedTuple):
    """How to run a method."""

    seed: int
    threads: int
    quick: bool


class Entrant(NamedTuple):
    """A fitted method."""

    predict: Callable[[IntArray], FloatArray]
    median: Callable[[IntArray], FloatArray] | None = None
    """For absolute errors; None if it is the same as `predict`."""
    interval: Callable[[IntArray], tuple[FloatArray, FloatArray]] | None = None
    """Bounds of 90 % intervals, if the method has any."""
    described: Mapping[str, Any] = {}


Rival = Callable[[Known, RivalSetting], Entrant]
BY_VALUES = f"{OURS} auto"
"""bayesring with the likelihood that suits the values."""


def rivals(contest: Contest) -> dict[str, Rival]:
    """Methods that take part in a contest, by the names used in files and --only."""
    found: dict[str, Callable[[Known, IntArray], Guess]] = {
        "mean": trivial.overall,
        "additive": trivial.additive,
    }
    for name, recodings in contest.groups.items():
        found[name] = partial(trivial.grouped, recodings=recodings)
    for name in contest.lines:
        found[f"along {name}"] = partial(trivial.along, name=name)
    if contest.plane:
        found[f"plane {' x '.join(contest.plane)}"] = partial(trivial.plane, names=contest.plane)
    for name in contest.modes:
        found[f"neighbours of {name}"] = partial(trivial.neighbours, name=name)
    taking: dict[str, Rival] = {
        name: partial(_simple, guess=guess) for name, guess in found.items()
    }
    taking |= {SMURFF: _smurff, OURS: _ours}
    if contest.counts:
        taking[BY_VALUES] = partial(_ours, likelihood="auto")
    return taking


def _simple(
    known: Known, setting: RivalSetting, guess: Callable[[Known, IntArray], Guess]
) -> Entrant:
    """A trivial method, which guesses once for both kinds of errors."""
    last: list[tuple[IntArray, Guess]] = []

    def at(coords: IntArray) -> Guess:
        if not last or last[0][0] is not coords:
            last[:] = [(coords, guess(known, coords))]
        return last[0][1]

    return Entrant(lambda coords: at(coords).mean, lambda coords: at(coords).median)


def _smurff(known: Known, setting: RivalSetting) -> Entrant:
    """SMURFF; its number of factors and its cap are chosen on held-out training data."""
    task = Task(lambda: known.data, "continuous", (), ())
    job = Job(known.train, task, setting.seed, setting.threads, setting.quick)
    chosen, errors = (PeerChoice(2, 10.0), {}) if setting.quick else choose_inside(job)
    fitted = smurff(job._replace(peer=chosen))
    return Entrant(
        fitted.predict,
        described={"latent": chosen.latent, "validation": errors} | fitted.described,
    )


def _ours(known: Known, setting: RivalSetting, **settings: Any) -> Entrant:
    """`TensorRing()` with nothing set but the positions of ordered modes, or the likelihood."""
    settings |= {"rank": 2} | QUICK_RING if setting.quick else {}
    ring = TensorRing(random_state=setting.seed, n_jobs=setting.threads, progress=False, **settings)
    given: dict[str, Any] = {"positions": known.data.positions, "modes": list(known.data.labels)}
    ring.fit(known.train.coords, known.train.values, shape=known.train.shape, **given)

    def predict(coords: IntArray) -> FloatArray:
        """Predict through the whole tensor if most of it is needed."""
        if 2 * len(coords) > prod(known.train.shape):
            return np.asarray(ring.predict_tensor()[tuple(coords.T)])
        return np.asarray(ring.predict(coords))

    median = partial(ring.predict, point="median")
    described = {
        "rank": list(ring.rank_),
        "ordered": list(known.data.positions),
        "likelihood": type(ring.posterior_.likelihood).__name__,
    }
    return Entrant(predict, median, partial(ring.predict_interval, level=0.9), described)
