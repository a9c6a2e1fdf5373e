"""What commands may write is looked at before any work: folders, pipes, files of their own."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesring import load
from bayesring.command.origin import describe_file
from bayesring.command.outputs import check_replaced
from tests.shell import KEYS, QUICK, call_main, run, small_table


@pytest.fixture(scope="module")
def text():
    return small_table()


@pytest.fixture
def source(text, tmp_path):
    (tmp_path / "in.csv").write_text(text)
    return tmp_path / "in.csv"


@pytest.fixture(scope="module")
def model(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "in.csv").write_text(text)
    run("fit", folder / "in.csv", *KEYS, "-o", folder / "model.ring", *QUICK)
    return folder / "model.ring"


COMMANDS = {
    "complete": ["complete", "{in}", *KEYS, "-o", "{bad}"],
    "complete with a model": ["complete", "{in}", *KEYS, "-o", "{out}", "--model", "{bad}"],
    "fit": ["fit", "{in}", *KEYS, "-o", "{bad}"],
    "fit to a stream": ["fit", "x.parquet", *KEYS, "--inference", "online-em", "-o", "{bad}"],
    "predict": ["predict", "{model}", "{in}", "-o", "{bad}"],
    "report": ["report", "{model}", "-o", "{bad}"],
    "demo": ["demo", "--table", "{bad}"],
}
BAD = {
    "folder.csv": "it is a folder, but a file is required.",
    "nowhere/x.csv": "there is no folder ",
    "in.csv/x.csv": "in.csv is not a folder.",
    "pipe.csv": "it is a pipe, but a file is required.",
    "loop.csv": "its symbolic links lead in a circle.",
    "/proc/x.csv": "no file can be created in the folder /proc.",
}


def forbid_work(monkeypatch):
    """Make anything that takes long fail, so that it is not done before the checks."""

    def work(*_, **__):
        raise AssertionError("work was done before the destination was looked at.")

    for name in ("read_data", "ParquetRows", "TensorRing"):
        monkeypatch.setattr(f"bayesring.command.workflows.{name}", work)
    for name in ("read_data", "load"):
        monkeypatch.setattr(f"bayesring.command.judged.{name}", work)
    for name in ("ushcn_table", "run_demo"):
        monkeypatch.setattr(f"bayesring.command.demo.{name}", work)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("bad", BAD)
def test_destinations_are_looked_at_before_any_work(
    monkeypatch, capsys, source, model, command, bad
):
    folder = source.parent
    (folder / "folder.csv").mkdir()
    (folder / "folder.csv" / "thesis.txt").write_text("ten years")
    os.mkfifo(folder / "pipe.csv")
    (folder / "loop.csv").symlink_to("loop.csv")
    before = sorted(folder.rglob("*"))
    forbid_work(monkeypatch)
    places = {"{in}": source, "{out}": folder / "out.csv", "{model}": model}
    arguments = [
        places.get(each, str(each).replace("{bad}", str(folder / bad)))
        for each in COMMANDS[command]
    ]
    assert call_main(monkeypatch, *arguments) == 2
    shown = capsys.readouterr().err
    assert BAD[bad] in shown
    assert shown.count("\n") == 1
    assert shown.startswith("error: ")
    assert sorted(folder.rglob("*")) == before
    assert (folder / "folder.csv" / "thesis.txt").read_text() == "ten years"


@pytest.mark.parametrize("command", ["complete", "fit", "fit to a stream"])
@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ("in.csv", "in.csv is not a folder."),
        ("folder", "holds 'thesis.txt'."),
        ("/proc/kept", "no file can be created in the folder /proc."),
        ("", "path is empty"),
    ],
)
def test_checkpoints_are_looked_at_before_any_work(
    monkeypatch, capsys, source, command, kept, message
):
    """Seen to fail: folders looked at by the fit, after the input was read."""
    folder = source.parent
    (folder / "folder").mkdir()
    (folder / "folder" / "thesis.txt").write_text("ten years")
    before = sorted(folder.rglob("*"))
    forbid_work(monkeypatch)
    arguments = [
        {"{in}": source, "{bad}": folder / "new.csv"}.get(each, each) for each in COMMANDS[command]
    ]
    asked = ["--checkpoint", folder / kept if kept else kept]
    assert call_main(monkeypatch, *arguments, *asked) == 2
    shown = capsys.readouterr().err
    assert message in " ".join(shown.split())
    assert shown.startswith("error: ")
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("file", "file is not a folder."),
        ("file/sub", "file is not a folder."),
        ("/proc/x", "/proc."),
    ],
)
def test_the_demo_looks_at_its_folder_before_any_work(monkeypatch, capsys, tmp_path, out, message):
    forbid_work(monkeypatch)
    (tmp_path / "file").write_text("old")
    assert call_main(monkeypatch, "demo", "--out", tmp_path / out) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "old"


def test_the_demo_looks_at_each_of_its_files_before_any_work(monkeypatch, capsys, tmp_path):
    forbid_work(monkeypatch)
    (tmp_path / "report.md").mkdir()
    assert call_main(monkeypatch, "demo", "--out", tmp_path) == 2
    assert "report.md cannot be written: it is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["complete", "{in}", "-o", "{out}", "--model", "{in}"], "is that of the input."),
        (["complete", "{in}", "-o", "{out}", "--model", "{out}"], "is that of the output."),
        (["complete", "{in}", "-o", "{link}", "--model", "{out}"], "is that of the output."),
        (["fit", "{in}", "-o", "{in}"], "the model needs a file of its own, but"),
        (["predict", "{in}", "{in}", "-o", "{in}"], "is that of the model."),
        (["report", "{in}", "-o", "{in}"], "the report needs a file of its own, but"),
    ],
)
def test_a_model_has_a_file_of_its_own(monkeypatch, capsys, source, text, arguments, message):
    forbid_work(monkeypatch)
    link = source.with_name("link.csv")
    link.symlink_to("out.csv")
    places = {"{in}": source, "{out}": source.with_name("out.csv"), "{link}": link}
    assert call_main(monkeypatch, *(places.get(each, each) for each in arguments)) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert source.read_text() == text


def test_arrays_of_others_beside_those_of_a_result_are_not_replaced(tmp_path):
    """Their archive may have been begun with a result, and hold years of work."""
    result = dict.fromkeys(("mean", "std", "lower", "upper"), np.zeros(3))
    np.savez(tmp_path / "ours.npz", **result)
    check_replaced(tmp_path / "ours.npz", "result", False)
    np.savez(tmp_path / "theirs.npz", **result, years_of_work=np.zeros(3))
    with pytest.raises(FileExistsError, match="--force replaces it"):
        check_replaced(tmp_path / "theirs.npz", "result", False)


def labelled_result(path):
    """A result with coordinates, bounds and a grid mapping."""
    statistics = {name: (("lat", "lon"), np.ones((3, 2))) for name in ("std", "lower", "upper")}
    mean = xr.DataArray(np.ones((3, 2)), dims=("lat", "lon"), attrs={"grid_mapping": "crs"})
    lat = xr.DataArray(np.arange(3.0), dims="lat", attrs={"bounds": "lat_bnds"})
    coords = {"lat": lat, "height": ("lat", np.ones(3)), "crs": 0}
    coords["lat_bnds"] = ("lat", "nv"), np.ones((3, 2))
    save(xr.Dataset(statistics | {"mean": mean}, coords), path)
    return path


def save(data, path, mode="w", group=None):
    if path.suffix == ".nc":
        data.to_netcdf(path, mode, engine="h5netcdf", group=group)
    else:
        data.to_zarr(path, mode=mode, group=group, zarr_format=2, consolidated=group is None)


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
@pytest.mark.parametrize("group", [None, "mine"])
def test_variables_of_others_in_a_result_are_not_replaced(tmp_path, ending, group):
    """Seen to fail: a variable or a group that somebody added was deleted with the result."""
    path = labelled_result(tmp_path / f"out{ending}")
    check_replaced(path, "result", False)
    save(xr.Dataset({"my_work": ("years", np.arange(10))}), path, "a", group)
    with pytest.raises(FileExistsError, match="--force replaces it"):
        check_replaced(path, "result", False)
    check_replaced(path, "result", True)


def test_workbooks_with_other_sheets_are_not_replaced(tmp_path):
    """Seen to fail: they were deleted with the result."""
    path, result = (
        str(tmp_path / "out.xlsx"),
        pd.DataFrame({name: [1.0] for name in ("a", "mean", "std", "lower", "upper")}),
    )
    result.to_excel(path, index=False)
    check_replaced(path, "result", False)
    with pd.ExcelWriter(path, mode="a") as book:
        pd.DataFrame({"mine": [1]}).to_excel(book, sheet_name="mine", index=False)
    with pytest.raises(FileExistsError, match="--force replaces it"):
        check_replaced(path, "result", False)


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_a_result_with_a_statistic_renamed_is_somebodys(tmp_path, ending):
    path = labelled_result(tmp_path / f"out{ending}")
    renamed = xr.load_dataset(path).rename(mean="median")
    save(renamed, path)
    check_replaced(path, "result", False)
    save(renamed.rename(median="mine"), path)
    with pytest.raises(FileExistsError, match="--force replaces it"):
        check_replaced(path, "result", False)


def test_the_folder_of_the_input_is_told_to_nobody(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("a,b\n")
    assert describe_file(str(source)).startswith("in.csv, 4 bytes, SHA-256 ")
    assert describe_file(str(tmp_path)) == tmp_path.name


@pytest.mark.parametrize("command", ["complete", "complete with a model", "fit"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("kept", "kept is the folder of the checkpoint, but a file is required."),
        ("kept/chain-0.state", "chain-0.state is a file of the checkpoint "),
        ("kept/fit.previous", "fit.previous is a file of the checkpoint "),
        ("kept/lock", "lock is a file of the checkpoint "),
    ],
)
def test_outputs_stay_out_of_the_checkpoint(monkeypatch, capsys, source, command, bad, message):
    """Seen to fail: the whole fit was done first, or a state was replaced by the model."""
    folder = source.parent
    if "/" in bad:  # as a fit leaves it; a folder that is there is refused in any case
        (folder / "kept").mkdir()
    forbid_work(monkeypatch)
    places = {"{in}": source, "{bad}": folder / bad, "{out}": folder / "out.csv"}
    arguments = [places.get(each, each) for each in COMMANDS[command]]
    if command == "complete":
        monkeypatch.setattr("bayesring.command.workflows.check_output", lambda *_: None)
    assert call_main(monkeypatch, *arguments, "--checkpoint", folder / "kept", "--force") == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.startswith("error: ")
    assert message in shown


def test_what_is_wrong_is_told_on_one_line(monkeypatch, capsys, source):
    """Whatever is typed: some characters end a line in a terminal."""
    assert call_main(monkeypatch, "fit", source, "a\u2028b", *KEYS, "-o", source.parent / "m") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    with pytest.raises(FileNotFoundError, match=r"^a\\u2028b does not exist\.$"):
        load("a\u2028b")
