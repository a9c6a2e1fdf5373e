"""What killed writers of Zarr stores left: removed or put back, and nothing that is not theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from bayesring.data import leftovers
from bayesring.data.writing import ZARR
from tests.destinations import fail_with, snapshot, write

pytestmark = pytest.mark.skipif(leftovers.fcntl is None, reason="needs locks")

LONG_AGO = 1_000_000_000
STORE = {".zgroup": '{"zarr_format": 2}', "t/.zarray": '{"shape": [2]}', "t/0": "old"}
WRITER = """
import os, signal, sys
from bayesring.data.writing import ZARR, replacing

place, what = sys.argv[1:]
rename = os.rename
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def die_after_first(source, target):
    rename(source, target)
    die()
if what == "between the renames":
    os.rename = die_after_first
if what == "after the renames":
    import shutil
    shutil.rmtree = die
with replacing(place, ZARR) as temporary:
    temporary.mkdir()
    (temporary / ".zgroup").write_text('{"zarr_format": 2, "by": "another"}')
    if what == "while it writes":
        die()
    if what == "alive":
        print("writing", flush=True)
        sys.stdin.read()
"""


def make(folder, files=STORE):
    """A folder with files, all from long ago."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    folder.mkdir(exist_ok=True)
    return made_long_ago(folder)


def made_long_ago(folder):
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    return folder


def killed(place, what):
    """Write a store in a process that is killed, long ago."""
    done = subprocess.run([sys.executable, "-c", WRITER, place, what], check=False)
    assert done.returncode == -signal.SIGKILL
    made_long_ago(place.parent)


def names(folder):
    return sorted(each.name for each in folder.iterdir())


def test_killed_writers_leave_nothing_for_long(tmp_path):
    place = tmp_path / "x.zarr"
    killed(place, "while it writes")
    assert len(names(tmp_path)) == 2  # a store and a lock
    write(place, "{}", ZARR)
    assert snapshot(tmp_path) == {"x.zarr": None, "x.zarr/.zgroup": b"{}"}


@pytest.mark.parametrize("what", ["between the renames", "after the renames"])
def test_old_stores_of_killed_writers_are_removed_once_there_is_a_new_one(tmp_path, what):
    place = make(tmp_path / "x.zarr")
    killed(place, what)
    assert any(name.endswith(".old") for name in names(tmp_path))
    write(place, "{}", ZARR)
    assert snapshot(tmp_path) == {"x.zarr": None, "x.zarr/.zgroup": b"{}"}


def test_the_only_copy_of_a_result_is_put_back(tmp_path):
    """At once, even if the write that finds it fails, too."""
    place = make(tmp_path / "x.zarr")
    before = snapshot(place)
    killed(place, "between the renames")
    assert not place.exists()
    with pytest.raises(KeyboardInterrupt):
        write(place, "{}", ZARR, then=fail_with(KeyboardInterrupt))
    assert names(tmp_path) == ["x.zarr"]
    assert snapshot(place) == before


def test_names_that_are_cut_are_nobodys(tmp_path):
    """Seen to fail: what was left of a store with a longer name was removed, its only copy."""
    left = make(tmp_path / f".{'n' * leftovers.CUT}.00000001.old")
    write(tmp_path / ("n" * leftovers.CUT), "{}", ZARR)
    assert left.is_dir()
    assert len(names(tmp_path)) == 2


def test_the_latest_of_old_stores_is_put_back_and_only_a_whole_one(tmp_path):
    make(tmp_path / ".x.zarr.00000000.old", STORE | {"t/0": "older"})
    latest = make(tmp_path / ".x.zarr.11111111.old", STORE | {"t/0": "latest"})
    os.utime(latest / "t" / "0", (LONG_AGO + 9, LONG_AGO + 9))
    partial = make(tmp_path / ".x.zarr.22222222.old", {"t/.zarray": "{}", "t/0": "partial"})
    os.utime(partial / "t" / "0", (LONG_AGO + 99, LONG_AGO + 99))
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "x.zarr", "{}", ZARR, then=fail_with(KeyboardInterrupt))
    assert (tmp_path / "x.zarr" / "t" / "0").read_text() == "latest"
    assert names(tmp_path) == [".x.zarr.00000000.old", ".x.zarr.22222222.old", "x.zarr"]
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert names(tmp_path) == ["x.zarr"]


def test_an_old_store_stays_as_long_as_there_is_no_new_one(tmp_path):
    """What is in its place may be another's, or empty."""
    make(tmp_path / "x.zarr", {})
    make(tmp_path / ".x.zarr.0123abcd.old")
    before = snapshot(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "x.zarr", "{}", ZARR, then=fail_with(KeyboardInterrupt))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        ".y.zarr.0123abcd.tmp",
        ".x.zarr.0123abcd.bak",
        ".x.zarr.0123abc.tmp",
        ".x.zarr.0123ABCD.tmp",
        ".x.zarr.0123abcd.tmp.old",
        ".a.x.zarr.0123abcd.old",
        "x.zarr.0123abcd.tmp",
        "x.zarr.old",
    ],
)
def test_stores_of_similar_names_are_left_alone(tmp_path, name):
    make(tmp_path / name)
    before = snapshot(tmp_path)
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert before.items() <= snapshot(tmp_path).items()


