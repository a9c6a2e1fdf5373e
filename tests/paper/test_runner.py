"""Cells: kept one by one, gone on with after a stop, chosen by name."""

from __future__ import annotations

import json

import pytest

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
    return ResultCell("folder", data, name, "0", work, (name,))


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


def test_a_second_run_works_out_what_is_missing(tmp_path):
    first = run_cells([cell("a"), cell("b")], tmp_path, show=False)
    assert (first.computed, first.kept) == (2, 0)
    cell("a").path(tmp_path).unlink()
    kept = cell("b").path(tmp_path)
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"score": 0.1}))
    again = run_cells([cell("a"), cell("b"), cell("c")], tmp_path, show=False)
    assert (again.computed, again.kept) == (2, 1)
    assert calls == ["a", "b", "a", "c"]
    assert cell("b").load(tmp_path)["score"] == 0.1


def test_an_interrupt_leaves_whole_files_only(tmp_path, monkeypatch):
    cells = [cell("a"), cell("interrupted"), cell("c")]
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, tmp_path, show=False)
    assert [path.name for path in tmp_path.rglob("*.json")] == ["Some_data-a-0.json"]

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.write_text", stop)
        with pytest.raises(KeyboardInterrupt):
            run_cells(cells, tmp_path, show=False)
    assert [path.name for path in tmp_path.rglob("*.*")] == ["Some_data-a-0.json"]
    assert run_cells(cells, tmp_path, show=False).computed == 2
    assert not list(tmp_path.rglob(".*"))


def test_what_a_file_says_where_it_was_worked_out(tmp_path):
    run_cells([cell("a")], tmp_path, show=False)
    found = cell("a").load(tmp_path)
    assert (found["data"], found["method"], found["score"]) == ("Some data", "a", 0.5)
    assert {"bayesring", "numpy", "numba"} <= set(found["versions"])
    assert "cores" in found["machine"]
    assert found["threads"] >= 1


def test_troubles_are_told_and_the_others_go_on(tmp_path, capsys):
    cells = [cell(name) for name in ("broken", "absent", "large", "a")]
    outcome = run_cells(cells, tmp_path)
    assert outcome.unavailable == ["It is not installed."]
    assert outcome.failed == ["Some data/broken/0: a fold is wrong."]
    assert outcome.computed == 2
    assert cell("large").load(tmp_path)["cannot"] == "it needs 512 GB."
    assert cell("absent").load(tmp_path) is None
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


def test_several_at_a_time(tmp_path):
    cells = [ResultCell("f", "d", str(i), "0", sleepless, (i,)) for i in range(3)]
    cells.append(ResultCell("f", "d", "x", "0", sleepless, (-1,)))
    outcome = run_cells(cells, tmp_path, jobs=2, show=False)
    assert outcome.computed == 3
    assert outcome.failed == ["d/x/0: -1 is too few."]
    assert cells[2].load(tmp_path)["twice"] == 4


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
