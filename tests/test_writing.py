"""Destinations: what may be replaced is replaced whole, and nothing else is ever lost."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bayesring.data import writing
from bayesring.data.writing import ZARR, check_destination, check_folder, replacing, same_place


def write(path, content="new", folder_format=None, then=lambda: None):
    """Write a file or a store, and do something else before it is done."""
    with replacing(path, folder_format) as temporary:
        if folder_format is not None:
            temporary.mkdir()
        (temporary if folder_format is None else temporary / ".zgroup").write_text(content)
        then()


def fail_with(error):
    def fail(*_):
        raise error

    return fail


def snapshot(folder):
    """All names, with what links and files hold."""
    found = {}
    for each in sorted(folder.rglob("*")):
        name = str(each.relative_to(folder))
        if each.is_symlink():
            found[name] = os.readlink(each)
        else:
            found[name] = each.read_bytes() if each.is_file() else None
    return found


def refused(path, error, message, folder_format=None):
    """Both the check and the write refuse, with one sentence."""
    for attempt in (check_destination, write):
        with pytest.raises(error, match=re.escape(message)) as caught:
            attempt(path, folder_format=folder_format)
        assert str(caught.value).endswith(".")
        assert str(caught.value).count("\n") == 0
        assert "Errno" not in str(caught.value)


def test_a_file_is_made_and_replaced(tmp_path):
    for content in ("one", "two"):
        write(tmp_path / "x", content)
        write(str(tmp_path / "y"), content)
        assert snapshot(tmp_path) == {"x": content.encode(), "y": content.encode()}


def test_a_check_leaves_everything_as_it_was(tmp_path):
    write(tmp_path / "old", "old")
    for name in ("old", "new"):
        assert check_destination(tmp_path / name) == tmp_path / name
    check_folder(tmp_path / "deep" / "folder")
    assert snapshot(tmp_path) == {"old": b"old"}


def test_names_are_relative_to_where_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write("x")
    write("~")
    assert snapshot(tmp_path) == {"x": b"new", "~": b"new"}


@pytest.mark.parametrize("name", ["folder", "folder/", "folder/.", "folder/sub/..", "link", "."])
def test_a_folder_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "folder" / "sub").mkdir(parents=True)
    (tmp_path / "folder" / "thesis.txt").write_text("ten years")
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    refused(name, IsADirectoryError, f"{name} cannot be written: it is a folder, but a file is")
    assert snapshot(tmp_path) == before


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", IsADirectoryError, "it is a folder, but a file is required.")
    assert snapshot(tmp_path) == {"empty": None}


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("", ValueError, "path is empty, but the name of a file to write is required."),
        ("a\0b", ValueError, r"path must not contain a NUL character, got 'a\x00b'."),
        ("\ud800", ValueError, r"path must be text that a file name can hold, got '\ud800'."),
        (b"bytes", TypeError, "path must be a str or a pathlib.Path, got b'bytes'."),
        (1, TypeError, "path must be a str or a pathlib.Path, got 1."),
        (None, TypeError, "path must be a str or a pathlib.Path, got None."),
        ("x" * 256, OSError, "cannot be written: its name is too long."),
        ("é" * 128, OSError, "cannot be written: its name is too long."),
        ("y/" * 3000 + "x", OSError, "cannot be written: its name is too long."),
        ("nowhere/x", FileNotFoundError, "there is no folder nowhere."),
        ("nowhere/../x", FileNotFoundError, "there is no folder nowhere/.."),
        ("nowhere/", FileNotFoundError, "there is no folder nowhere."),
        ("file/", NotADirectoryError, "file is not a folder."),
        ("file/x", NotADirectoryError, "file is not a folder."),
        ("/proc/x", PermissionError, "no file can be created in the folder /proc."),
    ],
)
def test_paths_that_make_no_sense(tmp_path, monkeypatch, path, error, message):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    refused(path, error, message)
    assert snapshot(tmp_path) == {"file": b"old"}


def test_a_folder_without_rights_is_refused(tmp_path, monkeypatch):
    """The tests may run as root, to whom rights mean nothing."""
    monkeypatch.setattr(os, "access", lambda folder, rights: not rights & os.W_OK)
    refused(tmp_path / "x", PermissionError, f"no file can be created in the folder {tmp_path}.")
    with pytest.raises(PermissionError, match="no file can be created in the folder"):
        check_folder(tmp_path / "folder")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "/dev/zero"])
def test_a_device_is_refused(device, tmp_path):
    refused(device, ValueError, f"{device} cannot be written: it is a device, but a file is")
    (tmp_path / "link").symlink_to(device)
    refused(tmp_path / "link", ValueError, "link cannot be written: it is a device, but a file is")
    assert stat.S_ISCHR(os.stat(device).st_mode)


def test_pipes_and_sockets_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    refused("pipe", ValueError, "pipe cannot be written: it is a pipe, but a file is required.")
    assert stat.S_ISFIFO(os.lstat("pipe").st_mode)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")
        refused("socket", ValueError, "socket cannot be written: it is a socket, but a file is")


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_streams_are_refused_even_if_they_are_files(tmp_path, kind):
    """A log that standard output is appended to must not be replaced."""
    (tmp_path / "log").write_text("of yesterday\n")
    streams = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
    code = (
        "import sys; from bayesring.data.writing import check_destination\n"
        "for stream in sys.argv[1:]:\n"
        "    try: check_destination(stream)\n"
        "    except ValueError as error: print(error, file=sys.stderr)"
    )
    with (tmp_path / "log").open("a") as log:
        done = subprocess.run(
            [sys.executable, "-c", code, *streams],
            stdout=log if kind == "file" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    assert done.stderr.splitlines() == [
        f"{stream} cannot be written: it is an open stream, but a file is required."
        for stream in streams
    ]
    assert snapshot(tmp_path) == {"log": b"of yesterday\n"}


@pytest.mark.parametrize("old", ["old", None])
def test_a_link_stays_and_its_file_is_replaced(tmp_path, old):
    """Also through a second link, into another folder, and if the file is not there yet."""
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    if old is not None:
        (tmp_path / "far" / "file").write_text(old)
    (tmp_path / "far" / "second").symlink_to("file")
    (tmp_path / "near" / "first").symlink_to("../far/second")
    assert check_destination(tmp_path / "near" / "first").resolve() == tmp_path / "far" / "file"
    seen = []
    write(tmp_path / "near" / "first", then=lambda: seen.extend(os.listdir(tmp_path / "far")))
    assert any(re.fullmatch(r"\.file\.[0-9a-f]{8}\.tmp", name) for name in seen)
    assert snapshot(tmp_path) == {
        "far": None,
        "far/file": b"new",
        "far/second": "file",
        "near": None,
        "near/first": "../far/second",
    }


def test_links_that_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one").symlink_to("two")
    Path("two").symlink_to("one")
    Path("lost").symlink_to("nowhere/file")
    Path("astray").symlink_to("nowhere/../file")
    refused("one", OSError, "one cannot be written: its symbolic links lead in a circle.")
    refused("one/file", OSError, "one/file cannot be written: its symbolic links lead in a circle.")
    refused("lost", FileNotFoundError, "lost cannot be written: there is no folder nowhere.")
    refused("astray", FileNotFoundError, "astray cannot be written: there is no folder nowhere/..")
    assert sorted(snapshot(tmp_path)) == ["astray", "lost", "one", "two"]


def test_a_name_as_long_as_can_be(tmp_path):
    for name in ("x" * 255, "é" * 127, "x" * 242):
        with replacing(tmp_path / name) as temporary:
            assert len(os.fsencode(temporary.name)) <= 255
            assert re.fullmatch(rf"\.{name[0]}+\.[0-9a-f]{{8}}\.tmp", temporary.name)
            temporary.write_text("new")
        assert (tmp_path / name).read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o400])
def test_rights_are_kept_and_hold_while_writing(tmp_path, mode):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == mode | 0o600
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_new_files_have_the_usual_rights(tmp_path):
    (tmp_path / "usual").touch()
    write(tmp_path / "x")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(tmp_path):
    write(tmp_path / "x", "old")
    os.chown(tmp_path / "x", 1234, 1235)
    write(tmp_path / "x")
    found = (tmp_path / "x").stat()
    assert (found.st_uid, found.st_gid) == (1234, 1235)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["old", "link", "absent"])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, error, name):
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    with pytest.raises(error):
        write(tmp_path / name, "half of the n", then=fail_with(error))
    assert snapshot(tmp_path) == {"old": b"old", "link": "old"}


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_at_the_end_leaves_the_old_file(tmp_path, monkeypatch, step, error):
    (tmp_path / "x").write_text("old")
    monkeypatch.setattr(os, step, fail_with(error))
    with pytest.raises(type(error)) as caught:
        write(tmp_path / "x")
    if isinstance(error, OSError):
        assert str(caught.value) == f"{tmp_path / 'x'} cannot be written: no space left on device."
    assert snapshot(tmp_path) == {"x": b"old"}


def test_bytes_are_on_the_disk_before_the_name(tmp_path, monkeypatch):
    """First the content, then the name, then the folder that holds the name."""
    done = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(opened):
        state = os.fstat(opened)
        done.append(("fsync", stat.S_ISDIR(state.st_mode), state.st_ino))
        fsync(opened)

    def note_replace(source, target):
        done.append(("replace", source.read_text(), source.stat().st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    write(tmp_path / "x")
    inode = (tmp_path / "x").stat().st_ino
    assert done == [
        ("fsync", False, inode),
        ("replace", "new", inode),
        ("fsync", True, tmp_path.stat().st_ino),
    ]


def test_what_comes_meanwhile_is_not_replaced(tmp_path):
    """A folder or a pipe made at the destination while the work is done."""
    for name, make in (("folder", os.mkdir), ("pipe", os.mkfifo)):
        with pytest.raises((OSError, ValueError), match=f"it is a {name}, but a file is required"):
            write(tmp_path / name, then=lambda: make(tmp_path / name))
    assert snapshot(tmp_path) == {"folder": None, "pipe": None}
    assert (tmp_path / "folder").is_dir()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


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


def test_folders_that_can_be_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    Path("lost").symlink_to("nowhere")
    for folder in (".", "new", "new/deep/", tmp_path / "new"):
        check_folder(folder)
    for folder, error, message in (
        ("file", NotADirectoryError, "file cannot be written: file is not a folder."),
        ("file/sub/deep", NotADirectoryError, "file is not a folder."),
        ("lost", FileNotFoundError, "lost cannot be written: there is no folder lost."),
        ("x" * 256, OSError, "its name is too long."),
        ("", ValueError, "path is empty"),
        ("/proc/x/y", PermissionError, "no file can be created in the folder /proc."),
    ):
        with pytest.raises(error, match=re.escape(message)):
            check_folder(folder)
    assert sorted(snapshot(tmp_path)) == ["file", "lost"]


def test_the_same_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    Path("link").symlink_to("file")
    Path("early").symlink_to("later")
    for one, other in (("file", "./file"), ("link", tmp_path / "file"), ("early", "later")):
        assert same_place(one, other)
    for one, other in (("file", "other"), ("early", "link"), ("a", "b")):
        assert not same_place(one, other)


def test_nothing_is_left_after_a_lost_folder(tmp_path):
    """The folder is removed while the work is done: a sentence, not a fault."""
    (tmp_path / "folder").mkdir()
    with (
        pytest.raises(FileNotFoundError, match=r"x cannot be written: no such file"),
        replacing(tmp_path / "folder" / "x"),
    ):
        shutil.rmtree(tmp_path / "folder")
    assert snapshot(tmp_path) == {}


def test_temporary_names_are_not_those_of_other_files(tmp_path, monkeypatch):
    names = iter(["00000000", "00000000", "11111111"])
    monkeypatch.setattr(writing.secrets, "token_hex", lambda _: next(names))
    (tmp_path / ".x.00000000.tmp").write_text("of another")
    write(tmp_path / "x")
    assert snapshot(tmp_path) == {".x.00000000.tmp": b"of another", "x": b"new"}


LONG_AGO = 1_000_000_000


def left_behind(path, content="half"):
    """A temporary file as a process leaves it that was killed long ago."""
    path.write_text(content)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


@pytest.mark.skipif(writing.fcntl is None, reason="needs locks")
def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path):
    ours = left_behind(tmp_path / ".x.0123abcd.tmp")
    theirs = [
        left_behind(tmp_path / name)
        for name in (".y.0123abcd.tmp", ".x.0123abcd.old", ".x.0123abc.tmp", "x.0123abcd.tmp")
    ]
    (tmp_path / ".x.89abcdef.tmp").mkdir()
    write(tmp_path / "x")
    assert not ours.exists()
    assert all(path.read_text() == "half" for path in theirs)
    assert (tmp_path / ".x.89abcdef.tmp").is_dir()


def test_young_temporary_files_are_left_alone(tmp_path):
    """Between its making and its lock a file has none, though somebody needs it."""
    young = tmp_path / ".x.0123abcd.tmp"
    young.write_text("about to be locked")
    write(tmp_path / "x")
    assert young.read_text() == "about to be locked"


@pytest.mark.skipif(writing.fcntl is None, reason="needs locks")
def test_the_temporary_file_of_a_writer_at_work_is_left_alone(tmp_path):
    """However long it takes."""
    with replacing(tmp_path / "x") as temporary:
        left_behind(temporary, "slow")
        write(tmp_path / "x", "quick")
        assert temporary.read_text() == "slow"
    assert snapshot(tmp_path) == {"x": b"slow"}


def old(path, seconds=3600):
    """Make a file look as if it had been written some time ago."""
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_what_killed_processes_left_is_removed_by_the_next(tmp_path):
    pytest.importorskip("fcntl")
    left = tmp_path / ".model.ring.0123abcd.tmp"
    theirs = [
        tmp_path / ".other.ring.0123abcd.tmp",
        tmp_path / ".model.ring.tmp",
        tmp_path / ".model.ring.0123ABCD.tmp",
        tmp_path / "model.ring.0123abcd.tmp",
    ]
    young, folder = tmp_path / ".model.ring.76543210.tmp", tmp_path / ".model.ring.00000000.tmp"
    for path in (left, young, *theirs):
        path.write_text("half")
    folder.mkdir()
    for path in (left, folder, *theirs):
        old(path)
    write(tmp_path / "model.ring", "new")
    assert not left.exists()
    assert young.exists()  # its writer may not have locked it yet
    assert folder.exists()
    assert all(path.exists() for path in theirs)


def test_a_file_that_another_process_is_writing_is_left_alone(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / ".model.ring.0123abcd.tmp"
    path.write_text("half")
    old(path)
    with open(path, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write(tmp_path / "model.ring", "new")
        assert path.read_text() == "half"
    write(tmp_path / "model.ring", "newer")
    assert not path.exists()


def test_the_file_being_written_is_locked(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with replacing(tmp_path / "model.ring") as temporary:
        with open(temporary, "rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.write_text("new")
    with open(tmp_path / "model.ring", "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
