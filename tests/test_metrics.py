"""Metrics against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring import metrics


def test_errors(rng):
    truth, guess = rng.standard_normal((2, 30))
    gaps = [t - g for t, g in zip(truth, guess, strict=True)]
    assert metrics.rmse(truth, guess) == pytest.approx((sum(g * g for g in gaps) / 30) ** 0.5)
    assert metrics.mae(truth, guess) == pytest.approx(sum(map(abs, gaps)) / 30)


def test_psnr_of_a_known_error():
    truth = np.array([0.0, 10.0])
    assert metrics.psnr(truth, truth + 1.0) == pytest.approx(20.0)
    assert metrics.psnr(truth, truth + 1.0, peak=100.0) == pytest.approx(40.0)


def ssim_by_windows(x, y, data_range):
    """The definition, window by window."""
    c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    values = []
    for i in range(x.shape[0] - 6):
        for j in range(x.shape[1] - 6):
            a, b = x[i : i + 7, j : j + 7].ravel(), y[i : i + 7, j : j + 7].ravel()
            cov = np.cov(a, b)
            values.append(
                ((2 * a.mean() * b.mean() + c1) * (2 * cov[0, 1] + c2))
                / ((a.mean() ** 2 + b.mean() ** 2 + c1) * (cov[0, 0] + cov[1, 1] + c2))
            )
    return np.mean(values)


def test_ssim_equals_its_definition(rng):
    x = rng.random((15, 12, 3))
    y = x + 0.3 * rng.standard_normal(x.shape)
    expected = np.mean([ssim_by_windows(x[..., b], y[..., b], np.ptp(x)) for b in range(3)])
    assert metrics.ssim(x, y) == pytest.approx(expected)
    assert metrics.ssim(x[..., 0], y[..., 0], 2.0) == pytest.approx(
        ssim_by_windows(x[..., 0], y[..., 0], 2.0)
    )
    assert metrics.ssim(x, x) == pytest.approx(1.0)


def test_auc_counts_pairs_in_order(rng):
    truth, score = rng.integers(0, 2, 40), rng.integers(0, 9, 40)
    pairs = [(a > b) + 0.5 * (a == b) for a in score[truth == 1] for b in score[truth == 0]]
    assert metrics.auc(truth, score) == pytest.approx(np.mean(pairs))


def test_accuracy_and_coverage():
    assert metrics.accuracy(np.array([1, 0, 1, 0]), np.array([0.9, 0.2, 0.4, 0.6])) == 0.5
    truth = np.array([0.0, 1.0, 2.0, 3.0])
    assert (
        metrics.coverage(truth, truth - np.array([1, 1, -1, 0]), truth + np.array([1, -1, 2, 0]))
        == 0.5
    )


def test_binary_log_score(rng):
    truth, p = np.array([1.0, 0.0, 1.0]), np.array([0.9, 0.2, 0.5])
    assert metrics.binary_log_score(truth, p) == pytest.approx(np.log([0.9, 0.8, 0.5]).mean())
    assert np.isfinite(metrics.binary_log_score(truth, 1 - truth))


def test_mixture_log_score_equals_the_sum_of_densities(rng):
    truth, centres = rng.standard_normal(5), rng.standard_normal((3, 5))
    widths = np.array([0.5, 1.0, 2.0])
    expected = [
        np.log(
            sum(
                np.exp(-0.5 * ((y - centres[s, n]) / widths[s]) ** 2)
                / (widths[s] * np.sqrt(2 * np.pi))
                for s in range(3)
            )
            / 3
        )
        for n, y in enumerate(truth)
    ]
    assert metrics.mixture_log_score(truth, centres, widths) == pytest.approx(np.mean(expected))


def test_crps_equals_its_definition(rng):
    truth, samples = rng.standard_normal(4), rng.standard_normal((9, 4))
    expected = [
        np.mean(np.abs(samples[:, n] - truth[n]))
        - 0.5 * np.mean([[abs(a - b) for a in samples[:, n]] for b in samples[:, n]])
        for n in range(4)
    ]
    assert metrics.crps(truth, samples) == pytest.approx(np.mean(expected))
    assert metrics.crps(truth, samples[:1]) == pytest.approx(metrics.mae(truth, samples[0]))


def test_calibration_bins_add_up_and_tell_error_from_chance(rng):
    p = rng.uniform(0, 1, 4000)
    p[0] = 1.0
    right = (rng.random(4000) < p).astype(float)
    bins = metrics.calibration_bins(right, p)
    assert bins.number.sum() == 4000
    assert bins.ones.sum() == right.sum()
    in_third = (p >= 0.2) & (p < 0.3)
    assert bins.number[2] == in_third.sum()
    assert bins.probability[2] == pytest.approx(p[in_third].sum())
    assert bins.error() < bins.chance(0.999)
    wrong = metrics.calibration_bins((rng.random(4000) < p**2).astype(float), p)
    assert wrong.error() == pytest.approx(1 / 6, abs=0.02)
    assert wrong.error() > 5 * wrong.chance()
