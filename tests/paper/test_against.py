"""Scans of two commits in turn: the same code gives the same bits, and ratios are of new to old."""

from __future__ import annotations

import numpy as np
import pytest

from paper.bench import against
from paper.bench.against import Case
from paper.bench.processes import ROOT


@pytest.mark.parametrize("batch", [0, 100])
def test_the_same_code_on_both_sides_ends_with_the_same_bits(batch):
    case = Case(300, (5, 6, 7), 2, batch=batch)
    found = against.compare(case, 1, (ROOT / "src", ROOT / "src"), turns=2)
    assert found.same
    assert found.wall.shape == found.cpu.shape == (2, 2)
    assert (found.wall > 0).all()


def test_ratios_are_new_over_old():
    assert against.ratios(np.array([[1.0, 2.0], [2.0, 4.0]])) == "2.000 (2.000 to 2.000)"


def test_a_commit_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="commit nowhere is not in this clone"):
        against.sources_of("nowhere").__enter__()
