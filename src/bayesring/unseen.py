"""Labels that the data never showed, answered from those that they did.

A hierarchical prior says that the slices of a mode are draws from one population, so a new label
gets a new draw from it. The population of a posterior draw is known through its slices: the new
slice of a draw is one of them, picked at random. Averaged over draws, the prediction for a new
label is the mean over the known labels, and its spread is the spread between them on top of all
other uncertainty. Cores are defined only up to an invertible matrix on each bond; a slice of the
same draw is in the right one by itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesring import ring
from bayesring.posterior import Posterior
from bayesring.types import IntArray

UNSEEN_STREAM = 2
"""Sets the stream of the picks apart from others of the same seed."""


def cover(posterior: Posterior, coords: IntArray, seed: int) -> tuple[Posterior, IntArray]:
    """A posterior and coordinates in it that stand for `coords`, new slices included.

    A coordinate equal to the size of its mode means a new slice; all new labels of a mode share
    it. If there are any, the posterior returned holds no other slices than those asked for. The
    picks depend on the seed alone, not on what else is asked.
    """
    if np.all(coords < posterior.shape):
        return posterior, coords
    rng = np.random.default_rng([seed, UNSEEN_STREAM])
    picks = np.stack([rng.integers(0, size, posterior.n_draws) for size in posterior.shape], axis=1)
    used, places = [], []
    for mode, size in enumerate(posterior.shape):
        slices, place = np.unique(np.append(coords[:, mode], size), return_inverse=True)
        used.append(slices[:-1])
        places.append(place[:-1])
    chains = []
    first = 0
    for draws in posterior.chains:
        flat = []
        for draw in range(first, first + len(draws.flat)):
            cores = [
                core[np.append(slices, pick)]
                for core, slices, pick in zip(posterior.cores(draw), used, picks[draw], strict=True)
            ]
            flat.append(ring.flatten(cores))
        first += len(draws.flat)
        chains.append(
            draws._replace(flat=np.stack([each.flat for each in flat]), starts=flat[0].starts)
        )
    shape = tuple(len(slices) + 1 for slices in used)
    return replace(posterior, shape=shape, chains=tuple(chains)), np.stack(places, axis=1)
