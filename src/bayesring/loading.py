"""`load`: models from files."""

from __future__ import annotations

import os

from bayesring.classifier import TensorRingClassifier
from bayesring.estimator import TensorRing
from bayesring.posterior.modelfiles import read_model


def load(path: str | os.PathLike[str]) -> TensorRing:
    """Read a model that `TensorRing.save` or `TensorRingClassifier.save` wrote.

    Returns
    -------
    TensorRing or TensorRingClassifier
        The model, as it was when it was saved.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.ring")
    >>> ring.save(path)
    >>> bool((bayesring.load(path).predict(X) == ring.predict(X)).all())
    True
    """
    kinds = {cls.__name__: cls for cls in (TensorRing, TensorRingClassifier)}
    ring: TensorRing = read_model(path, kinds)
    ring._set_fitted()
    return ring
