"""Zarr stores as destinations: a store is replaced by a store, and nothing else is lost."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
import xarray as xr

from bayesring.data.writing import ZARR, check_destination
from tests.destinations import fail_with, refused, snapshot, write


@pytest.fixture(params=[2, 3])
def store(request, tmp_path):
    """A Zarr store of xarray with groups, a scalar and names."""
    path = tmp_path / "x.zarr"
    data = xr.Dataset(
        {"t": (("a", "b"), np.ones((4, 6))), "scalar": 1.0}, coords={"a": np.arange(4)}
    )
    for group in (None, "group/sub"):
        data.to_zarr(
            path,
            group=group,
            mode="a",
            zarr_format=request.param,
            consolidated=request.param == 2,
            encoding={"t": {"chunks": (2, 3)}},
        )
    return path


def test_a_store_is_replaced_by_a_store(store):
    store.chmod(0o750)
    assert len(snapshot(store)) > 10
    write(store, "{}", ZARR)
    assert snapshot(store.parent) == {"x.zarr": None, "x.zarr/.zgroup": b"{}"}
    assert stat.S_IMODE(store.stat().st_mode) == 0o750


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_store(store, error):
    before = snapshot(store.parent)
    with pytest.raises(error):
        write(store, "{", ZARR, then=fail_with(error))
    assert snapshot(store.parent) == before


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [1, 2])
def test_a_store_that_cannot_be_renamed_stays(store, monkeypatch, error, at):
    before = snapshot(store.parent)
    calls = []
    rename = os.rename

    def fail(source, target):
        calls.append(source)
        if len(calls) == at:
            raise error
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(type(error)):
        write(store, folder_format=ZARR)
    assert len(calls) == 2 * at - 1
    assert snapshot(store.parent) == before


def test_a_link_to_a_store_stays(store):
    link = store.with_name("link.zarr")
    link.symlink_to("x.zarr")
    write(link, "{}", ZARR)
    assert snapshot(store.parent) == {
        "link.zarr": "x.zarr",
        "x.zarr": None,
        "x.zarr/.zgroup": b"{}",
    }


@pytest.mark.parametrize(
    "foreign",
    [
        "notes.txt",
        ".DS_Store",
        "0",
        "t/notes.txt",
        "t/7",
        "t/0.0.0",
        "t/2020/01/05",
        "t/backup/0/0",
        "t/c/readme",
        "group/sub/notes.txt",
        "photos/1.jpg",
        "photos/0/0",
        "other.zarr/notes.txt",
        "t/0.0.bak",
    ],
)
def test_a_store_with_anything_else_in_it_is_refused(store, foreign):
    (store / foreign).parent.mkdir(parents=True, exist_ok=True)
    (store / foreign).write_text("ten years")
    before = snapshot(store.parent)
    refused(store, IsADirectoryError, "which is not part of a Zarr store.", ZARR)
    assert snapshot(store.parent) == before


@pytest.mark.parametrize("name", ["link", "t/0.1", "t/c/9/9", "t/9", ".zattrs"])
def test_a_store_with_links_or_pipes_in_it_is_refused(store, name):
    for make in (lambda path: path.symlink_to("/etc/hostname"), os.mkfifo):
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).unlink(missing_ok=True)
        make(store / name)
        refused(store, IsADirectoryError, f"it contains {name}, which is not part of", ZARR)
        assert os.path.lexists(store / name)


def test_a_file_put_into_a_store_meanwhile_is_not_lost(store):
    with pytest.raises(IsADirectoryError, match=r"contains notes\.txt"):
        write(store, "{}", ZARR, then=lambda: (store / "notes.txt").write_text("ten years"))
    assert (store / "notes.txt").read_text() == "ten years"
    assert [each.name for each in store.parent.iterdir()] == ["x.zarr"]


@pytest.mark.parametrize(
    "files",
    [
        {"notes.txt": "ten years"},
        {"sub/.zgroup": '{"zarr_format": 2}'},
        {"zarr.json": "not JSON"},
        {"zarr.json": '["a list"]'},
        {"zarr.json": '{"name": "a package"}'},
        {".zarray": "{}"},
    ],
)
def test_other_folders_are_no_stores(tmp_path, files):
    path = tmp_path / "x.zarr"
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)
    before = snapshot(tmp_path)
    refused(path, IsADirectoryError, "it is a folder, but not a Zarr store.", ZARR)
    assert snapshot(tmp_path) == before


def test_a_store_takes_an_empty_place_but_not_that_of_a_file(tmp_path):
    (tmp_path / "x.zarr").mkdir()
    for name in ("x.zarr", "y.zarr"):
        check_destination(tmp_path / name, ZARR)
        write(tmp_path / name, "{}", ZARR)
        assert snapshot(tmp_path / name) == {".zgroup": b"{}"}
    write(tmp_path / "z.zarr", "old")
    message = "it is a file, but a Zarr store is a folder."
    refused(tmp_path / "z.zarr", NotADirectoryError, message, ZARR)
    assert (tmp_path / "z.zarr").read_text() == "old"


def test_nested_and_scalar_arrays_are_stores(tmp_path):
    zarr = pytest.importorskip("zarr")
    nested = {"name": "v2", "separator": "/"}
    for kind in (2, 3):
        for name, shape in (("scalar", ()), ("array", (4, 4))):
            path = tmp_path / f"{name}{kind}.zarr"
            options = {"chunks": (2, 2)} if shape else {}
            array = zarr.create_array(
                path,
                shape=shape,
                dtype="f8",
                zarr_format=kind,
                chunk_key_encoding=nested if kind == 2 else None,
                **options,
            )
            array[...] = 1.0
            assert len(snapshot(path)) > 1
            check_destination(path, ZARR)
