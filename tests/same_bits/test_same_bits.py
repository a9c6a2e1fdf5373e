"""The fits of `fits.py` give the bits that `hashes.json` recorded.

Bits depend on versions and on the CPU. Where these differ from the recorded ones nothing can be
compared, and the tests are skipped with the reason; `make same-bits` then builds the recorded
commit and compares on the spot. The table is made anew only by a change that alters numbers on
purpose and says which.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.same_bits.fits import FITS, environment

RECORDED = json.loads((Path(__file__).parent / "hashes.json").read_text())


@pytest.fixture(scope="module", autouse=True)
def _same_environment():
    here, there = environment(), RECORDED["environment"]
    other = [
        f"{name} {here[name]} for {there[name]}" for name in there if here[name] != there[name]
    ]
    if other:
        pytest.skip(f"recorded elsewhere: {', '.join(other)}; `make same-bits` compares here")


def test_every_fit_is_recorded():
    assert list(RECORDED["fits"]) == list(FITS)


@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.ci), 2])
@pytest.mark.parametrize("name", FITS)
def test_the_bits_are_those_recorded(name, n_jobs):
    assert FITS[name](n_jobs) == RECORDED["fits"][name]
