"""`load`: models from files."""

from __future__ import annotations

import os

from bayesring.classifier import TensorRingClassifier
from bayesring.estimator import TensorRing
from bayesring.posterior.modelfiles import ASKED, read_model
from bayesring.wording import shown


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
    asked = ring.description_.get(ASKED)
    if asked:
        _ask_again(ring, asked, path)
    return ring


def _ask_again(ring: TensorRing, asked: dict[str, str], path: str | os.PathLike[str]) -> None:
    """Put the names that the user gave in place of the objects that they stood for."""
    try:
        if not {*asked} <= {"likelihood", "prior", "rank"}:
            raise ValueError(f"{shown(list(asked))} are not what a user may name.")
        ring.set_params(**asked)
        ring._settings(ring.labels_.names)
    except ValueError as error:
        raise ValueError(f"{path} is not a complete bayesring model: {error}") from error
