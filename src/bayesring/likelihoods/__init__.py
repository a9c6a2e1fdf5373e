"""Likelihoods: one file each. `likelihood.py` defines what a likelihood must provide."""

from bayesring.likelihoods.bernoulli import Bernoulli
from bayesring.likelihoods.gaussian import Gaussian
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.likelihoods.negative_binomial import NegativeBinomial
from bayesring.likelihoods.ordinal import Ordinal
from bayesring.likelihoods.poisson import Poisson
from bayesring.likelihoods.student_t import StudentT

__all__ = [
    "Bernoulli",
    "Gaussian",
    "Likelihood",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "StudentT",
]
