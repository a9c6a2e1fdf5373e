"""R-hat, effective sample sizes and Monte Carlo errors, as functions of draws.

Draws have the shape (chains, draws) or (chains, draws, ...), with one quantity per element of the
trailing axes; results have the shape of the trailing axes. Definitions follow Vehtari, Gelman,
Simpson, Carpenter and Buerkner (2021), "Rank-normalization, folding, and localization", Bayesian
Analysis 16(2). Every chain is split into halves, without the middle draw if the number of draws is
odd, so one chain is enough: M half-chains of N draws.

All results are NaN for a quantity whose chains have fewer than four draws or a non-finite draw.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log10, prod
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from bayesring.model.types import FloatArray

MIN_DRAWS = 4
"""Minimum number of draws in a chain: two in each half."""
TAIL_PERCENTS = (5, 95)
"""Quantiles used to judge the tails."""
ROUNDING = 1e-13
"""Sums of autocorrelations closer to zero than this count as zero; common with indicators."""
CHUNK_BYTES = 2**23
"""Quantities are processed in chunks whose draws take about this many bytes."""


class Summary(NamedTuple):
    """Posterior mean and standard deviation of quantities, and how far to trust them."""

    mean: FloatArray
    """Mean over the draws of all chains."""
    sd: FloatArray
    """Sample standard deviation over the draws of all chains."""
    mcse: FloatArray
    """Monte Carlo standard error of the mean."""
    ess_bulk: FloatArray
    """Effective sample size of the bulk."""
    ess_tail: FloatArray
    """Effective sample size of the tails."""
    rhat: FloatArray
    """Rank-normalised split R-hat."""


def split_rhat(draws: FloatArray) -> FloatArray:
    """R-hat = sqrt((N - 1) / N + B / W), rank-normalised: the larger of bulk and folded.

    B is the variance of the means of the half-chains, W the mean of their variances. The bulk
    version uses normal scores of the ranks of the draws and detects chains that differ in location;
    the folded version uses those of |x - median| and detects chains that differ in spread. It is
    one if all draws are equal, and infinite if every chain is constant but their values differ.

    Parameters
    ----------
    draws : (chains, draws, ...)
    """

    def of_block(block: FloatArray) -> FloatArray:
        halves = _halves(block)
        return _rank_rhat(halves, _normal_scores(halves))

    return _by_blocks(of_block, draws)


def ess_bulk(draws: FloatArray) -> FloatArray:
    """Effective sample size of the normal scores of the ranks: how well the bulk is explored.

    ESS = M N / tau, tau = 1 + 2 sum_t rho_t, with the sum truncated by Geyer's initial monotone
    sequence and tau at least 1 / log10(M N). If all draws are equal, it is the number of draws.

    Parameters
    ----------
    draws : (chains, draws, ...)
    """

    def of_block(block: FloatArray) -> FloatArray:
        return _ess(_normal_scores(_halves(block)), block[0].size)

    return _by_blocks(of_block, draws)


def ess_tail(draws: FloatArray) -> FloatArray:
    """Smaller effective sample size of 1{x <= q_05} and 1{x <= q_95}: how well tails are explored.

    Parameters
    ----------
    draws : (chains, draws, ...)
    """
    return _by_blocks(_ess_tail, draws)


def ess_mean(draws: FloatArray) -> FloatArray:
    """Effective sample size of the untransformed draws, which determines the error of their mean.

    Parameters
    ----------
    draws : (chains, draws, ...)
    """
    return _by_blocks(_ess_mean, draws)


def mcse_mean(draws: FloatArray) -> FloatArray:
    """Monte Carlo standard error of the mean, sd / sqrt(ESS of the mean).

    Parameters
    ----------
    draws : (chains, draws, ...)
    """

    def of_block(block: FloatArray) -> FloatArray:
        _, sd = _moments(block)
        return np.asarray(sd / np.sqrt(_ess_mean(block)))

    return _by_blocks(of_block, draws)


def summarise(draws: FloatArray) -> Summary:
    """Mean, standard deviation and all diagnostics at once, computing the ranks only once.

    Parameters
    ----------
    draws : (chains, draws, ...)
    """

    def of_block(block: FloatArray) -> FloatArray:
        mean, sd = _moments(block)
        halves = _halves(block)
        scores = _normal_scores(halves)
        summary = Summary(
            mean=mean,
            sd=sd,
            mcse=sd / np.sqrt(_ess_mean(block)),
            ess_bulk=_ess(scores, block[0].size),
            ess_tail=_ess_tail(block),
            rhat=_rank_rhat(halves, scores),
        )
        return np.stack(summary)

    rows = _by_blocks(of_block, draws, (len(Summary._fields),))
    return Summary(*map(np.asarray, rows))


# Below, quantities come first: blocks are (quantities, chains, draws), all finite.


def _by_blocks(
    function: Callable[[FloatArray], FloatArray],
    draws: FloatArray,
    rows: tuple[int, ...] = (),
) -> FloatArray:
    """Apply a function from blocks to (*rows, quantities); NaN where undefined, (*rows, ...).

    Memory is bounded: a block has about `CHUNK_BYTES` bytes.
    """
    draws = np.asarray(draws, dtype=float)
    if draws.ndim < 2:
        raise ValueError(f"draws must have the shape (chains, draws, ...), not {draws.shape}.")
    chains, length, *trailing = draws.shape
    quantities = prod(trailing)
    results = np.full((*rows, quantities), np.nan)
    if chains > 0 and length >= MIN_DRAWS:
        flat = draws.reshape(chains, length, quantities)
        step = max(1, CHUNK_BYTES // (8 * chains * length))
        for start in range(0, quantities, step):
            block = np.ascontiguousarray(flat[:, :, start : start + step].transpose(2, 0, 1))
            finite = np.flatnonzero(np.isfinite(block).all(axis=(1, 2)))
            if finite.size > 0:
                results[..., start + finite] = function(block[finite])
    return results.reshape((*rows, *trailing))


def _halves(block: FloatArray) -> FloatArray:
    """First and last halves of the chains as separate chains."""
    half = block.shape[2] // 2
    return np.concatenate([block[:, :, :half], block[:, :, -half:]], axis=1)


def _normal_scores(block: FloatArray) -> FloatArray:
    """Phi^-1((r - 3/8) / (S + 1/4)) with r the rank among all S draws; ties get the mean rank."""
    flat = block.reshape(len(block), -1)
    size = flat.shape[1]
    order = np.argsort(flat, axis=1)
    ascending = np.take_along_axis(flat, order, axis=1)
    place = np.arange(size)
    doubled = np.broadcast_to(2 * place, flat.shape)
    rises = ascending[:, 1:] != ascending[:, :-1]
    if not rises.all():
        edge = np.ones((len(flat), 1), dtype=bool)
        first = np.where(np.hstack([edge, rises]), place, 0)
        last = np.where(np.hstack([rises, edge]), place, size)
        doubled = (
            np.maximum.accumulate(first, axis=1)
            + np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        )
    ranks = 1 + 0.5 * np.arange(2 * size - 1)
    scores = np.empty(flat.shape)
    np.put_along_axis(scores, order, ndtri((ranks - 0.375) / (size + 0.25))[doubled], axis=1)
    return scores.reshape(block.shape)


def _rank_rhat(halves: FloatArray, scores: FloatArray) -> FloatArray:
    """Larger of the bulk and the folded R-hat, given the normal scores of the half-chains."""
    scaled, _ = _scaled(halves)
    folded = np.abs(scaled - np.median(scaled, axis=(1, 2), keepdims=True))
    return np.maximum(_rhat(scores), _rhat(_normal_scores(folded)))


def _rhat(halves: FloatArray) -> FloatArray:
    """sqrt((N - 1) / N + B / W)."""
    length = halves.shape[2]
    start = halves[:, :, :1]
    # Equal draws have variance exactly zero if one of them is subtracted before averaging.
    within = (halves - start).var(axis=2, ddof=1).mean(axis=1)
    means = start[:, :, 0] + (halves - start).mean(axis=2)
    between = (means - means[:, :1]).var(axis=1, ddof=1)
    moving = within > 0
    ratio = between / np.where(moving, within, 1.0)
    rhat = np.sqrt((length - 1) / length + ratio)
    return np.where(moving, rhat, np.where(between > 0, np.inf, 1.0))


def _ess(halves: FloatArray, n_draws: int) -> FloatArray:
    """M N / tau from half-chains; `n_draws` if all draws are equal.

    rho_t = 1 - (W - mean of c_t) / ((N - 1) / N W + B), with c_t the autocovariance of a half-chain
    at lag t and W and B as in `split_rhat`. Sums P_k = rho_2k + rho_2k+1 are kept up to the first
    that is not positive (or to the end), and made non-increasing. The even term of the first
    omitted pair counts once, which lowers the bias of chains with negative correlation.
    """
    quantities, chains, length = halves.shape
    shifted = halves - halves[:, :1, :1]
    means = shifted.mean(axis=2)
    covariance = _mean_autocovariance(shifted - means[:, :, None])
    total = covariance[:, 0] + means.var(axis=1, ddof=1)
    constant = total <= 0
    within = covariance[:, :1] * length / (length - 1)
    rho = 1 - (within - covariance) / np.where(constant, 1.0, total)[:, None]
    rho[:, 0] = 1.0

    n_pairs = 1 + max(0, (length - 3) // 2)
    even = rho[:, : 2 * n_pairs : 2]
    pairs = even + rho[:, 1 : 2 * n_pairs : 2]
    ends = pairs <= ROUNDING
    ends[:, -1] = True
    end = ends.argmax(axis=1)
    kept = np.arange(n_pairs) < end[:, None]
    falling = np.where(kept, np.minimum.accumulate(pairs, axis=1), 0.0)
    here = (np.arange(quantities), end)
    rest = np.where(pairs[here] < -ROUNDING, np.maximum(even[here], 0.0), even[here])
    tau = -1 + 2 * falling.sum(axis=1) + rest

    size = chains * length
    return np.where(constant, n_draws, size / np.maximum(tau, 1 / log10(size)))


def _mean_autocovariance(centred: FloatArray) -> FloatArray:
    """sum_s x_s x_{s+t} / N at lags t = 0, ..., N - 1, mean over chains, (quantities, N)."""
    length = centred.shape[2]
    padded = next_fast_len(2 * length - 1, real=True)
    spectrum = rfft(centred, padded, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    return np.asarray(irfft(power, padded, axis=1)[:, :length] / length)


def _ess_tail(block: FloatArray) -> FloatArray:
    """Smaller effective sample size of the indicators of both tails.

    x <= q is evaluated as x <= x_(k), with x_(k) the largest draw not above the interpolated
    quantile q: the order statistic has no rounding error.
    """
    flat = block.reshape(len(block), -1)
    size = flat.shape[1]
    places = [(size - 1) * percent // 100 for percent in TAIL_PERCENTS]
    ordered = np.partition(flat, places, axis=1)
    sizes = []
    for place in places:
        below = _halves((block <= ordered[:, place, None, None]).astype(float))
        sizes.append(_ess(below, below[0].size))
    equal = flat.min(axis=1) == flat.max(axis=1)
    return np.where(equal, size, np.minimum(*sizes))


def _ess_mean(block: FloatArray) -> FloatArray:
    scaled, _ = _scaled(block)
    return _ess(_halves(scaled), block[0].size)


def _moments(block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and sample standard deviation over all chains; exactly zero for equal draws."""
    scaled, exponent = _scaled(block)
    first = scaled[:, :1, :1]
    mean = first[:, 0, 0] + (scaled - first).mean(axis=(1, 2))
    sd = (scaled - first).std(axis=(1, 2), ddof=1)
    return np.ldexp(mean, exponent), np.ldexp(sd, exponent)


def _scaled(block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Draws scaled by a power of two into [-1, 1] to prevent overflow, and its exponent."""
    _, exponent = np.frexp(np.abs(block).max(axis=(1, 2)))
    return np.ldexp(block, -exponent[:, None, None]), exponent
