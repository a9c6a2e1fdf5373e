"""The command that measures speed: rows, JSON, page, and the check against them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesring.engine.threads import Threads
from bayesring.likelihoods import Gaussian
from paper.bench import scans, suite
from paper.bench.__main__ import app
from paper.bench.epochs import TimedRing
from paper.bench.timing import Measurement, TimedChain, random_data


def test_bench_prints_rows_and_writes_json_and_a_page(monkeypatch, tmp_path):
    rows = [
        Measurement("a scan", 2.0, "x", 3.0, note="so far"),
        Measurement("a peer", None, "x", note="absent"),
    ]
    monkeypatch.setattr(suite, "measure", lambda quick, large: iter(rows))
    page = tmp_path / "speed.md"
    page.write_text(f"before\n{suite.BEGIN}\nold\n{suite.END}\nafter\n")
    arguments = ["--out", str(tmp_path / "b.json"), "--page", str(page)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    for word in ("a scan", "missed", "so far", "not measured"):
        assert word in result.output
    assert json.loads((tmp_path / "b.json").read_text())["rows"][0]["met"] is False
    assert "| a scan | 2 x (missed) | at least 3 |" in page.read_text()
    assert "old" not in page.read_text()
    assert page.read_text().endswith("after\n")


@pytest.mark.parametrize(("value", "code"), [(1.2, 0), (1.4, 1)])
def test_bench_check_fails_when_a_scan_got_slower(monkeypatch, tmp_path, value, code):
    committed = tmp_path / "bench.json"
    row = Measurement("a scan", 1.0, suite.scans.KEPT)
    committed.write_text(json.dumps(suite.to_json([row])))
    monkeypatch.setattr(suite.scans, "kept", lambda repeats: iter([row._replace(value=value)]))
    result = CliRunner().invoke(app, ["--check", str(committed)])
    assert result.exit_code == code, result.output
    assert ("1.40 times the committed figure" in result.output) == bool(code)


def test_bench_check_says_when_there_is_nothing_to_compare_with(tmp_path):
    committed = tmp_path / "bench.json"
    committed.write_text(json.dumps(suite.to_json([Measurement("a scan", 1.0, "s")])))
    result = CliRunner().invoke(app, ["--check", str(committed)])
    assert result.exit_code == 1
    assert "measure them with `make bench`" in " ".join(result.output.split())


def test_conditionals_of_a_scan_are_measured():
    rows = list(scans.conditionals())
    assert [row.name.split(" of one mode")[0] for row in rows] == [
        "hyperparameters",
        "slices",
        "slices, entry by entry",
        "weights",
        "gains",
        "entries and noise",
    ]
    assert all(row.value > 0 for row in rows)


def test_the_core_update_is_measured():
    seconds, operations = scans._core_update(2, 100)
    assert seconds > 0
    assert operations > 0


def test_a_timed_chain_gives_the_same_scans_on_every_engine():
    shape, cells = (5, 6, 7), random_data((5, 6, 7), 20, Gaussian(), seed=1)
    with Threads(2) as engine:
        chains = [TimedChain(shape, 200, 2), TimedChain(shape, 200, 2, engine=engine)]
        for chain in chains:
            chain()
        one, two = (chain.entries(cells) for chain in chains)
    np.testing.assert_array_equal(one, two)


def test_a_pupil_goes_through_the_data_once_per_call():
    ring_of_em = TimedRing(random_data((5, 6, 7), 1000, Gaussian()), 2)
    for epoch in (1, 2):
        ring_of_em()
        assert ring_of_em.rows_seen == 1000 * epoch
