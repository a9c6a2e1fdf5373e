"""Likelihoods: one file each. `likelihood.py` defines what a likelihood must provide."""

from bayesring.likelihoods.bernoulli import Bernoulli
from bayesring.likelihoods.gaussian import Gaussian
from bayesring.likelihoods.likelihood import Likelihood

__all__ = ["Bernoulli", "Gaussian", "Likelihood"]
