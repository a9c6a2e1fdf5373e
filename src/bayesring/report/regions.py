"""Modes on a map: by what their labels are placed, and over what distance the table changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.spatial.distance import pdist, squareform

from bayesring.engine.streams import Purpose, Streams
from bayesring.model.types import FloatArray
from bayesring.priors import Spatial
from bayesring.report.curves import FADED, FIBRES
from bayesring.report.fitted import Fitted

MOST_PLACES, BINS = 300, 20
"""Places, and classes of distance, by which it is judged how fast predictions change."""


def regions(fitted: Fitted) -> list[str]:
    """A sentence part for every mode on a map."""
    found = []
    for mode, own in enumerate(fitted.prior.modes):
        sites = fitted.labels.sites_of(mode)
        if isinstance(getattr(own, "base", own), Spatial) and sites is not None:
            reach = _reach(fitted, mode, sites.coordinates())
            unit = " km" if sites.on_globe else ""
            over = f"changes over about {float(f'{reach:.2g}'):g}{unit}"
            words = "hardly changes" if reach == np.inf else over
            found.append(f"{fitted.labels.names[mode]}, placed {sites.words}, {words}")
    return found


def _reach(fitted: Fitted, mode: int, positions: FloatArray) -> float:
    """Distance at which predictions along some fibres are correlated by less than 1/e."""
    rng = Streams.of_chain(fitted.seed, 0).rng(0, Purpose.SUGGEST, mode)
    n = min(len(positions), MOST_PLACES)
    chosen = np.sort(rng.permutation(len(positions))[:n])
    fibres = np.stack([rng.integers(0, size, FIBRES) for size in fitted.shape], axis=1)
    coords = np.repeat(fibres, n, axis=0)
    coords[:, mode] = np.tile(chosen, FIBRES)
    paths = fitted.posterior.moments(coords, noise=False)[0].reshape(FIBRES, n)
    paths = paths - paths.mean(axis=1, keepdims=True)
    alike = squareform(paths.T @ paths / FIBRES, checks=False)
    distances, total = pdist(positions[chosen]), float(np.mean(paths**2))
    edges = np.quantile(distances, np.linspace(0, 1, BINS + 1))
    for low, high in pairwise(edges):
        own = (distances >= low) & (distances <= high)
        if own.any() and np.mean(alike[own]) < FADED * total:
            return float(np.mean(distances[own]))
    return np.inf
