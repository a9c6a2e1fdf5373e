"""Results of inference: kept draws, traces, and the outcome of a whole fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.likelihoods import Likelihood
from bayesring.model.types import FloatArray, IntArray, RingSize

if TYPE_CHECKING:
    from bayesring.infer.estimate import RingEstimate
    from bayesring.infer.holdout import Predicted


def rounded(flat: FloatArray) -> NDArray[Any]:
    """Cores in float32, as draws are kept, in memory as in files; unless they are too large.

    That moves an entry by some 1e-7 of its terms, far less than draws differ.
    """
    with np.errstate(over="ignore"):
        small = flat.astype(np.float32)
    return small if np.isfinite(small).all() else flat


class Draws(NamedTuple):
    """Kept draws of one chain, all of the same rank, with weights folded into the cores."""

    flat: NDArray[Any]
    """(draws, N), one row per draw, laid out as in `ring.FlatRing`; float32, see `rounded`."""
    starts: IntArray
    bonds: IntArray
    """(D,), rank of each bond of a strand."""
    strands: int
    nuisance: FloatArray
    """(draws, p)."""
    scans: IntArray
    """(draws,), which scans were kept, from 1."""
    weights: FloatArray
    """(draws, W), lambda of every bond, end to end."""

    @property
    def size(self) -> RingSize:
        """Strands and bonds of the ring."""
        return RingSize(self.strands, tuple(int(bond) for bond in self.bonds))

    @property
    def rank(self) -> tuple[int, ...]:
        """Rank of each bond over all strands."""
        return tuple(self.strands * int(number) for number in self.bonds)

    def bond_weights(self, row: int, bond: int) -> FloatArray:
        """lambda^(d) of one draw, (S, R_d)."""
        ends = np.cumsum(self.rank)
        return np.split(self.weights[row], ends[:-1])[bond].reshape(self.strands, -1)


class Trace(NamedTuple):
    """Trace of every scan of one chain, warm-up included."""

    rank: IntArray
    """(scans, D)."""
    log_likelihood: FloatArray
    """(scans,)."""
    described: dict[str, FloatArray]
    """The likelihood's own numbers, (scans,) each."""


class Outcome(NamedTuple):
    """Result of a run of several chains."""

    likelihood: Likelihood
    """The likelihood at the end of the chains: calibrated if it had open bounds."""
    chains: list[tuple[Draws, Trace]]
    held_out: Predicted | None
    """Predictions for held-out observations before the chains saw them, if any."""
    sampled: bool = True
    """Whether draws come from chains; otherwise from normals around online EM estimates."""
    estimates: tuple[RingEstimate, ...] = ()
    """The rings of online EM, which can continue with more data."""
    failure: Exception | None = None
    """The error that ended a stream of data early."""
    interrupt: BaseException | None = None
    """The error that ended the chains early; there are fewer draws then."""
    warmup: int = 0
    """Scans of each chain before the first draw."""


class ScanReport(NamedTuple):
    """Progress of one chain after one scan."""

    chain: int
    scan: int
    rank: tuple[int, ...]
    described: dict[str, float]
    stage: str = ""
    """What the scan was for."""


class LookReport(NamedTuple):
    """Progress of one ring of online EM after a look at held-out observations."""

    ring: int
    rows: int
    """Number of rows learned so far."""
    size: RingSize
    rate: float
    loss: float
    """Held-out loss."""
