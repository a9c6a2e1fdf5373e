"""Indian Pines: a hyperspectral scene, 145 x 145 pixels x 200 bands."""

from __future__ import annotations

import hashlib

import numpy as np

from bayesring.datasets.dataset import Dataset, Description, numbered, whole
from bayesring.datasets.splits import random_fold

SHARE = 0.01
CHECKSUM = "36468dd7336c8bd37a80cced54362ea426f226703f3797ba494556fd8134e77f"
"""Checksum of the array as unsigned 16-bit little-endian integers in C order."""
DESCRIPTION = Description(
    name="Indian Pines",
    content="Radiance of a farming region seen by the AVIRIS sensor, row x column x band.",
    source="Package tensorly on PyPI: tensorly.datasets.load_indian_pines",
    licence="CC BY 3.0",
    citation=(
        "Baumgardner, Biehl and Landgrebe (2015), 220 band AVIRIS hyperspectral image data set: "
        "June 12, 1992 Indian Pine test site 3, Purdue University Research Repository, "
        "doi:10.4231/R7RX991C."
    ),
    protocol=(
        "Five seeds: 1 % of the cells for training. PSNR over the completed tensor, known cells "
        "kept, with its maximum as peak; SSIM, mean over bands."
    ),
)


def load_indian_pines() -> Dataset:
    """Radiance (145, 145, 200), 955 to 9604: row, column, band (by its wavelength in nm).

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_indian_pines
    >>> load_indian_pines().shape
    (145, 145, 200)
    """
    try:
        from tensorly.datasets import load_indian_pines as load
    except ImportError:
        raise ImportError(
            "The Indian Pines scene comes with tensorly: pip install 'bayesring[data]'."
        ) from None
    scene = load()
    tensor = np.ascontiguousarray(scene.tensor, dtype=np.float64)
    if hashlib.sha256(tensor.astype("<u2").tobytes()).hexdigest() != CHECKSUM:
        raise ValueError("The Indian Pines scene of tensorly is not the published one.")
    rows, columns, _ = tensor.shape
    labels = numbered(row=rows, column=columns) | {"band": np.asarray(scene.ticks[1], dtype=float)}
    return Dataset(
        DESCRIPTION,
        tensor.shape,
        labels,
        lambda: whole(tensor),
        lambda seed: random_fold(tensor, SHARE, seed),
        # bands by number: the wavelengths of the sensor's four parts overlap
        {name: np.arange(len(levels), dtype=float) for name, levels in labels.items()},
    )
