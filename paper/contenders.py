"""The methods of the paper's tables: each learns from training data and predicts at coordinates."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bayesring import metrics
from bayesring.data.observations import Observations
from bayesring.estimator import TensorRing
from bayesring.model.rank import Adaption
from bayesring.model.types import FloatArray, IntArray
from paper import baselines
from paper.runner import Unavailable
from paper.tasks import TASKS, Task

RANKS = (3, 5, 10)
"""Ranks from which the paper chooses by validation."""
VALIDATION = 0.1
"""Share of the training data on which a rank is chosen."""
VI_RANKS = (10, 8, 5, 3)
"""Initial ranks of BTR-VI, which only drops: the first that fits into memory and time is taken."""
VI_HOURS = 2.0
"""Hours that a fit of BTR-VI may be estimated to take."""
SWEEPS = 300
"""Sweeps of both variational methods, at most."""
QUICK_RING = {"warmup": 8, "draws": 6, "chains": 1}


class PeerChoice(NamedTuple):
    """Settings of SMURFF."""

    latent: int
    cap: float
    """Bound on the signal-to-noise ratio, for real values."""


class Job(NamedTuple):
    """Input of a method: training data, never the test values."""

    train: Observations
    task: Task
    seed: int
    threads: int
    quick: bool
    peer: PeerChoice | None = None
    """SMURFF's settings, for SMURFF."""


class Predictor(NamedTuple):
    """Output of a method."""

    predict: Callable[[IntArray], FloatArray]
    """Predictions at coordinates (n, D); for binary data, scores in [0, 1]."""
    described: dict[str, Any]
    """What was estimated or chosen, for the cell's row."""
    interval: Callable[[IntArray], tuple[FloatArray, FloatArray]] | None = None
    """Bounds of 90 % intervals, if the method has any."""
    is_probability: bool = False
    """Whether scores of binary data are probabilities."""


class Contender(NamedTuple):
    """A row of the tables."""

    label: str
    fit: Callable[[Job], Predictor]
    printed: str | None = None
    """Its row in the paper's tables, if any."""
    tables: tuple[str, ...] = ("continuous", "binary")
    leaves_out: tuple[str, ...] = ()
    """Data sets on which it would take hours."""

    def runs_on(self, name: str) -> bool:
        """Whether the tables include it for this data set."""
        return TASKS[name].table in self.tables and name not in self.leaves_out


def gibbs(job: Job) -> Predictor:
    """Our Gibbs sampler with every default, and what its loader says of the data."""
    return _ring(job, {"rank": 2} | QUICK_RING if job.quick else {}, **_known(job))


def gibbs_paper(job: Job) -> Predictor:
    """Our Gibbs sampler with the paper's prior and its rank adaption."""
    settings = {"rank": Adaption(2), "prior": "paper"}
    return _ring(job, settings | (QUICK_RING if job.quick else {}))


def online_em(job: Job) -> Predictor:
    """Our online EM with every default."""
    short = {"rank": 2, "epochs": 2, "draws": 6, "chains": 1} if job.quick else {}
    return _ring(job, {"inference": "online-em"} | short, **_known(job))


def _known(job: Job) -> dict[str, Any]:
    """Names of the modes and positions of their labels."""
    data = job.task.load()
    return {"modes": list(data.labels), "positions": data.positions}


def _ring(job: Job, settings: dict[str, Any], **known: Any) -> Predictor:
    model = TensorRing(
        likelihood=job.task.likelihood,
        shape=job.train.shape,
        random_state=job.seed,
        n_jobs=job.threads,
        progress=False,
        **settings,
    )
    model.fit(job.train.coords, job.train.values, **known)

    def predict(coords: IntArray) -> FloatArray:
        """Predict through the whole tensor if most of it is needed."""
        if 2 * len(coords) > prod(job.train.shape):
            return np.asarray(model.predict_tensor()[tuple(coords.T)])
        return np.asarray(model.predict(coords))

    ranks = [list(draws.rank) for draws in model.posterior_.chains]
    return Predictor(
        predict,
        {"rank": ranks, "budget": _ring_budget(model)},
        lambda coords: model.predict_interval(coords, level=0.9),
        is_probability=True,
    )


def _ring_budget(model: TensorRing) -> dict[str, Any]:
    """Scans of each chain, or passes over the data of each ring of online EM."""
    if model.sampled_:
        return {"scans": [len(trace.log_likelihood) for trace in model.trace_]}
    passes = [each.rows_seen / model.n_observations_ for each in model.estimates_]
    return {"epochs": [round(each, 1) for each in passes]}


def bayesian_cp(job: Job) -> Predictor:
    """Bayesian CP (Zhao et al., 2015): starts large, prunes."""
    return _baseline(
        job, "BayesianCP", {"rank": 2, "max_iter": 3} if job.quick else {"max_iter": SWEEPS}
    )


def ring_vi(job: Job) -> Predictor:
    """Bayesian tensor ring by variational inference (Long et al., 2021): starts large, prunes.

    Its cost grows with R^6, so it starts from rank 10 where memory and time allow it, and from 5 or
    3 elsewhere.
    """
    if job.quick:
        return _baseline(job, "BayesianRingVI", {"rank": 2, "max_iter": 3})
    for rank in VI_RANKS[:-1]:
        settings = {"rank": rank, "max_iter": SWEEPS, "max_hours": VI_HOURS}
        try:
            return _baseline(job, "BayesianRingVI", settings)
        except baselines.TooLarge:  # said before the first sweep
            continue
    return _baseline(job, "BayesianRingVI", {"rank": VI_RANKS[-1], "max_iter": SWEEPS})


