"""Adam's step on the entries of a slice, and its constants."""

from bayesring.kernels.chosen import adam_step

FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
"""Decay of the mean gradient and of its square, and what is added to their ratio's root."""

adam = adam_step(FIRST, SECOND, TINY)
