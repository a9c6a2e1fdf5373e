"""Skipped tests are listed with their reasons in the file that continuous integration prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

def test_that_runs():
    pass

@pytest.mark.skipif(True, reason="needs a dragon")
def test_of_dragons():
    raise AssertionError
"""


def test_skipped_tests_are_listed_with_their_reasons(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    listed = tmp_path / "skipped.txt"
    listed.write_text("installation: no dragons\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = os.environ | {"BAYESRING_SKIPPED": str(listed)}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stdout
    assert listed.read_text().splitlines() == [
        "installation: no dragons",
        "test_some.py::test_of_dragons: needs a dragon",
    ]
