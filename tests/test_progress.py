"""Progress bars: readable at 80 columns, warm-up and draws told apart, totals only if known."""

from __future__ import annotations

import io
import re
import threading

import pytest
from rich.console import Console

from bayesring import progress
from bayesring.infer.state import ScanReport
from bayesring.progress import ChainProgress, shortened

LONG = {"noise": 0.0123456, "error": 1234567.0, "log likelihood": -1.5e9}


def lines_of(monkeypatch, reports, scans, warmup):
    """What the bars look like after some reports, on a terminal of 80 columns."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "REFRESH", -1.0)
    console = Console(file=io.StringIO(), width=80, force_terminal=True, legacy_windows=False)
    bars = ChainProgress(2, scans, warmup, console)
    for report in reports:
        bars(report)
    bars.stop()
    console.file = io.StringIO()
    console.print(bars._bars.get_renderable())
    return [line.rstrip() for line in _plain(console.file.getvalue()).splitlines()]


def _plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_a_line_per_chain_that_fits(monkeypatch):
    reports = [ScanReport(0, 299, (12, 12, 12), LONG), ScanReport(1, 340, (3, 17, 5, 8, 2), LONG)]
    one, two = lines_of(monkeypatch, reports, 10_500, 300)
    assert one.startswith("chain 1 warm-up ")
    assert "299/300" in one
    assert "rank 12 " in one
    assert two.startswith("chain 2 draws ")
    assert " 40/10200" in two
    assert "rank 2-17" in two
    assert "noise 0.0123" in two
    assert max(map(len, (one, two))) <= 80
    assert "…" not in one + two


@pytest.mark.parametrize("warmup", [None, 300])
def test_totals_that_nobody_knows_are_not_made_up(monkeypatch, warmup):
    (one, _) = lines_of(monkeypatch, [ScanReport(0, 350, (2, 2), {})], None, warmup)
    assert ("50/?" if warmup else "350/?") in one.replace(" ", "")


def test_what_does_not_fit_is_left_out_as_a_whole():
    assert shortened(["rank 2", "noise 0.1", "error 12345"], 17) == "rank 2  noise 0.1"
    assert shortened(["rank 2", "noise 0.1"], 16) == "rank 2"


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_predictions_show_a_bar_when_they_take_long(monkeypatch, capsys, patience):
    """Cells of all threads are counted, and what takes a moment stays quiet."""
    monkeypatch.setattr(progress, "STEP_PATIENCE", patience)
    console = Console(file=io.StringIO(), width=80, force_terminal=True, legacy_windows=False)
    monkeypatch.setattr(progress, "Console", lambda **_: console)
    with progress.cell_progress(True, 2_000_000) as report:
        threads = [threading.Thread(target=report, args=(500_000,)) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    seen = _plain(console.file.getvalue())
    assert ("1,500,000 of 2,000,000 cells" in seen) == (patience == 0.0)
    assert bool(seen) == (patience == 0.0)


def test_no_bar_if_none_is_wanted():
    with progress.cell_progress(False, 10) as report:
        assert report is None
