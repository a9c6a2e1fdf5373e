"""Bayesian completion of multiway data with tensor rings."""

from importlib.metadata import PackageNotFoundError, version

from bayesring.classifier import TensorRingClassifier
from bayesring.completion import Completion, complete
from bayesring.estimator import TensorRing, load

try:
    __version__ = version("bayesring")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["Completion", "TensorRing", "TensorRingClassifier", "__version__", "complete", "load"]
