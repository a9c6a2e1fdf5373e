"""Products around the ring against their specification in plain NumPy, at every rank."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.kernels import tiles
from bayesring.model import ring
from bayesring.model.types import RingSize
from tests.models import random_coords


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("order", "strands"), [(3, 1), (3, 3), (5, 2)])
@pytest.mark.parametrize("rank", range(1, 18))
def test_complements_of_equal_bonds(rng, rank, order, strands, dtype):
    """The last slices of the last core too, behind which nothing may be read."""
    shape, size = (3, 2, 4, 2, 3)[:order], RingSize(strands, (rank,) * order)
    cores = [rng.standard_normal(size.core_shape(d, shape[d])) / rank for d in range(order)]
    flat = ring.flatten(cores, dtype)
    guarded = np.full(flat.flat.size + 100, np.nan, dtype=dtype)
    guarded[: flat.flat.size] = flat.flat
    flat = flat._replace(flat=guarded[: flat.flat.size])
    for mode in range(order):
        coords = random_coords(rng, shape, tiles.TILE)
        others = np.ascontiguousarray(coords[:, ring.ring_order(mode, order)].T, dtype=np.int32)
        features = strands * rank * rank
        workspace = tiles.workspace(flat.flat, flat.bonds, features)
        for first, count in ((0, tiles.TILE), (5, 7)):
            tiles.complements(*flat, mode, others, first, count, workspace)
            expected = ring.complements(cores, mode, coords[first : first + count])
            np.testing.assert_allclose(
                workspace[1][:count, :features],
                expected.reshape(count, features),
                rtol=0,
                atol=1e-12 if dtype == "float64" else 1e-5,
            )
