"""Destinations: what may be replaced is replaced whole, and nothing else is ever lost."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bayesring.data.writing import check_destination, check_folder, replacing, same_place
from tests.destinations import fail_with, refused, snapshot, write


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
        ("", ValueError, "path is empty, but the name of a file or folder to write is required."),
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
