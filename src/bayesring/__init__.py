"""Bayesian completion of multiway data with tensor rings."""

from bayesring.classifier import TensorRingClassifier
from bayesring.completion import Completion, complete
from bayesring.estimator import TensorRing, load

__version__ = "0.1.0.dev0"

__all__ = ["Completion", "TensorRing", "TensorRingClassifier", "__version__", "complete", "load"]
