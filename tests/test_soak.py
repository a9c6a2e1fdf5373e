"""A short version of `make soak`, and that it would see what it looks for."""

from __future__ import annotations

import mmap
import sys

import pytest

from tests import soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.ci
def test_twenty_cycles_leave_nothing_behind(monkeypatch):
    monkeypatch.setattr(soak, "KINDS", 7)
    found = soak.soak(20)
    assert found.cycles == 20
    assert found.opened == []
    assert found.changed == []


@pytest.mark.ci
def test_it_sees_leaks_and_changes(monkeypatch, tmp_path):
    kept = []

    def leaky(kind, folder):
        pages = mmap.mmap(-1, 2**20)  # never from what the process has freed before
        pages.write(b"x" * 2**20)
        kept.append((pages, (tmp_path / "x").open("w")))
        return str(len(kept) // 15)

    monkeypatch.setattr(soak, "cycle", leaky)
    found = soak.soak(30)
    for _, file in kept:
        file.close()
    assert not found.is_flat
    assert len(found.opened) > 10
    assert found.changed
