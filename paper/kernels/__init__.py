"""Numba kernels of the baselines: arrays in, arrays out, one thread, no GIL."""
