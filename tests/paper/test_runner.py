"""Cells: kept one by one, gone on with after a stop, chosen by name."""

from __future__ import annotations

import pytest

from paper import results_store
from paper.results_store import Provenance, ResultsStore
from paper.runner import ResultCell, Unavailable, choose, run_cells

calls: list[str] = []


def work(name, threads):
    """Stand-in for work; a name says what becomes of it."""
    calls.append(name)
    if name == "interrupted" and calls.count(name) == 1:
        raise KeyboardInterrupt
    if name == "large":
        raise MemoryError("it needs 512 GB.")
    if name == "absent":
        raise Unavailable("It is not installed.")
    if name == "broken":
        raise ValueError("a fold is wrong.")
    return {"score": 0.5, "seconds": 0.1}


def cell(name, data="Some data"):
    return ResultCell("study", data, name, "0", work, (name,))


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


@pytest.fixture
def store(tmp_path):
    return ResultsStore(tmp_path)


def kept(folder):
    """Names of the cells in the file, and of all files."""
    rows = (folder / "study.csv").read_text().splitlines()[1:]
    return [row.split(",")[1] for row in rows], [path.name for path in folder.iterdir()]


def test_a_second_run_works_out_what_is_missing(store):
    first = run_cells([cell("a"), cell("b")], store, show=False)
    assert (first.computed, first.kept) == (2, 0)
    path = store.path("study")
    rows = path.read_text().splitlines(keepends=True)
    path.write_text(rows[0] + rows[2].replace("0.5", "0.1"))
    again = run_cells([cell("a"), cell("b"), cell("c")], store, show=False)
    assert (again.computed, again.kept) == (2, 1)
    assert calls == ["a", "b", "a", "c"]
    assert cell("b").load(store)["score"] == 0.1


def test_cells_that_are_there_are_replaced_if_wanted(store):
    cell("a").keep(store, {"score": 0.1, "old": 1}, Provenance("c0ffee", "file"))
    cell("b").keep(store, {"score": 0.2}, Provenance("c0ffee", "file"))
    assert run_cells([cell("a")], store, show=False, again=True).computed == 1
    found = cell("a").load(store)
    assert (found["score"], "old" in found) == (0.5, False)
    assert store.provenance("study", cell("a").key) == results_store.this_code()
    assert store.provenance("study", cell("b").key) == ("c0ffee", "file")


def test_an_interrupt_leaves_whole_cells_only(store, tmp_path, monkeypatch):
    cells = [cell("a"), cell("interrupted"), cell("c")]
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, store, show=False)
    assert kept(tmp_path) == (["a"], ["study.csv"])

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(results_store.csv, "writer", stop)
        with pytest.raises(KeyboardInterrupt):
            run_cells(cells, store, show=False)
    assert kept(tmp_path) == (["a"], ["study.csv"])
    assert run_cells(cells, store, show=False).computed == 2
    assert kept(tmp_path) == (["a", "c", "interrupted"], ["study.csv"])


def test_a_row_says_where_it_was_worked_out(store):
    run_cells([cell("a")], store, show=False)
    found = cell("a").load(store)
    assert (found["data"], found["method"], found["score"]) == ("Some data", "a", 0.5)
    assert {"bayesring", "numpy", "numba"} <= set(found["versions"])
    assert "cores" in found["machine"]
    assert found["threads"] >= 1


def test_troubles_are_told_and_the_others_go_on(store, capsys):
    cells = [cell(name) for name in ("broken", "absent", "large", "a")]
    outcome = run_cells(cells, store)
    assert outcome.unavailable == ["It is not installed."]
    assert outcome.failed == ["Some data/broken/0: a fold is wrong."]
    assert outcome.computed == 2
    assert cell("large").load(store)["cannot"] == "it needs 512 GB."
    assert cell("absent").load(store) is None
    shown = capsys.readouterr().err
    assert "Some data/a/0: score 0.5" in shown
    assert "it needs 512 GB." in shown


def test_time_left_is_scaled_by_what_cells_cost(monkeypatch):
    from paper import cell_progress

    now = [0.0]
    monkeypatch.setattr(cell_progress.time, "monotonic", lambda: now[0])
    bar = cell_progress.CellProgress([10.0, 30.0], jobs=2)
    assert bar.seconds_left() == pytest.approx(20)
    now[0] = 20.0
    bar.done("a", 10.0, "")
    assert bar.seconds_left() == pytest.approx(60)


def test_several_at_a_time(store):
    cells = [ResultCell("f", "d", str(i), "0", sleepless, (i,)) for i in range(3)]
    cells.append(ResultCell("f", "d", "x", "0", sleepless, (-1,)))
    outcome = run_cells(cells, store, jobs=2, show=False)
    assert outcome.computed == 3
    assert outcome.failed == ["d/x/0: -1 is too few."]
    assert cells[2].load(store)["twice"] == 4


def sleepless(number, threads):
    if number < 0:
        raise ValueError(f"{number} is too few.")
    return {"twice": 2 * number}


def test_only_names_data_sets_methods_or_both():
    cells = [cell("Gibbs", "Indian Pines"), cell("BTR-VI", "Indian Pines"), cell("Gibbs", "Alog")]
    assert choose(cells, ["indian_pines/gibbs"]) == cells[:1]
    assert choose(cells, ["Indian Pines"]) == cells[:2]
    assert choose(cells, ["*/Gibbs"]) == [cells[0], cells[2]]
    assert choose(cells, ["BTR-VI", "Alog/Gibbs"]) == cells[1:]
    assert choose(cells, []) == cells
    with pytest.raises(ValueError, match=r"--only Eron names none .*Indian Pines, Alog.*BTR-VI"):
        choose(cells, ["Eron"])
