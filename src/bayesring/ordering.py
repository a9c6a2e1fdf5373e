"""Which modes are ordered, decided from their labels before a fit.

An ordered mode has the prior `Smooth`, or `Circular`, in place of its exchangeable `NormalWishart`.
The length scale is learned and may be zero, so a wrong guess costs time and hardly any accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bayesring.data.labels import Labels
from bayesring.data.positions import positions_of
from bayesring.infer.online import MOST_SAMPLED
from bayesring.model.types import Axis, IntArray, Places
from bayesring.priors import (
    Circular,
    Coupling,
    ModePrior,
    NormalWishart,
    RingPrior,
    Smooth,
    Spatial,
)
from bayesring.priors.gradual import Gradual
from bayesring.settings import How, Settings
from bayesring.wording import shown

FEWEST = 3
"""Labels below which there is no order to speak of."""


def ordered(settings: Settings, axes: Sequence[Axis], names: Sequence[str], n: int) -> Settings:
    """The settings with the prior `Smooth` for every ordered mode, given `n` observations.

    Modes that the user named are ordered, on a circle if he gave a period. Otherwise those are
    whose labels are times or real numbers, or integers if there is an observation for every entry
    of a slice, I_d K <= n: fewer could not tell an order from mere numbers.
    """
    model, (asked, free, detailed) = settings.model, settings.order
    if settings.inference == "online-em" and n > MOST_SAMPLED:
        refuse_order(settings, f"more than {MOST_SAMPLED:,} observations")
        return settings
    priors = model.prior.modes
    modes = list(priors * len(axes) if len(priors) == 1 else priors)
    if len(modes) != len(axes):
        return settings  # refused when it is bound
    if asked is None:
        size = model.policy.start(len(axes))
        entries = [prod(size.core_shape(mode, 1)) for mode in range(len(axes))]
        candidates = range(len(axes)) if free is None else free
        told = [mode for mode, _ in detailed]
        chosen = [
            mode
            for mode in candidates
            if _has_order(axes[mode], entries[mode], n)
            and isinstance(modes[mode], NormalWishart)
            and mode not in told
        ]
        chosen += [mode for mode in settings.order.named if not isinstance(modes[mode], Gradual)]
    else:
        chosen = [mode for mode in asked if not isinstance(modes[mode], Gradual)]
    if not chosen:
        return settings
    for mode in chosen:
        modes[mode] = _along(modes[mode], axes[mode], names[mode], dict(detailed).get(mode, True))
    prior = RingPrior(tuple(modes), model.prior.weights)
    return settings._replace(model=model._replace(prior=prior))


def refuse_order(settings: Settings, where: str) -> None:
    """Reject an order that was asked for where only online EM's own draws can be had."""
    coupled = any(prior.coupling is not Coupling.NONE for prior in settings.model.prior.modes)
    if settings.order.named or coupled:
        raise ValueError(
            f"order needs chains, which inference='online-em' does not run on {where}; use "
            "inference='gibbs', or order=None."
        )


def rebound(prior: RingPrior, axes: Sequence[Axis]) -> RingPrior:
    """The prior of modes that have grown; without order where new labels are out of line."""
    modes = tuple(
        (own.exchangeable if axis.positions is None else own).bind(axis)
        for own, axis in zip(prior.modes, axes, strict=True)
    )
    return RingPrior(modes, prior.weights)


def in_line(prior: RingPrior, labels: Labels, shape: Sequence[int]) -> list[IntArray]:
    """For every mode the order in which its labels lie in line, new ones among the known."""
    lines: list[IntArray] = []
    for own, levels, size in zip(prior.modes, labels.levels, shape, strict=True):
        positions = None if levels is None else positions_of(levels)
        in_line = isinstance(getattr(own, "base", own), Smooth | Circular)
        if in_line and positions is not None:
            backwards = size > 1 and positions[1] < positions[0]
            lines.append(np.argsort(-positions if backwards else positions, kind="stable"))
        else:
            lines.append(np.arange(size))
    return lines


def _has_order(axis: Axis, entries: int, n: int) -> bool:
    if axis.positions is None or axis.n < FEWEST or axis.places is Places.COORDINATES:
        return False
    return axis.places is Places.MEASURED or axis.n * entries <= n


def _along(prior: ModePrior, axis: Axis, name: str, how: How) -> Gradual:
    if axis.positions is None:
        raise ValueError(
            f"order names the mode {shown(name)}, but its labels are not numbers or times that "
            "increase or decrease from one to the next, nor places that all differ."
        )
    if not isinstance(prior, NormalWishart):
        raise ValueError(
            f"order names the mode {shown(name)}, but its prior, {type(prior).__name__}, has no "
            "ordered form; use prior='hierarchical'."
        )
    if axis.positions.shape[1] > 1:
        if how not in (True, "map"):
            raise ValueError(
                f"order gives the mode {shown(name)} a period, but its labels lie on a map."
            )
        return Spatial.over(prior)
    if how == "map":
        raise ValueError(
            f"order says that the mode {shown(name)} lies on a map, but its labels have one "
            "coordinate; give positions= with several, or columns of latitudes and longitudes."
        )
    if how is True:
        return Smooth.along(prior)
    x = axis.positions[:, 0]
    if not abs(x[-1] - x[0]) < how:
        raise ValueError(
            f"order gives the mode {shown(name)} a period of {how:g}, but its labels, from "
            f"{x[0]:g} to {x[-1]:g}, do not lie within one."
        )
    return Circular.around(prior, how)
