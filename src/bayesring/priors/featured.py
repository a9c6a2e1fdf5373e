"""Core prior of a mode whose labels have features: the mean slice is linear in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from bayesring.model.triangular import in_columns
from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.gradual import MOVES, Gradual, SmoothHyper
from bayesring.priors.many_slopes import (
    draw_strength_prior,
    log_density,
    update_many,
)
from bayesring.priors.mode_prior import CoreShape, Coupling, ModePrior
from bayesring.priors.normal_wishart import SCANS as NEW_SCALES
from bayesring.priors.normal_wishart import (
    NormalWishart,
    NormalWishartParameters,
    around_mean,
)
from bayesring.priors.regression import (
    Centring,
    Design,
    FeaturedHyper,
    FeaturedParameters,
    Regressed,
    Spectrum,
    moved,
    said,
    spectrum_of,
    without_features,
)

STRENGTHS = np.concatenate([[0.0], 2.0 ** np.arange(-8.0, 11.0)])
"""Values of s, zero first."""
NOTHING = 0.1
"""Prior probability that features say nothing."""
FEW, MOST_ENTRIES = 1500, 2**26
"""Features, or labels, up to which slopes are integrated out, and entries of X up to which a sparse
one is filled in for that; above, slopes are drawn given s."""
SCANS = 10
"""Scans over s, many slopes, mu and Omega that start from nothing but slices."""


@dataclass(frozen=True)
class Featured(ModePrior):
    """vec G[i] = mu + B' x_i + deviation, where deviations are those of slices under `base`.

    The rows of B are N(0, s Omega^-1): with rows x_i of mean square one, s is the variance that
    features explain in units of the variance that they leave. It is learned on a grid that
    contains zero, with mu, B and Omega integrated out, so useless features are ignored. Equations
    (41) to (45) of docs/model.md.

    With more than `FEW` features and labels, B is drawn given s by conjugate gradients, and s,
    which is then any number in a range, given B.

    Parameters
    ----------
    base : prior of the slices without features: `NormalWishart`, or one with a length scale
    features : X, (I_d, F); set when the prior is bound to a mode

    Examples
    --------
    >>> bayesring.priors.Featured().base == bayesring.priors.NormalWishart()
    True
    """

    base: NormalWishart | Gradual = field(default_factory=NormalWishart)
    features: Design | None = field(default=None, repr=False, compare=False)

    informed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.base, NormalWishart | Gradual):
            raise ValueError(
                f"base must be NormalWishart or a prior with a length scale, got {self.base!r}."
            )

    @property
    def coupling(self) -> Coupling:  # type: ignore[override]
        """That of the base."""
        return self.base.coupling

    def bind(self, axis: Axis) -> ModePrior:
        """Take the features and positions of the labels."""
        base = self.base.bind(axis) if isinstance(self.base, Gradual) else self.base
        if axis.features is None:
            return base
        bound = Featured(base, axis.features)
        if not bound.is_large and hasattr(axis.features, "toarray"):
            return Featured(base, axis.features.toarray())
        if bound.is_large and isinstance(base, Gradual):
            raise ValueError(
                f"a mode with order may have at most {FEW:,} features, got "
                f"{axis.features.shape[1]:,}; leave it out of order=."
            )
        return bound

    @property
    def exchangeable(self) -> Featured:
        """The same features without order."""
        return Featured(self.base.exchangeable, self.features)

    @property
    def is_large(self) -> bool:
        """Whether slopes are too many to be integrated out."""
        if self.features is None:
            return False
        wide = prod(self.features.shape) > MOST_ENTRIES and hasattr(self.features, "toarray")
        return wide or min(self.features.shape) > FEW

    def start(self, core: FloatArray, hyper: Any = None) -> FloatArray:
        """As those of the base."""
        if hyper is None or not isinstance(self.base, Gradual):
            return self.base.start(core)
        return self.base.start(core, self._of_base(hyper))

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> FeaturedHyper:
        """Draw everything from its prior."""
        shared = self.base.draw_hyper(rng, shape)
        if self.is_large:
            strength = draw_strength_prior(rng)
        else:
            strength = float(rng.choice(STRENGTHS, p=np.exp(_LOG_WEIGHTS)))
        noise = rng.standard_normal((self._design.shape[1], prod(shape[1:])))
        slopes = np.sqrt(strength) * in_columns(noise, shared.precision)
        return self._hyper(shared, slopes, strength)

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: FeaturedHyper) -> FloatArray:
        """Deviations as those of the base, around what features say."""
        core = self.base.draw_core(rng, shape, self._of_base(hyper))
        return core + self._fitted(hyper).reshape(shape)

    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> FeaturedHyper:
        """Draw s, and move the length scale, with all else integrated out; then all else."""
        if self.is_large:
            return update_many(rng, self._wishart, core, self._design, hyper)
        base, strength = self.base, 1.0 if hyper is None else float(hyper.strength[0])
        scales = self._wishart.first_scales(rng, core) if hyper is None else hyper.scales
        step = 0
        if isinstance(base, Gradual):
            step = base._first_step() if hyper is None else int(hyper.step[0])
            step = self._move_length(rng, base, core, step, strength, scales)
        return self._draw_given(rng, core, step, scales)

    def resized_hyper(
        self, rng: Generator, core: FloatArray, hyper: FeaturedHyper
    ) -> FeaturedHyper:
        """Draw all else at the same length scale."""
        if self.is_large:
            return update_many(rng, self._wishart, core, self._design)
        return self._draw_given(
            rng, core, int(hyper.step[0]), self._wishart.first_scales(rng, core)
        )

    def alternatives(self, rng: Generator, hyper: FeaturedHyper) -> tuple[FeaturedHyper, ...]:
        """Those of the base, with the same slopes."""
        if not isinstance(self.base, Gradual):
            return (hyper,)
        found = self.base.alternatives(rng, self._of_base(hyper))
        return tuple(hyper._replace(step=each.step) for each in found)

    def is_exchangeable(self, hyper: FeaturedHyper) -> bool:
        """Whether the length scale is zero."""
        return self.base.is_exchangeable(self._of_base(hyper))

    def log_constant(self, shape: CoreShape, hyper: FeaturedHyper) -> float:
        """That of the base with mu + B' x_i in place of mu."""
        if not isinstance(self.base, Gradual):
            return 0.0
        ones, design = self._whitened(int(hyper.step[0]))
        fitted, common = design @ hyper.slopes, np.outer(ones, hyper.mean)
        squares = ((fitted + common) @ hyper.precision) * (fitted + common)
        squares -= (common @ hyper.precision) * common
        own = self.base.log_constant(shape, self._of_base(hyper))
        return own - 0.5 * float(np.sum(squares))

    def slice_prior(self, core: FloatArray, hyper: FeaturedHyper) -> SlicePrior:
        """That of the base, moved by B' x_i."""
        found = self.base.slice_prior(core, self._of_base(hyper))
        return moved(found, self._fitted(hyper))

    def log_prob(self, core: FloatArray, hyper: FeaturedHyper) -> float:
        """log p(core | B, ...) + log p(B | Omega, s) + log p(s) + that of the base's parameters."""
        residual = core - self._fitted(hyper).reshape(core.shape)
        total = self.base.log_prob(residual, self._of_base(hyper))
        strength, (count, size) = float(hyper.strength[0]), hyper.slopes.shape
        if strength > 0:
            log_det = np.linalg.slogdet(hyper.precision)[1]
            square = np.sum((hyper.slopes @ hyper.precision) * hyper.slopes)
            total += 0.5 * count * (log_det - size * np.log(2 * np.pi * strength))
            total -= 0.5 * square / strength
        return float(total + self._log_weight(strength))

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw everything shared given the slices, then deviations, and add B' x of new labels.

        Features that are not known are normal, with the covariance of those known; with order, at
        their mean.
        """
        hyper = self.draw_shared(rng, core)
        if axis.features is None and not isinstance(self.base, Gradual):
            return around_mean(noise, without_features(hyper, self._fitted(hyper)))
        own = self._of_base(hyper)
        residual = core - self._fitted(hyper).reshape(core.shape)
        new = self.base.new_given(own, residual, noise, axis)
        if axis.features is None:
            return np.asarray(new)
        says, unknown = said(axis, hyper)
        new = np.asarray(new + says.reshape(noise.shape))
        if unknown.any() and not isinstance(self.base, Gradual):
            new[unknown] = around_mean(noise[unknown], without_features(hyper, self._fitted(hyper)))
        return new

    def beside(self, rng: Generator, core: FloatArray, axis: Axis) -> SlicePrior:
        """That of the base given residual slices, moved by B' x of new labels."""
        hyper = self.draw_shared(rng, core)
        residual = core - self._fitted(hyper).reshape(core.shape)
        own = self._of_base(hyper)
        found = self.base.beside_given(own, residual, axis)
        says, unknown = said(axis, hyper)
        found = moved(found, says)
        if not unknown.any() or isinstance(self.base, Gradual):
            return found
        wider = without_features(hyper, self._fitted(hyper))
        precision = np.repeat(found.precision[None], axis.n, axis=0)
        linear = np.broadcast_to(found.linear, (axis.n, len(wider.mean))).copy()
        precision[unknown], linear[unknown] = wider.precision, wider.precision @ wider.mean
        return found._replace(precision=precision, linear=linear)

    def draw_shared(self, rng: Generator, core: FloatArray) -> FeaturedHyper:
        """Draw all hyperparameters given nothing but the slices."""
        if self.is_large:
            hyper = None
            for _ in range(SCANS):
                hyper = update_many(rng, self._wishart, core, self._design, hyper, True)
            assert hyper is not None
            return hyper
        scales, step = self._wishart.first_scales(rng, core), 0
        if isinstance(self.base, Gradual):
            steps = range(len(self.base.lengths))
            found = [self._regressed(core, each, scales) for each in steps]
            masses = [self._masses(own, each, STRENGTHS) for each, own in enumerate(found)]
            totals = np.logaddexp.reduce(masses, axis=1)
            step = int(rng.choice(len(totals), p=np.exp(totals - np.logaddexp.reduce(totals))))
        drawn = self._draw_given(rng, core, step, scales)
        for _ in range(NEW_SCALES - 1 if self._wishart.learned else 0):
            drawn = self._draw_given(rng, core, step, drawn.scales)
        return drawn

    # ---- Online EM.

    def conditional(self, core: FloatArray, spread: FloatArray | None = None) -> FeaturedParameters:
        """Conditional of (mu, Omega) and mean of B at the most probable s."""
        if self.is_large:
            raise ValueError(
                f"online EM takes at most {FEW:,} features of a mode, got "
                f"{self._design.shape[1]:,}; use inference='gibbs'."
            )
        found = self._regressed(core, 0, None)
        masses = [found.log_mass(own, spread) for own in STRENGTHS] + _LOG_WEIGHTS
        strength = float(STRENGTHS[int(np.argmax(masses))])
        slopes = found.slopes(strength)
        scale = found.scale_at(strength)
        if spread is not None:
            scale = scale + spread
        shared = NormalWishartParameters(found.mean(slopes), found.centring.k, found.nu, scale)
        return FeaturedParameters(shared, slopes, strength)

    def estimate_hyper(self, parameters: FeaturedParameters) -> FeaturedHyper:
        """Estimates of the base, and the mean of B."""
        shared = self.base.estimate_hyper(parameters.shared)
        return self._hyper(shared, parameters.slopes, parameters.strength)

    # ---- The parts.

    @cached_property
    def _spectra(self) -> dict[int, Spectrum]:
        return {}

    @property
    def _design(self) -> Design:
        if self.features is None:
            raise ValueError("Featured must be bound to a mode with features first.")
        return self.features

    def _hyper(
        self, shared: Any, slopes: FloatArray, strength: float, step: int | None = None
    ) -> FeaturedHyper:
        own = getattr(shared, "step", np.zeros(1, dtype=np.int64)) if step is None else [step]
        return FeaturedHyper(
            shared.mean,
            shared.precision,
            slopes,
            np.array([strength]),
            np.asarray(own),
            shared.scales,
        )

    def _of_base(self, hyper: FeaturedHyper) -> Any:
        """The hyperparameters of the base."""
        if isinstance(self.base, Gradual):
            return SmoothHyper(hyper.mean, hyper.precision, hyper.step, hyper.scales)
        return self._wishart.of(hyper)

    def _fitted(self, hyper: FeaturedHyper) -> FloatArray:
        """X B, (I_d, K)."""
        return np.asarray(self._design @ hyper.slopes)

    def _whitened(self, step: int) -> tuple[FloatArray, Design]:
        """The column of ones, and X, as seen by independent innovations of the slices."""
        if not isinstance(self.base, Gradual):
            return np.ones(self._design.shape[0]), self._design
        chain = self.base._chain(step)
        return chain.a, chain.innovations(self._design)

    def _regressed(self, core: FloatArray, step: int, scales: FloatArray | None) -> Regressed:
        """What the slices say of mu, B and Omega at a length scale and scales."""
        slices = core.reshape(len(core), -1)
        if isinstance(self.base, Gradual):
            slices = self.base._chain(step).innovations(slices)
        prior = self._wishart._prior(slices.shape[1], scales)
        ones, design = self._whitened(step)
        centring = Centring(ones, prior.k)
        if step not in self._spectra:
            self._spectra[step] = spectrum_of(design, centring)
        spectrum, own = self._spectra[step], centring.apply(slices)
        turned = spectrum.vectors.T @ (design.T @ centring.apply(own))
        nu, scale_inverse = prior.nu + len(core), prior.scale_inverse + own.T @ own
        return Regressed(slices, design, centring, spectrum, turned, nu, scale_inverse)

    @property
    def _wishart(self) -> NormalWishart:
        """The prior of (mu, Omega)."""
        return self.base.exchangeable

    def _masses(
        self, found: Regressed, step: int, strengths: Sequence[float] | FloatArray
    ) -> FloatArray:
        """log p(core, s, ell) without mu, B and Omega, up to a constant, at some strengths."""
        masses = np.array([found.log_mass(own) + self._log_weight(own) for own in strengths])
        if isinstance(self.base, Gradual):
            masses -= 0.5 * found.slices.shape[1] * np.sum(np.log(self.base._chain(step).v))
            masses += self.base._log_weights[step]
        return masses

    def _log_weight(self, strength: float) -> float:
        """Log prior of s: its probability, or its density."""
        if self.is_large:
            return log_density(strength)
        return float(_LOG_WEIGHTS[int(np.argmin(np.abs(STRENGTHS - strength)))])

    def _move_length(
        self,
        rng: Generator,
        base: Gradual,
        core: FloatArray,
        step: int,
        strength: float,
        scales: FloatArray,
    ) -> int:
        """Metropolis steps of the length scale, with mu, B and Omega integrated out."""
        mass = self._masses(self._regressed(core, step, scales), step, [strength])[0]
        for _ in range(MOVES):
            other, chance = base._neighbour(rng, step), np.log(rng.random())
            if not 0 <= other < len(base.lengths):
                continue
            new = self._masses(self._regressed(core, other, scales), other, [strength])[0]
            if chance < new - mass:
                step, mass = other, new
        return step

    def _draw_given(
        self, rng: Generator, core: FloatArray, step: int, scales: FloatArray
    ) -> FeaturedHyper:
        """Draw s, and then mu, B and Omega, at a length scale and scales; new scales come last."""
        found = self._regressed(core, step, scales)
        masses = self._masses(found, step, STRENGTHS)
        strength = float(rng.choice(STRENGTHS, p=np.exp(masses - np.logaddexp.reduce(masses))))
        shared, slopes = found.draw(rng, strength)
        return self._hyper(self._wishart.with_scales(rng, shared), slopes, strength, step)


_LOG_WEIGHTS = np.log(
    np.append(NOTHING, np.full(len(STRENGTHS) - 1, (1 - NOTHING) / (len(STRENGTHS) - 1)))
)
"""Log prior of `STRENGTHS`."""
