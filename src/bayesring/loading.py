"""`load`: models from files."""

from __future__ import annotations

import os

from bayesring.checks import check_choice
from bayesring.classifier import TensorRingClassifier
from bayesring.engine.operations import UPDATES
from bayesring.estimator import TensorRing
from bayesring.posterior.modelfiles import ASKED, read_model
from bayesring.settings import DTYPES, INFERENCES
from bayesring.wording import shown

CHOICES = {"inference": INFERENCES, "update": UPDATES, "dtype": DTYPES}
"""Settings that are one of a few names."""


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
    try:
        for name, known in CHOICES.items():
            check_choice(getattr(ring, name), name, known)
        _ask_again(ring, ring.description_.get(ASKED, {}))
    except ValueError as error:
        raise ValueError(f"{path} is not a complete bayesring model: {error}") from error
    return ring


def _ask_again(ring: TensorRing, asked: dict[str, str]) -> None:
    """Put the names that the user gave in place of the objects that they stood for."""
    if not {*asked} <= {"likelihood", "prior", "rank"}:
        raise ValueError(f"{shown(list(asked))} are not what a user may name.")
    if not asked:
        return
    ring.set_params(**asked)
    if isinstance(ring, TensorRingClassifier):
        ring._refuse_other_likelihoods()
    ring._settings(ring.labels_.names)
