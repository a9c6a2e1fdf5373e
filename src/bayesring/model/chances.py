"""Probabilities of a one, set by held-out values so that they come true as often as they say.

Two things may be wrong with the probabilities of a mixture over draws. Log odds may scatter too
much or too little from draw to draw, so that their mean is too close to even odds, or not close
enough: they are drawn towards their mean over draws by the factor `scatter`. What is still wrong is
put right by an increasing `curve`: log odds that belong to those at `KNOTS`, straight between them,
so that cells keep their order. Either is left alone unless held-out values speak against it; but
where there are more certain zeros than ones, or the reverse, a factor moves the mean probability,
too, and a curve parallel to the diagonal puts that right.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from bayesring.model.types import FloatArray

KNOTS = logit([0.003, 0.01, 0.03, 0.07, 0.15, 0.25, 0.35, 0.45])
KNOTS = np.concatenate([KNOTS, -KNOTS[::-1]])
"""Log odds at which a curve is given; beyond the ends it goes on in parallel to the diagonal."""
SCATTERS, PLAIN = np.arange(31) / 20, 20
"""Factors that are tried, and the place of one among them."""
BELIEF = 0.2
"""Standard deviation of the factor around one, and of a shift of log odds around zero, before
held-out values speak."""
PSEUDO = 25.0
"""Values that weigh as much as the belief that the probabilities near a knot are right."""
SURE = 2.0
"""Log likelihood that a factor must gain, and that a curve must gain for every knot in use."""
ERRORS = 2.0
"""Standard errors that the gain of a factor must exceed besides."""
ROUNDS = 30
EDGE = 1e-9


def fit_scatter(values: FloatArray, mean: FloatArray, variance: FloatArray) -> float:
    """The factor under which `values` (n,) of zeros and ones are most likely; one unless sure.

    `mean` and `variance` are those of their probabilities over draws. If log odds are normal with
    mean mu and variance s^2, probabilities have a mean of about expit(mu / k) and a variance of
    about mean (1 - mean) (1 - 1 / k), k^2 = 1 + pi s^2 / 8.
    """
    mean = np.clip(mean, EDGE, 1.0 - EDGE)
    k = 1.0 / (1.0 - np.clip(variance / (mean * (1.0 - mean)), 0.0, 0.95))
    centre, square = logit(mean) * k, k**2 - 1.0  # pi s^2 / 8
    logs = np.stack(
        [_log_likelihoods(values, centre / np.sqrt(1.0 + c**2 * square)) for c in SCATTERS]
    )
    best = int(np.argmax(logs.sum(axis=1) - 0.5 * ((SCATTERS - 1.0) / BELIEF) ** 2))
    gains = logs[best] - logs[PLAIN]
    sure = gains.sum() > SURE + ERRORS * np.sqrt(gains.size) * gains.std()
    return float(SCATTERS[best if sure else PLAIN])


def scattered(mean: FloatArray, variance: FloatArray, scatter: float) -> FloatArray:
    """Probabilities after the factor, by the approximation of `fit_scatter`."""
    mean = np.clip(mean, EDGE, 1.0 - EDGE)
    k = 1.0 / (1.0 - np.clip(variance / (mean * (1.0 - mean)), 0.0, 0.95))
    return np.asarray(expit(logit(mean) * k / np.sqrt(1.0 + scatter**2 * (k**2 - 1.0))))


def fit_curve(values: FloatArray, mean: FloatArray) -> tuple[float, ...]:
    """Log odds at `KNOTS` that make `values` (n,) as frequent as said; empty unless sure.

    Near each knot, the share of ones, drawn towards the mean probability there as if by `PSEUDO`
    values more, gives a shift of log odds.
    """
    odds = logit(np.clip(mean, EDGE, 1.0 - EDGE))
    near = np.searchsorted(0.5 * (KNOTS[1:] + KNOTS[:-1]), odds)
    counts = np.bincount(near, minlength=KNOTS.size)
    used = counts > 0
    said = np.bincount(near, expit(odds), KNOTS.size)[used] / counts[used]
    ones = np.bincount(near, values, KNOTS.size)[used]
    share = (ones + PSEUDO * said) / (counts[used] + PSEUDO)
    shifts = np.interp(KNOTS, KNOTS[used], logit(share) - logit(said))
    curve = np.maximum.accumulate(KNOTS + shifts)
    gain = _log_likelihood(values, along(curve, odds)) - _log_likelihood(values, odds)
    return tuple(curve.tolist()) if gain > SURE * used.sum() else ()


def fit_shift(values: FloatArray, mean: FloatArray) -> tuple[float, ...]:
    """The curve parallel to the diagonal under which `values` (n,) are most likely.

    Its distance from the diagonal is believed to be within `BELIEF` of zero.
    """
    odds = logit(np.clip(mean, EDGE, 1.0 - EDGE))
    shift = 0.0
    for _ in range(ROUNDS):
        now = expit(odds + shift)
        slope = float((values - now).sum()) - shift / BELIEF**2
        shift += slope / (float((now * (1.0 - now)).sum()) + 1.0 / BELIEF**2)
    return tuple((KNOTS + shift).tolist())


def along(curve: FloatArray, odds: FloatArray) -> FloatArray:
    """Log odds where the curve takes them."""
    inside = np.interp(odds, KNOTS, curve)
    return np.asarray(inside + odds - np.clip(odds, KNOTS[0], KNOTS[-1]))


def moved(odds: FloatArray, scatter: float, curve: tuple[float, ...]) -> FloatArray:
    """Log odds (draws, n) whose probabilities have the mean over draws that held-out values want.

    All draws of a cell are moved by one shift, found by Newton's method.
    """
    if scatter != 1.0:
        centre = odds.mean(axis=0)
        odds = centre + scatter * (odds - centre)
    if not curve:
        return odds
    mean = np.clip(expit(odds).mean(axis=0), EDGE, 1.0 - EDGE)
    target = along(np.array(curve), logit(mean))
    shift = target - logit(mean)
    for _ in range(ROUNDS):
        chances = expit(odds + shift)
        now = np.clip(chances.mean(axis=0), EDGE, 1.0 - EDGE)
        slope = np.maximum((chances * (1.0 - chances)).mean(axis=0) / (now * (1.0 - now)), 0.05)
        gap = target - logit(now)
        shift = shift + np.clip(gap / slope, -2.0, 2.0)
        if np.max(np.abs(gap), initial=0.0) < 1e-9:
            break
    return np.asarray(odds + shift)


def _log_likelihood(values: FloatArray, odds: FloatArray) -> float:
    return float(_log_likelihoods(values, odds).sum())


def _log_likelihoods(values: FloatArray, odds: FloatArray) -> FloatArray:
    return np.asarray(values * odds - np.logaddexp(0.0, odds))