@pytest.mark.parametrize("suffix", ["tmp", "old"])
@pytest.mark.parametrize(
    "files",
    [
        {},
        {"0": "a chunk of what?", "1": ""},
        {"thesis.txt": "ten years"},
        STORE | {"thesis.txt": "ten years"},
        STORE | {"t/thesis.txt": "ten years"},
        STORE | {"group/deep/.notes": "ten years"},
        STORE | {"t/0.bak": "ten years"},
        STORE | {"photos/1.jpg": "ten years"},
        STORE | {"t/0.0123.partial": "ten years"},
    ],
    ids=lambda files: ",".join(sorted(set(files) - set(STORE))),
)
def test_folders_with_anything_else_in_them_are_left_alone(tmp_path, files, suffix):
    folder = make(tmp_path / f".x.zarr.0123abcd.{suffix}", files)
    before = snapshot(folder)
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert snapshot(folder) == before
    assert snapshot(tmp_path / "x.zarr") == {".zgroup": b"{}"}


@pytest.mark.parametrize("suffix", ["tmp", "old"])
def test_links_are_left_alone_and_so_is_what_they_lead_to(tmp_path, suffix):
    theirs = make(tmp_path / "theirs")
    link = tmp_path / f".x.zarr.0123abcd.{suffix}"
    link.symlink_to(theirs)
    inside = make(tmp_path / f".x.zarr.89abcdef.{suffix}")
    (inside / "group").symlink_to(theirs)
    (inside / "1").symlink_to(theirs / "t" / "0")
    before = snapshot(theirs), snapshot(inside)
    made_long_ago(tmp_path)
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert link.is_symlink()
    assert (snapshot(theirs), snapshot(inside)) == before


@pytest.mark.parametrize("what", ["folder", "file"])
def test_links_within_a_store_make_it_anothers(tmp_path, what):
    theirs = make(tmp_path / "theirs")
    inside = make(tmp_path / ".x.zarr.89abcdef.tmp")
    (inside / "1").symlink_to(theirs / "t" if what == "folder" else theirs / "t" / "0")
    made_long_ago(inside)
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert snapshot(inside).keys() == {*STORE, "t", "1"}


def test_pipes_within_a_store_make_it_anothers(tmp_path):
    inside = make(tmp_path / ".x.zarr.89abcdef.tmp")
    os.mkfifo(inside / "1")
    made_long_ago(inside)
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert (inside / "1").exists()


@pytest.mark.parametrize("recent", [".", "t/0", "t"])
def test_a_folder_that_was_written_to_just_now_is_left_alone(tmp_path, recent):
    """Its writer may be one that holds no lock, as earlier ones did not."""
    folder = make(tmp_path / ".x.zarr.0123abcd.tmp")
    os.utime(folder / recent)
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert snapshot(folder).keys() == {*STORE, "t"}


@pytest.mark.parametrize("suffix", ["tmp", "old"])
def test_what_a_writer_at_work_may_need_is_left_alone(tmp_path, suffix):
    """However slow it is, and whether or not its result is moved away at the moment."""
    place = tmp_path / "x.zarr"
    command = [sys.executable, "-c", WRITER, place, "alive"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "writing\n"
        make(tmp_path / f".x.zarr.0123abcd.{suffix}")
        made_long_ago(tmp_path)
        before = snapshot(tmp_path)
        write(place, STORE[".zgroup"], ZARR)
        assert before.items() <= snapshot(tmp_path).items()
        writer.communicate("")
        assert writer.returncode == 0
    assert "another" in (place / ".zgroup").read_text()
    made_long_ago(tmp_path)
    write(place, "{}", ZARR)
    assert names(tmp_path) == ["x.zarr"]


def test_a_killed_store_in_the_middle_of_a_file_is_ours(tmp_path):
    half = {f"zarr.{'0' * 32}.partial": "{", "t/c/0/1": "a", f"t/c/0/2.{'f' * 32}.partial": ""}
    make(tmp_path / ".x.zarr.0123abcd.tmp", half)
    write(tmp_path / "x.zarr", "{}", ZARR)
    assert names(tmp_path) == ["x.zarr"]


def test_files_never_remove_stores(tmp_path):
    folder = make(tmp_path / ".x.zarr.0123abcd.tmp")
    write(tmp_path / "x.zarr")
    assert snapshot(folder).keys() == {*STORE, "t"}
