"""Shared fixtures. The seed is fixed by default; `--seed N` replays or explores another one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("bayesring", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("bayesring")


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=20231120, help="seed of the statistical tests")


def pytest_report_header(config):
    return f"seed: {config.getoption('--seed')}"


def pytest_terminal_summary(terminalreporter):
    """Add the tests that were skipped, and why, to the file that `BAYESRING_SKIPPED` names."""
    if path := os.environ.get("BAYESRING_SKIPPED"):
        with Path(path).open("a", encoding="utf-8") as file:
            for report in terminalreporter.stats.get("skipped", []):
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
                file.write(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}\n")


@pytest.fixture
def seed(request) -> int:
    """Seed of a statistical test; printed with the failure, since it is a local of the test."""
    return request.config.getoption("--seed")


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def data_folder() -> Path:
    """Folder of the real data sets, or a skip that says why."""
    folder = os.environ.get("BAYESRING_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("BAYESRING_DATA does not name a folder with the real data sets")
    return Path(folder)
