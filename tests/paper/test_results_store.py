"""Results as rows of CSV files: what goes in comes out, to the last digit."""

from __future__ import annotations

import csv
import json
import math
import multiprocessing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper import results_store
from paper.results_store import COMMITTED, ROOT, CellKey, Provenance, ResultsStore, read_table

KEY = CellKey("Some data", "a method", "0")
CODE = Provenance("c0ffee", "code")
TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    PLAIN, lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXT, part, max_size=3)
)
NAMES = st.text("abcdefgh_ ,%", min_size=1, max_size=5)


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=5), min_size=1, max_size=4))
def test_every_value_comes_back(tmp_path_factory, results):
    store = ResultsStore(tmp_path_factory.mktemp("store"))
    for part, result in enumerate(results):
        store.keep("study", KEY._replace(part=str(part)), result, CODE)
    fresh = ResultsStore(store.folder)
    for part, result in enumerate(results):
        found = fresh.load("study", KEY._replace(part=str(part)))
        assert found == result | {"data": KEY.data, "method": KEY.method}
        assert repr([found[name] for name in result]) == repr(list(result.values()))


@pytest.mark.parametrize(
    "value", ["1", "null", "NaN", '"x"', "", "1.17.1", " 2", "a, b\nc", 0.1 + 0.2, 5e-324, 1.0, 1]
)
def test_texts_that_look_like_numbers_stay_texts(tmp_path, value):
    ResultsStore(tmp_path).keep("study", KEY, {"x": value, "y": {"z": value}}, CODE)
    found = ResultsStore(tmp_path).load("study", KEY)
    assert (found["x"], type(found["x"])) == (value, type(value))
    assert found["y"] == {"z": value}


def test_a_number_that_is_none_comes_back(tmp_path):
    ResultsStore(tmp_path).keep("study", KEY, {"x": math.nan}, CODE)
    assert math.isnan(ResultsStore(tmp_path).load("study", KEY)["x"])


def test_columns_keep_their_order_and_rows_are_sorted(tmp_path):
    store = ResultsStore(tmp_path)
    for part, names in (("2", "acd"), ("1", "abd"), ("3", "ae"), ("2", "acd")):
        store.keep("study", KEY._replace(part=part), dict.fromkeys(names, 1.5), CODE)
    with store.path("study").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*CellKey._fields, "a", "e", "b", "c", "d", "commit", "commit_source"]
    assert [row[2] for row in rows] == ["1", "2", "3"]


def test_what_another_process_wrote_is_seen(tmp_path):
    one, other = ResultsStore(tmp_path), ResultsStore(tmp_path)
    one.keep("study", KEY, {"x": 1}, CODE)
    assert other.load("study", KEY)["x"] == 1
    one.keep("study", KEY, {"x": 2}, CODE)
    assert other.load("study", KEY)["x"] == 2


def write_some(folder, name):
    store = ResultsStore(folder)
    for part in range(20):
        store.keep("study", CellKey("d", name, str(part)), {"x": part}, CODE)


def test_processes_side_by_side_lose_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write_some, args=(tmp_path, name)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(read_table(tmp_path / "study.csv").rows) == 60
    assert [path.name for path in tmp_path.iterdir()] == ["study.csv"]


def test_the_commit_is_that_of_the_code(monkeypatch):
    answers = {"rev-parse": "abc", "status": ""}
    monkeypatch.setattr(results_store, "_git", lambda command, *_: answers[command])
    assert results_store.this_code() == ("abc", "code")
    answers["status"] = " M src/bayesring/ring.py"
    assert results_store.this_code() == ("abc+dirty", "code")

    def no_git(*_):
        raise FileNotFoundError("git")

    monkeypatch.setattr(results_store, "_git", no_git)
    assert results_store.this_code() == ("unknown", "code")


@pytest.mark.parametrize(("study", "number"), [("accuracy", 250), ("rank", 425), ("scale", 19)])
def test_committed_rows_have_a_commit(study, number):
    rows = read_table(ROOT / COMMITTED / f"{study}.csv").rows
    assert len(rows) == number
    for row in rows.values():
        assert row["commit_source"] in ("code", "file")
        assert len(row["commit"].removesuffix("+dirty")) == 40
        assert json.loads(row["seconds"]) > 0
