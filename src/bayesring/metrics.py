"""How good predictions are: plain functions of arrays."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import uniform_filter
from sklearn.metrics import roc_auc_score

from bayesring.types import FloatArray

SSIM_WINDOW = 7


def rmse(truth: FloatArray, predicted: FloatArray) -> float:
    """Root of the mean squared error."""
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

    Local means and variances in windows of 7 x 7 with equal weights, sample covariances,
    constants 0.01 and 0.03; windows that leave the image are not counted.

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
    """Share of right guesses when probabilities above one half count as ones."""
    return float(np.mean((probability > 0.5) == (truth > 0.5)))


def coverage(truth: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """Share of true values inside their intervals."""
    return float(np.mean((lower <= truth) & (truth <= upper)))
