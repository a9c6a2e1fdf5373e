"""Tables and pages of the repository are those that its results give, byte for byte."""

from __future__ import annotations

import json

import pytest

from paper import (
    accuracy_tables,
    comparison,
    coverage,
    gap_coverage,
    rank_study,
    reliability,
    reproduction_page,
    scale,
)
from paper.bench import suite
from paper.results_store import COMMITTED, ROOT, ResultsStore

RESULTS = ROOT / COMMITTED


@pytest.fixture(scope="module")
def store():
    return ResultsStore(RESULTS)


@pytest.fixture(scope="module")
def written(store, tmp_path_factory):
    """Everything that `make reproduce` writes when all cells are there."""
    out = tmp_path_factory.mktemp("docs")
    (out / "tables").mkdir()
    rank_study.write(store, out)
    scale.write(store, out)
    for name in ("continuous", "binary"):
        comparison.write(store, out, name)
    reproduction_page.write(store, out)
    return out


@pytest.mark.parametrize("ending", ["md", "json"])
@pytest.mark.parametrize("name", ["rank", "scale", "continuous", "binary"])
def test_tables(written, name, ending):
    file = f"tables/{name}.{ending}"
    assert (written / file).read_bytes() == (ROOT / "docs" / file).read_bytes()


def test_the_page_on_the_reproduction(written):
    committed = (ROOT / "docs" / "reproduction.md").read_bytes()
    assert (written / "reproduction.md").read_bytes() == committed


def between(path, module):
    return path.read_text().split(module.BEGIN)[1].split(module.END)[0]


def test_accuracy_in_the_readme(store):
    found = between(accuracy_tables.README, accuracy_tables)
    assert found == f"\n{accuracy_tables.short_table(store)}"


def test_accuracy_on_its_page(store):
    found = between(accuracy_tables.PAGE, accuracy_tables)
    assert found == f"\n{accuracy_tables.table(store)}"


def test_speed_on_its_page():
    result = json.loads((RESULTS / "bench.json").read_text())
    found = between(ROOT / "docs" / "speed.md", suite)
    assert found == f"\n{suite.markdown(result)}\n"


def test_the_page_on_reliability():
    results = json.loads((RESULTS / "reliability.json").read_text())
    simulated = coverage.table(coverage.read(RESULTS / "coverage.json"))
    gaps = gap_coverage.lines(coverage.read(RESULTS / "gaps.json", gap_coverage.GapJob))
    page = reliability.page(results, simulated, gaps)
    assert page == (ROOT / "docs" / "reliability.md").read_text()