def tensor_train(job: Job) -> Predictor:
    """Tensor train by weighted optimisation (Yuan et al., 2017), rank chosen by validation."""
    settings = {"max_iter": 3} if job.quick else {}
    ranks = (2, 3) if job.quick else RANKS
    part, held = hold_out(job.train, job.seed)
    errors = {}
    for rank in ranks:
        trial = _fit(job._replace(train=part), "TensorTrainWOPT", {"rank": rank} | settings)
        errors[rank] = error_of(job.task, held.values, trial.predict(held.coords))
    chosen = min(errors, key=lambda rank: errors[rank])
    found = _baseline(job, "TensorTrainWOPT", {"rank": chosen} | settings)
    validation = {str(rank): float(error) for rank, error in errors.items()}
    return found._replace(described=found.described | {"validation": validation})


def hold_out(train: Observations, seed: int) -> tuple[Observations, Observations]:
    """Training data without a tenth, and that tenth."""
    order = np.random.default_rng(seed).permutation(len(train.values))
    n_held = round(VALIDATION * len(order))
    parts = (np.sort(order[n_held:]), np.sort(order[:n_held]))
    kept, held = (Observations(train.coords[p], train.values[p], train.shape) for p in parts)
    return kept, held


def error_of(task: Task, truth: FloatArray, predicted: FloatArray) -> float:
    """What a choice is made by: one minus the AUC of binary values, the RMSE of others."""
    if task.likelihood == "bernoulli":
        return 1.0 - metrics.auc(truth, predicted)
    return metrics.rmse(truth, predicted)


def _baseline(job: Job, name: str, settings: dict[str, Any]) -> Predictor:
    model = _fit(job, name, settings)
    rank = getattr(model, "rank_", settings.get("rank"))
    described = {"rank": np.asarray(rank).tolist(), "budget": _budget(model)}
    return Predictor(lambda coords: np.asarray(model.predict(coords)), described)


def _budget(model: Any) -> dict[str, Any]:
    """What a baseline was given and what it used: initial rank, scans, steps and their limit."""
    if isinstance(model, baselines.Smurff):
        return {"start": model.rank, "scans": model.warmup + model.draws}
    steps = getattr(model, "lower_bounds_", None)
    steps = model.losses_ if steps is None else steps
    return {"start": model.rank, "steps": len(steps), "limit": model.max_iter}


def _fit(job: Job, name: str, settings: dict[str, Any]) -> Any:
    model = getattr(baselines, name)(
        likelihood=job.task.likelihood, random_state=job.seed, progress=False, **settings
    )
    return model.fit(job.train.coords, job.train.values, shape=job.train.shape)


def smurff(job: Job) -> Predictor:
    """SMURFF with the settings that were chosen for it; a peer, not in the paper.

    Seconds are those of its scans, by a clock in its own process.
    """
    if find_spec("smurff") is None:
        raise Unavailable("SMURFF is not installed: pip install --group paper.")
    settings: dict[str, Any] = {"rank": 2, "warmup": 5, "draws": 5}
    if not job.quick:
        if job.peer is None:
            raise Unavailable(
                "SMURFF's number of factors and cap are not chosen yet: `make peers` chooses them."
            )
        settings = {"rank": job.peer.latent, "cap": job.peer.cap}
    model = _fit(job, "Smurff", settings | {"n_jobs": job.threads})
    described = {"rank": model.rank_, "cap": model.cap, "budget": _budget(model)}
    return Predictor(
        lambda coords: np.asarray(model.predict(coords)),
        described | model.clocks_.described,
        is_probability=job.task.likelihood == "bernoulli",
    )


def training_mean(job: Job) -> Predictor:
    """No model: the mean of the training values everywhere."""
    mean = float(job.train.values.mean())
    return Predictor(lambda coords: np.full(len(coords), mean), {})


def zero(job: Job) -> Predictor:
    """No model: zero everywhere, which is what a method predicts after pruning everything."""
    return Predictor(lambda coords: np.zeros(len(coords)), {})


OURS, SMURFF, FAVOURED = "bayesring", "SMURFF", "SMURFF-favoured"
PEERS = (SMURFF, FAVOURED)
METHODS = {
    "BayesCP": Contender("Bayesian CP", bayesian_cp, "BayesCP"),
    "TTWOPT": Contender("TTWOPT", tensor_train, "TTWOPT"),
    "BTR-VI": Contender("BTR-VI", ring_vi, "BayesTR-VI"),
    OURS: Contender("bayesring, Gibbs", gibbs, "SBTR-Gibbs"),
    "online-EM": Contender("bayesring, online EM", online_em, "SBTR-Online"),
    "Gibbs-paper": Contender(
        "bayesring, Gibbs with the paper's prior", gibbs_paper, "SBTR-Gibbs", leaves_out=("DBLP",)
    ),
    SMURFF: Contender("SMURFF", smurff),
    FAVOURED: Contender("SMURFF, best by test error, which favours it", smurff),
    "mean": Contender("training mean", training_mean),
    "zero": Contender("zero", zero, tables=("continuous",)),
}
"""Keyed by the name used in files and --only. The first five are the paper's, the rest extras."""
