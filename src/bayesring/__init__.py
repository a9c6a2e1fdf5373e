"""Bayesian completion of multiway data with tensor rings."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesring.classifier import TensorRingClassifier
    from bayesring.comparing import Comparison, compare
    from bayesring.completion import Completion, complete
    from bayesring.estimator import TensorRing
    from bayesring.loading import load

try:
    __version__ = version("bayesring")
except PackageNotFoundError:  # running from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "Comparison",
    "Completion",
    "TensorRing",
    "TensorRingClassifier",
    "__version__",
    "compare",
    "complete",
    "load",
]

HOMES = {
    "Comparison": "comparing",
    "Completion": "completion",
    "TensorRing": "estimator",
    "TensorRingClassifier": "classifier",
    "compare": "comparing",
    "complete": "completion",
    "load": "loading",
}
"""Where the public names live; each is loaded on first access."""


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"bayesring.{HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
