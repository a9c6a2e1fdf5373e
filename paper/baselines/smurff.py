"""SMURFF, Bayesian CP factorisation by Gibbs sampling (Vander Aa et al., 2019), from PyPI."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState
from scipy.special import ndtr

from bayesring.checks import check_count
from bayesring.data.observations import Observations
from bayesring.engine.threads import count_threads
from bayesring.model.types import FloatArray, IntArray
from paper.baselines.baseline import Baseline, PredictiveMoments, Step
from paper.baselines.sorted_views import lay_out
from paper.kernels.polyadic import polyadic_entries


class Smurff(Baseline):
    """SMURFF with normal priors on every mode, under the contract of the other baselines.

    The factors of the kept scans are read back from SMURFF's file, and predictions are means over
    them. Binary values have a probit likelihood, so scores are probabilities, the mean of Phi(f)
    over the draws, and need no rescaling. Needs the package `smurff`, in the extra `bench`.

    Parameters
    ----------
    rank : number of latent factors
    likelihood : "gaussian", with adaptive noise, or "bernoulli", a probit model
    shape : sizes of the modes; None takes the largest coordinates plus one
    warmup, draws : scans discarded, scans kept
    max_memory : maximum bytes for the kept factors; draws are thinned to fit
    n_jobs : number of threads; None uses all cores. SMURFF's results may depend on it.
    random_state : seed, Generator or RandomState
    progress : whether to show a progress bar

    Attributes
    ----------
    rank_ : number of latent factors
    factors_ : D arrays (draws, I_d, R), in standard units
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
        with TemporaryDirectory() as folder:
            session = smurff_session(
                data,
                None,
                rank,
                count_threads(self.n_jobs),
                self.warmup,
                self.draws,
                probit=self._is_binary(),
                seed=self.seed_ % 2**31,
                save=(Path(folder) / "draws.hdf5", min(thinning, self.draws)),
            )
            session.init()
            while session.step():
                step("scan")
            found = session.makePredictSession()
            kept = [sample.latents for sample in found.samples]
            found.h5_file.close()
        self.rank_ = rank
        self.factors_ = [np.array(factor) for factor in zip(*kept, strict=True)]

    def _moments(self, coords: IntArray, with_variance: bool) -> PredictiveMoments:
        columns = np.ascontiguousarray(coords.T, dtype=np.int32)
        ones = np.ones(self.rank_)
        total = np.zeros(len(coords))
        for factors in zip(*self.factors_, strict=True):
            entries = polyadic_entries(*lay_out(factors), columns, ones)
            total += ndtr(entries) if self._is_binary() else entries
        return PredictiveMoments(total / len(self.factors_[0]), None)

    def _scores(self, estimates: FloatArray) -> FloatArray:
        return estimates


def smurff_session(
    train: Observations,
    test: Observations | None,
    latent: int,
    threads: int,
    burnin: int = 20,
    samples: int = 20,
    probit: bool = False,
    seed: int = 1,
    save: tuple[Path, int] | None = None,
) -> Any:
    """A SMURFF session with normal priors on every mode.

    `save` gives a file and the interval, in scans after the burn-in, at which draws are kept in it.
    """
    smurff = import_smurff()
    tensors = [
        smurff.SparseTensor(
            (
                data.values.astype(float),
                tuple(np.ascontiguousarray(data.coords.T, dtype=np.int64)),
            ),
            data.shape,
        )
        for data in (train, test)
        if data is not None
    ]
    session = smurff.TrainSession(
        priors=["normal"] * len(train.shape),
        num_latent=latent,
        num_threads=threads,
        burnin=burnin,
        nsamples=samples,
        seed=seed,
        verbose=0,
        save_name=None if save is None else str(save[0]),
        save_freq=None if save is None else save[1],
    )
    noise = smurff.ProbitNoise(0.5) if probit else smurff.AdaptiveNoise(1.0, 10.0)
    session.addTrainAndTest(*tensors, noise=noise)
    return session


def import_smurff() -> Any:
    """Import the package, or raise an error that says how to install it."""
    try:
        import smurff
    except ImportError:
        raise ImportError(
            "Smurff needs the package smurff, which is not installed; install it with "
            "pip install --group paper."
        ) from None
    return smurff
