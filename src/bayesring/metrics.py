"""Measures of prediction quality, as plain functions of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

from bayesring.model.types import FloatArray

SSIM_WINDOW = 7


def rmse(truth: FloatArray, predicted: FloatArray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((truth - predicted) ** 2)))


def mae(truth: FloatArray, predicted: FloatArray) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(truth - predicted)))


def psnr(truth: FloatArray, predicted: FloatArray, peak: float | None = None) -> float:
    """Peak signal-to-noise ratio in decibels; `peak` defaults to the largest true value."""
    top = float(np.max(truth)) if peak is None else peak
    return float(20 * np.log10(top / rmse(truth, predicted)))


def ssim(truth: FloatArray, predicted: FloatArray, data_range: float | None = None) -> float:
    """Structural similarity (Wang et al., 2004) of two images, or the mean over bands.

    Local means and variances in 7 x 7 windows with equal weights, sample covariances, constants
    0.01 and 0.03; windows that extend beyond the image are not counted.

    Parameters
    ----------
    truth, predicted : (rows, columns) or (rows, columns, bands)
    data_range : defaults to the range of the truth, over all bands
    """
    if data_range is None:
        data_range = float(np.max(truth) - np.min(truth))
    size = (SSIM_WINDOW, SSIM_WINDOW, *(1,) * (truth.ndim - 2))

    def average(image: FloatArray) -> FloatArray:
        return np.asarray(uniform_filter(image, size))

    x, y = np.asarray(truth, dtype=float), np.asarray(predicted, dtype=float)
    unbias = SSIM_WINDOW**2 / (SSIM_WINDOW**2 - 1)
    mean_x, mean_y = average(x), average(y)
    var_x = unbias * (average(x * x) - mean_x**2)
    var_y = unbias * (average(y * y) - mean_y**2)
    covariance = unbias * (average(x * y) - mean_x * mean_y)
    c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    similarity = ((2 * mean_x * mean_y + c1) * (2 * covariance + c2)) / (
        (mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2)
    )
    edge = SSIM_WINDOW // 2
    return float(similarity[edge:-edge, edge:-edge].mean())


def auc(truth: FloatArray, score: FloatArray) -> float:
    """Area under the receiver operating characteristic."""
    return float(roc_auc_score(truth, score))


def accuracy(truth: FloatArray, probability: FloatArray) -> float:
    """Share of correct predictions when probabilities above one half count as ones."""
    return float(np.mean((probability > 0.5) == (truth > 0.5)))


def binary_log_score(truth: FloatArray, probability: FloatArray) -> float:
    """Mean log probability of the observed outcomes; zero is perfect."""
    given = np.where(truth > 0.5, probability, 1.0 - probability)
    return float(np.mean(np.log(np.maximum(given, np.finfo(float).tiny))))


def mixture_log_score(truth: FloatArray, centres: FloatArray, deviations: FloatArray) -> float:
    """Mean log density of the truth (n,) under equal mixtures of normals.

    Parameters
    ----------
    centres : (draws, n)
    deviations : (draws,), one per draw
    """
    z = (truth - centres) / deviations[:, None]
    log_densities = -0.5 * z**2 - np.log(deviations * np.sqrt(2 * np.pi))[:, None]
    return float(np.mean(logsumexp(log_densities, axis=0) - np.log(len(centres))))


class CalibrationBins(NamedTuple):
    """Sums over binary observations, in bins of equal width by predicted probability."""

    number: FloatArray
    probability: FloatArray
    ones: FloatArray
    variance: FloatArray
    """Sum of p (1 - p)."""

    def error(self) -> float:
        """Expected calibration error: mean distance between probability and frequency of ones."""
        return float(np.abs(self.ones - self.probability).sum() / self.number.sum())

    def chance(self, level: float = 0.95, n: int = 20_000, seed: int = 0) -> float:
        """Quantile of the error expected by chance if the probabilities were correct."""
        gaps = np.random.default_rng(seed).standard_normal((n, len(self.number)))
        errors = np.abs(gaps * np.sqrt(self.variance)).sum(axis=1) / self.number.sum()
        return float(np.quantile(errors, level))


def calibration_bins(
    truth: FloatArray, probability: FloatArray, n_bins: int = 10
) -> CalibrationBins:
    """Sort binary observations into bins of equal width by their predicted probability."""
    place = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    columns = (np.ones_like(probability), probability, truth, probability * (1 - probability))
    sums = [np.bincount(place, each, minlength=n_bins).astype(float) for each in columns]
    return CalibrationBins(*sums)


def crps(truth: FloatArray, samples: FloatArray) -> float:
    """Continuous ranked probability score, E|X - y| - E|X - X'| / 2, in the units of y.

    The mean over the truth (n,) for predictive samples (draws, n); smaller is better, and with one
    sample it is the mean absolute error. E|X - X'| is a weighted sum of the sorted samples.
    """
    draws = len(samples)
    error = np.mean(np.abs(samples - truth), axis=0)
    weights = (2 * np.arange(1, draws + 1) - draws - 1) / draws**2
    spread = weights @ np.sort(samples, axis=0)
    return float(np.mean(error - spread))


def coverage(truth: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """Share of true values inside their intervals."""
    return float(np.mean((lower <= truth) & (truth <= upper)))
