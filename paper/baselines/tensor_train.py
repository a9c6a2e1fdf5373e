"""Tensor train fitted to the observed cells by gradients (Yuan, Zhao and Cao, 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator, RandomState
from scipy.optimize import minimize

from bayesring.checks import check_count
from bayesring.data.observations import Observations
from bayesring.model.types import FloatArray, IntArray
from paper.baselines.baseline import Baseline, PredictiveMoments, Step
from paper.baselines.sorted_views import lay_out
from paper.kernels.train import train_entries, train_loss

SMALL = 0.1
"""Size of the initial cores relative to the size at which tensor entries have variance one."""


class TensorTrainWOPT(Baseline):
    """Tensor train by weighted optimisation: least squares at the observed cells.

        minimise  1/2 sum_n (y_n - f_n)^2,   f_n = G^(1)[i_1] G^(2)[i_2] ... G^(D)[i_D],

    over cores whose slices G^(d)[i] are (R_{d-1}, R_d) with R_0 = R_D = 1, by L-BFGS with the
    exact gradient. There is no regularisation and the rank is fixed: with few observations the
    train fits their noise, and only early stopping prevents it.

    Parameters
    ----------
    rank : R_1, ..., R_{D-1}, or one number for all; the paper picks 3, 5 or 10 by validation
    likelihood : "gaussian", or "bernoulli" for 0 and 1, see `Baseline`
    shape : sizes of the modes; None takes the largest coordinates plus one
    max_iter : maximum number of L-BFGS iterations
    tol : the descent ends if the relative decrease of the loss is below this
    random_state : seed, Generator or RandomState, of the initial cores
    progress : whether to show a progress bar

    Attributes
    ----------
    rank_ : R_1, ..., R_{D-1}
    cores_ : D arrays (I_d, R_{d-1}, R_d), in standard units
    losses_ : the loss after every iteration
    shape_ : sizes of the modes
    """

    def __init__(
        self,
        rank: int | tuple[int, ...] = 5,
        *,
        likelihood: str = "gaussian",
        shape: tuple[int, ...] | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: int | Generator | RandomState | None = None,
        progress: bool = True,
    ) -> None:
        self.rank = rank
        self.likelihood = likelihood
        self.shape = shape
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.progress = progress

    def _steps(self) -> int:
        return check_count(self.max_iter, "max_iter", 1)

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        self.rank_ = expand_train_rank(self.rank, len(data.shape))
        bonds = np.array([1, *self.rank_, 1])
        cores = initial_cores(rng, data.shape, bonds)
        flat, starts = lay_out(cores)
        columns, values = np.ascontiguousarray(data.coords.T), data.values.astype(float)
        losses: list[float] = []

        def loss(point: FloatArray) -> tuple[float, FloatArray]:
            gradient = np.zeros_like(point)
            return train_loss(point, starts, bonds, columns, values, gradient), gradient

        def record(intermediate_result: Any) -> None:
            losses.append(float(intermediate_result.fun))
            step(f"loss {losses[-1]:.4g}")

        options = {
            "maxiter": self.max_iter,
            "ftol": self.tol,
            "gtol": 0.0,
            "maxfun": 10 * self.max_iter,
        }
        found = minimize(  # type: ignore[call-overload]
            loss, flat, jac=True, method="L-BFGS-B", callback=record, options=options
        )
        self.losses_ = np.array(losses)
        self.cores_ = [
            part.reshape(core.shape)
            for part, core in zip(np.split(found.x, starts[1:]), cores, strict=True)
        ]

    def _moments(self, coords: IntArray, with_variance: bool) -> PredictiveMoments:
        flat, starts = lay_out(self.cores_)
        bonds = np.array([1, *self.rank_, 1])
        columns = np.ascontiguousarray(coords.T, dtype=np.int32)
        return PredictiveMoments(train_entries(flat, starts, bonds, columns), None)


def expand_train_rank(rank: Any, order: int) -> tuple[int, ...]:
    """One number per inner bond from a number or a sequence; an error if `rank` is not valid."""
    given = tuple(rank) if isinstance(rank, (tuple, list)) else (rank,) * (order - 1)
    if len(given) != order - 1:
        raise ValueError(
            f"rank has {len(given)} numbers, but a train over {order} modes has {order - 1} bonds; "
            f"give one number for all or {order - 1} of them."
        )
    return tuple(check_count(number, "rank", 1) for number in given)


def initial_cores(rng: Generator, shape: tuple[int, ...], bonds: IntArray) -> list[FloatArray]:
    """Small normal entries, so that the descent fits the strongest directions first."""
    cores = []
    for mode, n_slices in enumerate(shape):
        spread = SMALL * (bonds[mode] * bonds[mode + 1]) ** -0.25
        cores.append(spread * rng.standard_normal((n_slices, bonds[mode], bonds[mode + 1])))
    return cores
