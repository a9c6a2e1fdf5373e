"""Adam's step on the entries of a slice, and its constants."""

from bayesring.kernels.chosen import adam_step

FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
"""Decay rates of the mean gradient and of its square, and Adam's epsilon."""

adam = adam_step(FIRST, SECOND, TINY)
