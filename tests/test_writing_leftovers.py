"""Temporary files: their names, their locks, and what killed writers left behind."""

from __future__ import annotations

import os
import shutil

import pytest

from bayesring.data import leftovers, writing
from bayesring.data.writing import replacing
from tests.destinations import snapshot, write


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


@pytest.mark.skipif(leftovers.fcntl is None, reason="needs locks")
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


@pytest.mark.skipif(leftovers.fcntl is None, reason="needs locks")
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
