"""The model of scan time: its constants are found again, and the committed runs are as it says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from paper.bench.cluster import RUNS
from paper.bench.scan_model import ClusterRun, ScanModel, added, fitted, read_runs, summary, table

PLANTED = ScanModel(2e-8, 3e-6, 0.02, 0.005, 1.5)


def planted_runs():
    """Runs that take as long as the model says."""
    for rows, workers, delay, speed in product((1e5, 1e6), (1, 2, 4), (0, 0.1), (np.inf, 1e7)):
        run = ClusterRun(rows, workers, 2, delay, speed, 5e6, 0.0, 0.0)
        yield run._replace(
            arithmetic=PLANTED.arithmetic(run), wall=PLANTED.seconds(run), driver=0.01 * workers
        )


def test_constants_are_found_again():
    runs = list(planted_runs())
    np.testing.assert_allclose(fitted(runs), PLANTED, rtol=1e-6)
    assert "0.0 ms per step, and 2.5 ms per step and worker" in summary(runs, PLANTED)[4]
    by_delay, by_bytes = added(runs)
    assert "a delay adds 1.00 times" in by_delay
    assert "a narrow network adds 1.50 times" in by_bytes


def test_a_scan_by_hand():
    run = ClusterRun(1e6, 4, 2, 0.1, 1e7, 5e6, 0.0, 0.0)
    arithmetic = (2e-8 * 3.5e6 + 3e-6 * 25_100) / 2
    expected = arithmetic + 4 * (0.02 + 4 * 0.005 + 0.1) + 1.5 * 4 * 5e6 / 1e7
    assert PLANTED.seconds(run) == pytest.approx(expected)


def test_committed_runs():
    """The bytes that travel are those that the model counts, and cost what they should."""
    runs = read_runs(RUNS)
    model = fitted(runs)
    assert {run.workers for run in runs} >= {1, 2, 4}
    for run in runs:
        assert run.moved == pytest.approx(run.bytes, rel=0.02)
    assert 0.5 < model.network < 2.0  # other jobs ran beside
    assert len(added(runs)) == 2
    assert len(table(runs, model)) == 2 + len(runs)
    assert "ns per observation" in summary(runs, model)[0]
