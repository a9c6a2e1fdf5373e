"""Bayesian completion of multiway data with tensor rings."""

from bayesring.estimator import TensorRing, load

__version__ = "0.1.0.dev0"

__all__ = ["TensorRing", "__version__", "load"]
