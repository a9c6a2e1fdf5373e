"""What someone does first who has installed the wheel and nothing else: fit, predict, save, load, complete."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bayesring import TensorRing, __version__, complete, load

rng = np.random.default_rng(0)
X = np.stack([rng.integers(0, n, 300) for n in (6, 5, 4)], axis=1)
y = np.sin(X.sum(axis=1)) + 0.1 * rng.standard_normal(300)
options = {"warmup": 30, "draws": 20, "chains": 1, "random_state": 0, "progress": False}
ring = TensorRing(2, **options).fit(X, y)
lower, upper = ring.predict_interval(X)
assert np.all(lower < upper)
with TemporaryDirectory() as folder:
    ring.save(Path(folder) / "model.ring")
    assert np.array_equal(load(Path(folder) / "model.ring").predict(X), ring.predict(X))

table = np.sin(np.add.outer(np.add.outer(np.arange(4), np.arange(4)), np.arange(4)))
table[0, 0] = np.nan
assert np.isfinite(complete(table, rank=1, **options).mean).all()
print(f"bayesring {__version__} works")
