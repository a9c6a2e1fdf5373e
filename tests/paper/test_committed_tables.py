"""Tables and pages of the repository are those that its results give, byte for byte."""

from __future__ import annotations

import json

import pytest

from paper import (
    comparison,
    coverage,
    rank_study,
    readme_accuracy,
    reliability,
    reproduction_page,
    scale,
)
from paper.bench import suite
from paper.results_store import COMMITTED, ROOT, ResultsStore

RESULTS = ROOT / COMMITTED
README = (ROOT / "README.md").read_text()


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


def between(begin, end):
    return README.split(begin)[1].split(end)[0]


def test_accuracy_in_the_readme(store):
    found = between(readme_accuracy.BEGIN, readme_accuracy.END)
    assert found == f"\n{readme_accuracy.table(store)}"


def test_speed_in_the_readme():
    result = json.loads((RESULTS / "bench.json").read_text())
    assert between(suite.BEGIN, suite.END) == f"\n{suite.markdown(result)}\n"


def test_the_page_on_reliability():
    results = json.loads((RESULTS / "reliability.json").read_text())
    simulated = coverage.table(coverage.read(RESULTS / "coverage.json"))
    page = reliability.page(results, simulated)
    assert page == (ROOT / "docs" / "reliability.md").read_text()
