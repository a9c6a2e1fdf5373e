"""Values simulated for every likelihood, and rings fitted to them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from bayesring import TensorRing, likelihoods
from tests.models import random_coords

SHAPE, N = (5, 4, 3), 80
QUICK = {"rank": 2, "warmup": 20, "draws": 20, "chains": 2, "random_state": 0, "progress": False}


def simulated(name, seed=0, n=N):
    """Cells, and values that the likelihood can have; real ones are far from standard units."""
    truth, rng = np.random.default_rng(100), np.random.default_rng(seed)
    X = random_coords(rng, SHAPE, n)
    sizes = [truth.normal(size=size) for size in SHAPE]
    f = sum(each[X[:, mode]] for mode, each in enumerate(sizes)) / 2
    values = {
        "Gaussian": 50 + 8 * (f + rng.normal(size=n) / 2),
        "StudentT": 50 + 8 * (f + rng.normal(size=n) * np.where(rng.random(n) < 0.1, 2, 0.3)),
        "Bernoulli": (rng.random(n) < expit(f)).astype(float),
        "NegativeBinomial": rng.poisson(np.exp(1 + f) * rng.gamma(2.0, 0.5, n)),
        "Poisson": rng.poisson(np.exp(1 + f)),
        "Ordinal": np.clip(np.round(3 + f + rng.normal(size=n) / 2), 1, 5),
    }
    return X, values[name]


def fitted(name, X, y, shape=SHAPE, **more):
    settings = QUICK | {key: more.pop(key) for key in list(more) if key in QUICK}
    own = getattr(likelihoods, name)()
    return TensorRing(likelihood=own, shape=shape, **settings).fit(X, y, **more)


NAMES = [name for name in likelihoods.__all__ if name != "Likelihood"]


def simulated_table():
    X, y = simulated("Gaussian")
    return pd.DataFrame({"place": np.array(list("vwxyz"))[X[:, 0]], "b": X[:, 1], "t": y})


def entries(posterior, X):
    """f by the definition of a ring: sum over strands of the trace of the product of slices."""
    found = np.empty((posterior.n_draws, len(X)))
    for draw in range(posterior.n_draws):
        cores = [core.astype(float) for core in posterior.cores(draw)]
        for row, cell in enumerate(X):
            product = cores[0][cell[0]]
            for core, index in zip(cores[1:], cell[1:], strict=True):
                product = product @ core[index]
            found[draw, row] = np.trace(product, axis1=-2, axis2=-1).sum()
    return found
