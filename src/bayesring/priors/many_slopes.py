"""Slopes of so many features that no matrix of them is factorised, as for fingerprints.

Slopes B are drawn given their strength s by conjugate gradients, and s given B. Sparse features
stay sparse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv

from bayesring.model.triangular import in_columns
from bayesring.model.types import FloatArray
from bayesring.priors.normal_wishart import (
    NormalWishart,
    NormalWishartParameters,
    draw_normal_wishart,
)
from bayesring.priors.regression import Centring, Design, FeaturedHyper

WEAKEST, STRONGEST = 2.0**-20, 2.0**10
"""Ends of the range of s; at the lower one features say nothing."""
TOLERANCE = 1e-6
"""Relative error at which conjugate gradients end."""
RENEWED = 0.2
"""Chance in every scan that many slopes are drawn anew."""
MOST_STEPS = 1000
"""Steps of conjugate gradients, at most."""


def draw_strength_prior(rng: Generator) -> float:
    """log s, uniform in its range."""
    return float(np.exp(rng.uniform(np.log(WEAKEST), np.log(STRONGEST))))


def log_density(strength: float) -> float:
    """Log density of `draw_strength_prior`."""
    return float(-np.log(strength * np.log(STRONGEST / WEAKEST)))


def draw_strength(rng: Generator, slopes: FloatArray, precision: FloatArray) -> float:
    """s given B and Omega: 1 / s ~ Ga(F K / 2, tr(Omega B' B) / 2) within its range."""
    shape, rate = 0.5 * slopes.size, 0.5 * float(np.sum((slopes @ precision) * slopes))
    ends = rate / np.array([STRONGEST, WEAKEST])
    cdf, inverse = (gammainc, gammaincinv) if ends[0] < shape else (gammaincc, gammainccinv)
    low, high = np.sort(cdf(shape, ends))
    if not low < high:  # so far out that the range has no mass to speak of
        return WEAKEST if ends[1] < shape else STRONGEST
    place = rng.uniform(low, high)
    found = float(inverse(shape, place)) / rate
    return float(np.clip(1.0 / max(found, 1e-300), WEAKEST, STRONGEST))


def draw_many_slopes(
    rng: Generator,
    slices: FloatArray,
    design: Design,
    centring: Centring,
    precision: FloatArray,
    strength: float,
) -> FloatArray:
    """B given G, Omega and s without a factorisation: (X' T T X + I / s) B = right-hand side.

    With noise E of the slices and E0 of the prior, X' T (T G + E) + E0 / sqrt(s) makes the
    solution a draw; conjugate gradients find it, equation (45).
    """
    noise = in_columns(rng.standard_normal(slices.shape), precision)
    own = in_columns(rng.standard_normal((design.shape[1], slices.shape[1])), precision)
    wanted = design.T @ centring.apply(centring.apply(slices) + noise) + own / np.sqrt(strength)
    columns = np.asarray(_squares(design).sum(axis=0)).ravel() + 1.0 / strength
    return solve(
        lambda slopes: design.T @ centring.twice(design @ slopes) + slopes / strength,
        np.asarray(wanted),
        columns,
    )


def update_many(
    rng: Generator,
    prior: NormalWishart,
    core: FloatArray,
    design: Design,
    hyper: FeaturedHyper | None = None,
    renew: bool = False,
) -> FeaturedHyper:
    """Draw s given B, and B given s by conjugate gradients; mu, Omega and scales given B."""
    slices = core.reshape(len(core), -1)
    if hyper is None:
        shared, strength, renew = prior.update_hyper(rng, core), 1.0, True
        slopes = np.zeros((design.shape[1], slices.shape[1]))
    else:
        shared, slopes = prior.of(hyper), hyper.slopes
        strength = float(hyper.strength[0])
    if renew or rng.random() < RENEWED:
        if slopes.any():
            strength = draw_strength(rng, slopes, shared.precision)
        centring = Centring(np.ones(len(slices)), prior.k0)
        slopes = draw_many_slopes(rng, slices, design, centring, shared.precision, strength)
    given = given_slopes(prior, slices - design @ slopes, slopes, strength, shared.scales)
    mean, precision, scales = prior.with_scales(rng, draw_normal_wishart(rng, given))
    return FeaturedHyper(
        mean, precision, slopes, np.array([strength]), np.zeros(1, dtype=np.int64), scales
    )


def given_slopes(
    prior: NormalWishart,
    residual: FloatArray,
    slopes: FloatArray,
    strength: float,
    scales: FloatArray,
) -> NormalWishartParameters:
    """Conditional of (mu, Omega) given B and s: each row of B counts as one more slice."""
    own = prior.given_scales(residual, scales)
    return own._replace(
        nu=own.nu + len(slopes), scale_inverse=own.scale_inverse + slopes.T @ slopes / strength
    )


def _squares(design: Design) -> Design:
    return design.multiply(design) if hasattr(design, "multiply") else design**2


def solve(
    apply: Callable[[FloatArray], FloatArray],
    wanted: FloatArray,
    diagonal: FloatArray,
    tolerance: float = TOLERANCE,
) -> FloatArray:
    """Solve A B = wanted column by column by conjugate gradients, scaled by A's diagonal."""
    scale = 1.0 / diagonal[:, None]
    found = scale * wanted
    rest = wanted - apply(found)
    scaled = scale * rest
    direction, inner = scaled.copy(), np.sum(rest * scaled, axis=0)
    goal = tolerance**2 * np.sum(wanted * scale * wanted, axis=0)
    for _ in range(MOST_STEPS):
        if np.all(inner <= goal):
            break
        turned = apply(direction)
        bend = np.sum(direction * turned, axis=0)
        step = inner / np.where(bend > 0, bend, 1.0)
        found += step * direction
        rest -= step * turned
        scaled = scale * rest
        before, inner = inner, np.sum(rest * scaled, axis=0)
        direction = scaled + inner / np.where(before > 0, before, 1.0) * direction
    return found
