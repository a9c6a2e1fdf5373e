"""Slices in an order in which those that are drawn jointly stand together, during a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesring.data.observations import Observations, renumbered
from bayesring.infer.state import Draws, Outcome
from bayesring.model.types import Axis, IntArray
from bayesring.priors import RingPrior

Lines = Sequence[IntArray]
"""For each mode, which of its slices stands at each place."""


def arrangement(prior: RingPrior, shape: Sequence[int], kept: int | None) -> Lines | None:
    """The order that the priors of the modes want; None if they have none.

    The mode `kept` stays as it is.
    """
    wanted = [
        None if mode == kept else getattr(own, "base", own).arrangement()
        for mode, own in enumerate(prior.modes)
    ]
    if all(own is None for own in wanted):
        return None
    return [
        np.arange(size) if own is None else own for own, size in zip(wanted, shape, strict=True)
    ]


def arranged(
    data: Observations, axes: Sequence[Axis], lines: Lines
) -> tuple[Observations, list[Axis]]:
    """Data and what is known of labels, in that order."""
    return renumbered(data, lines), [
        _at(axis, line) for axis, line in zip(axes, lines, strict=True)
    ]


def _at(axis: Axis, line: IntArray) -> Axis:
    return axis._replace(
        positions=None if axis.positions is None else axis.positions[line],
        features=None if axis.features is None else axis.features[line],
    )


def put_back(outcome: Outcome, lines: Lines) -> Outcome:
    """The outcome of a fit to arranged data, with slices as they were."""
    places = [np.argsort(line) for line in lines]
    chains = [(_draws(draws, places), trace) for draws, trace in outcome.chains]
    held = outcome.held_out
    if held is not None:
        held = held._replace(data=renumbered(held.data, places))
    return outcome._replace(chains=chains, held_out=held)


def _draws(draws: Draws, places: Lines) -> Draws:
    """Draws whose slice i of each mode is the one at `places[mode][i]` before."""
    flat = draws.flat.copy()
    for mode, place in enumerate(places):
        entries = draws.strands * int(draws.bonds[mode - 1] * draws.bonds[mode])
        own = slice(int(draws.starts[mode]), int(draws.starts[mode]) + len(place) * entries)
        core = draws.flat[:, own].reshape(len(flat), len(place), entries)
        flat[:, own] = core[:, place].reshape(len(flat), -1)
    return draws._replace(flat=flat)
