"""SMURFF, Bayesian CP factorisation by Gibbs sampling (Vander Aa et al., 2019), from PyPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator, RandomState
from scipy.special import ndtr

from bayesring.checks import check_count
from bayesring.data.observations import Observations
from bayesring.engine.threads import count_threads
from bayesring.model.types import FloatArray, IntArray
from bayesring.wording import shown
from paper.baselines.baseline import Baseline, PredictiveMoments, Step
from paper.baselines.sorted_views import lay_out
from paper.kernels.polyadic import polyadic_entries
from paper.peer_process import SmurffRun, run_smurff


class Smurff(Baseline):
    """SMURFF with normal priors on every mode, under the contract of the other baselines.

    It runs in a process of its own (`paper.peer_process`). The factors of the kept scans are read
    back from its file, and predictions are means over them. Binary values have a probit likelihood,
    so scores are probabilities, the mean of Phi(f) over the draws, and need no rescaling. Needs the
    package `smurff`, in the group `paper`.

    Parameters
    ----------
    rank : number of latent factors
    likelihood : "gaussian", with adaptive noise, or "bernoulli", a probit model
    shape : sizes of the modes; None takes the largest coordinates plus one
    warmup, draws : scans discarded, scans kept
    cap : bound on the signal-to-noise ratio of real values; 10 is SMURFF's default
    features : side information by mode, one row per slice, for Macau's prior; None for none
    max_memory : maximum bytes for the kept factors; draws are thinned to fit
    n_jobs : number of threads; None uses all cores. SMURFF's results may depend on it.
    random_state : seed, Generator or RandomState
    progress : whether to show a progress bar

    Attributes
    ----------
    rank_ : number of latent factors
    factors_ : D arrays (draws, I_d, R), in standard units
    clocks_ : the `PeerResult` of its process, without the factors
    shape_ : sizes of the modes
    """

    def __init__(
        self,
        rank: int = 20,
        *,
        likelihood: str = "gaussian",
        shape: tuple[int, ...] | None = None,
        warmup: int = 200,
        draws: int = 300,
        cap: float = 10.0,
        features: Mapping[int, FloatArray] | None = None,
        max_memory: int = 2**30,
        n_jobs: int | None = None,
        random_state: int | Generator | RandomState | None = None,
        progress: bool = True,
    ) -> None:
        self.rank = rank
        self.likelihood = likelihood
        self.shape = shape
        self.warmup = warmup
        self.draws = draws
        self.cap = cap
        self.features = features
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def _steps(self) -> int:
        return check_count(self.warmup, "warmup", 0) + check_count(self.draws, "draws", 1)

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        rank = check_count(self.rank, "rank", 1)
        budget = check_count(self.max_memory, "max_memory", 1)
        thinning = -(-8 * self.draws * rank * sum(data.shape) // budget)
        if not self.cap > 0:
            raise ValueError(f"cap must be positive, got {shown(self.cap)}.")
        run = SmurffRun(
            rank,
            count_threads(self.n_jobs),
            self.warmup,
            self.draws,
            float(self.cap),
            self._is_binary(),
            self.seed_ % 2**31,
            min(thinning, self.draws),
        )
        found = run_smurff(data, run, self.features, lambda: step("scan"))
        self.rank_ = rank
        self.factors_ = found.factors
        self.clocks_ = found._replace(factors=[])

    def _moments(self, coords: IntArray, with_variance: bool) -> PredictiveMoments:
        total = np.zeros(len(coords))
        for entries in self._by_draw(coords):
            total += entries
        return PredictiveMoments(total / len(self.factors_[0]), None)

    def _by_draw(self, coords: IntArray) -> Iterator[FloatArray]:
        """Mean of a value given each draw, in standard units."""
        columns = np.ascontiguousarray(coords.T, dtype=np.int32)
        ones = np.ones(self.rank_)
        for factors in zip(*self.factors_, strict=True):
            entries = polyadic_entries(*lay_out(factors), columns, ones)
            yield ndtr(entries) if self._is_binary() else entries

    def predict_by_draw(self, X: IntArray) -> Iterator[FloatArray]:
        """Predictions of one draw after another, in the order in which they were drawn."""
        for mean in self._by_draw(X):
            yield self.location_ + self.scale_ * mean

    def _scores(self, estimates: FloatArray) -> FloatArray:
        return estimates
