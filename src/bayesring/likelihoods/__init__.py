"""Likelihoods: one file each. `base.py` says what a likelihood must provide."""

from bayesring.likelihoods.likelihood import Likelihood
from bayesring.likelihoods.bernoulli import Bernoulli
from bayesring.likelihoods.gaussian import Gaussian

__all__ = ["Bernoulli", "Gaussian", "Likelihood"]
