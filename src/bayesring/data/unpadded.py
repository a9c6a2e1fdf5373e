"""Columns of text as users give them, without an array that pads every text to the longest.

Such an array may be larger than memory, and loses NUL characters at the end of a text.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import learn_column
from bayesring.model.types import IntArray

STORABLE = "Uiufb"
"""Kinds of labels that model files hold."""
TEXTS = (nw.String, nw.Categorical, nw.Enum, nw.Object)
"""Types of columns that may hold text."""


def unpadded(values: Any) -> NDArray[Any]:
    """Values as an array; text is in Python objects, unless NumPy has padded it before."""
    column: Any = nw.from_native(values, series_only=True, pass_through=True)
    listed = values if isinstance(values, list | tuple) else []
    if isinstance(column, nw.Series) and column.dtype in TEXTS:
        listed = column.to_list()
    if _holds_text(listed):
        return np.array(listed, dtype=object)
    return np.asarray(column.to_numpy() if isinstance(values, nw.Series) else values)


def learn_labels(labels: NDArray[Any], name: str) -> tuple[NDArray[Any], IntArray]:
    """The sorted distinct labels, and the index of every row's; text is checked as keys are."""
    kinds = set(map(type, labels)) if labels.dtype == object else {labels.dtype.type}
    if all(issubclass(kind, str) for kind in kinds):
        return learn_column(labels, name)
    if labels.dtype == object and len(kinds) == 1:  # of numbers or booleans, say
        labels = np.array(labels.tolist())
    try:
        found, places = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError(
            f"{name} holds labels of different kinds, which cannot be sorted."
        ) from None
    if found.dtype.kind not in STORABLE:
        told = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"{name} holds labels of type {told}, but they must be text, numbers or booleans."
        )
    return found, places


def _holds_text(values: Any) -> bool:
    """Whether there is a text among values, none of which is a list or the like."""
    kinds = set(map(type, values))
    others = (kind for kind in kinds if not issubclass(kind, str))
    return any(issubclass(kind, str) for kind in kinds) and not any(
        hasattr(kind, "__len__") for kind in others
    )
