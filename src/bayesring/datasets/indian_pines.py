"""Indian Pines: a hyperspectral scene, 145 x 145 pixels x 200 bands.

AVIRIS sensor, north-western Indiana, 1992 (Baumgardner, Biehl and Landgrebe, Purdue University,
CC BY 3.0). The copy used is the one that the package `tensorly` carries.
"""

from __future__ import annotations

import numpy as np

from bayesring.types import FloatArray


def load_indian_pines() -> FloatArray:
    """Radiance (145, 145, 200): row, column, band."""
    try:
        from tensorly.datasets import load_indian_pines as load
    except ImportError:
        raise ImportError(
            "The Indian Pines scene comes with tensorly: pip install 'bayesring[data]'."
        ) from None
    return np.asarray(load().tensor, dtype=np.float64)
