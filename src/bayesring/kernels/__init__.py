"""Numba kernels: arrays in, arrays out, one block of observations, one thread, no GIL.

All cores of a ring are passed as one flat array, so that a kernel is compiled once for every order
D and every rank:

``flat``
    the weighted slices A^(d)[i] = G^(d)[i] Lambda^(d), row by row, core after core;
``starts``
    (D,) where each core begins in ``flat``;
``bonds``
    (D,) the ranks R_1, ..., R_D, where bond d lies between cores d and d + 1.
"""
