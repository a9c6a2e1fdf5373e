"""Runs and patches of slices against dense algebra, whatever their scratch held before."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from bayesring.kernels import loops, patches, runs, vectors
from bayesring.kernels.tiles import padded

STRANDS = (1, 2, 3, 4, 5, 16, 25)
N_SLICES = 5


class Drawn:
    """A problem of some slices of a mode with one strand entry per row, and its dense solution."""

    def __init__(self, rng, strands, between):
        size, n = 4 * strands, len(between)
        self.size, self.n, self.between = size, n, between
        self.weights = rng.normal(1.0, 0.2, 2 * strands)
        root = rng.standard_normal((2 * size, size))
        self.omega = root.T @ root / size
        self.factors = 1.0 + np.abs(between).sum(axis=1)
        self.diagonal = rng.gamma(1.0, size=(1, size))
        self.linear = rng.standard_normal((n, size))
        self.noise = rng.standard_normal((n, size))
        features = rng.standard_normal((n, 7, size))
        wide = padded(size + 1)
        self.statistics = np.zeros((n, wide, wide))
        self.statistics[:, :size, :size] = np.einsum("nqa,nqb->nab", features, features)
        self.statistics[:, size, :size] = features.sum(axis=1)

    def dense(self):
        """Precision and linear term of all slices, in the order that the kernels are given."""
        size, n = self.size, self.n
        turned = np.arange(size).reshape(-1, 2, 2).swapaxes(1, 2).ravel()
        scale = np.repeat(self.weights.reshape(-1, 1, 2), 2, axis=1).ravel()
        precision = np.kron(np.diag(self.factors) - self.between, self.omega)
        linear = self.linear.ravel().copy()
        for i in range(n):
            own = slice(i * size, (i + 1) * size)
            seen = self.statistics[i][np.ix_(turned, turned)] * np.outer(scale, scale)
            precision[own, own] += seen + np.diag(self.diagonal[0])
            linear[own] += scale * self.statistics[i][size, turned]
        return precision, linear

    def check(self, draw):
        """Mean, covariance of a few directions, and mass of what `draw` draws from."""
        precision, linear = self.dense()
        mean, *_, mass = draw(np.zeros_like(self.noise))
        expected = np.linalg.solve(precision, linear)
        np.testing.assert_allclose(mean.ravel(), expected, rtol=1e-8, atol=1e-9)
        log_det = np.linalg.slogdet(precision)[1]
        np.testing.assert_allclose(mass, 0.5 * linear @ expected - 0.5 * log_det, rtol=1e-9)
        some = np.random.default_rng(0).permutation(self.noise.size)[:40]
        gaps = np.stack(
            [
                (draw(np.eye(1, self.noise.size, k).reshape(self.noise.shape))[0] - mean).ravel()
                for k in some
            ]
        )
        # L' gap is the unit vector that it came from: gaps are orthonormal in the precision
        np.testing.assert_allclose(gaps @ precision @ gaps.T, np.eye(len(some)), atol=1e-7)


@pytest.mark.parametrize("strands", STRANDS)
def test_a_run(rng, strands):
    links = np.array([0.8, 0.0, 0.5, 1.4])
    found = Drawn(rng, strands, np.diag(links, 1) + np.diag(links, -1))
    room = np.full(2 * N_SLICES * padded(found.size) ** 2, np.nan)
    prior = found.omega, found.factors, found.diagonal, found.linear, links
    found.check(
        lambda noise: runs.draw_run(found.statistics, 2, found.weights, *prior, noise, room)
    )


@pytest.mark.parametrize("strands", STRANDS)
def test_a_patch(rng, strands):
    between = np.zeros((N_SLICES, N_SLICES))
    for i, j, weight in ((0, 1, 0.8), (1, 3, 0.6), (0, 4, 0.4), (3, 4, 0.9)):
        between[i, j] = between[j, i] = weight
    found = Drawn(rng, strands, between)
    place, count = patches.slots(between)
    assert count == place.max() + 1
    room = np.full((N_SLICES + count) * padded(found.size) ** 2, np.nan)
    prior = found.omega, found.factors, found.diagonal, found.linear, between, place
    found.check(
        lambda noise: patches.draw_patch(found.statistics, 2, found.weights, *prior, noise, room)
    )


def test_rows_are_padded_to_whole_vectors_that_do_not_share_cache_lines():
    sizes = [padded(size) for size in range(1, 300)]
    assert all(wide >= size and wide % 16 == 0 for size, wide in enumerate(sizes, 1))
    assert all(wide % 64 for wide in sizes)
    assert max(wide - size for size, wide in enumerate(sizes, 1)) <= 31


@pytest.mark.parametrize(
    ("count", "size", "width", "rows"),
    [(32, 64, 64, 8), (16, 32, 64, 4), (16, 16, 64, 2), (32, 16, 64, 4), (16, 32, 256, 1)],
)
def test_sums_stay_in_registers(count, size, width, rows):
    assert vectors.rows_at_once(8, width, count, size) == rows
    assert vectors.rows_at_once(1, width, count, size) == 1


def test_rows_taken_a_few_at_a_time_have_the_same_bits(rng, monkeypatch):
    left, right = rng.standard_normal((9, 32)), rng.standard_normal((9, 32))

    def product(registers):
        monkeypatch.setattr(vectors, "registers", lambda: registers)
        tile = vectors.matrix_products([(8, 64)], loops.ADD)

        @njit
        def call(left, right, out):
            tile(8, 64, left, 3, 1, 32, right, 5, 32, 9, out, 0, 8)

        out = np.zeros((8, 8))
        call(left, right, out)
        return out

    once = product((32, 64))
    np.testing.assert_allclose(once, left[:, 3:11].T @ right[:, 5:13], rtol=1e-12)
    assert np.array_equal(once, product((16, 32)))
    assert np.array_equal(once, product((4, 16)))
