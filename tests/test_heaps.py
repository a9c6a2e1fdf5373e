"""Texts of HDF5 files that are not there: found before HDF5 clears 4 GiB of memory for each."""

from __future__ import annotations

import time
import zlib

import h5py
import numpy as np
import pytest
import xarray as xr

from bayesring.data.files import read_data
from bayesring.data.heaps import REFERENCE, check_heaps

TEXTS = ["w", "xx", "yyy", "zzzz"]
ABSENT = r"refers to a text of 4,294,967,295 bytes, but the file has [0-9,]+"
PLAIN, COMPRESSED = {}, {"zlib": True, "shuffle": True, "chunksizes": (2,)}


def written(path, encoding, n_notes=1):
    """A file with texts of any length as labels and in attributes."""
    array = xr.DataArray(np.zeros((4, 2)), dims=["a", "b"], coords={"a": TEXTS}, name="v")
    array.attrs = {f"note {n}": ["one", "two"] for n in range(n_notes)}
    array.to_netcdf(path, engine="h5netcdf", encoding={"a": encoding})
    return path.read_bytes()


@pytest.mark.parametrize("encoding", [PLAIN, COMPRESSED], ids=["plain", "compressed"])
@pytest.mark.parametrize("n_notes", [1, 12])
def test_intact_files_are_read(encoding, n_notes, tmp_path):
    written(tmp_path / "x.nc", encoding, n_notes)
    found = read_data(str(tmp_path / "x.nc"))
    assert found.coords["a"].values.tolist() == TEXTS
    assert list(found.attrs["note 0"]) == ["one", "two"]


@pytest.mark.parametrize("number", range(4))
def test_labels_that_are_not_there(number, tmp_path):
    path = tmp_path / "x.nc"
    content = bytearray(written(path, PLAIN))
    with h5py.File(path) as file:
        place = file["a"].id.get_offset() + number * REFERENCE.itemsize
    content[place : place + 4] = b"\xff" * 4
    path.write_bytes(content)
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=rf"x\.nc is not a \.nc file: '/a' {ABSENT}\.$"):
        read_data(str(path))
    assert time.perf_counter() - begin < 10


def test_compressed_labels_that_are_not_there(tmp_path):
    path = tmp_path / "x.nc"
    heap = written(path, COMPRESSED).index(b"GCOL")
    asked = np.array([(1, heap, 1), (2**32 - 1, heap, 2)], REFERENCE)
    with h5py.File(path, "r+") as file:
        file["a"].id.write_direct_chunk((2,), zlib.compress(asked.tobytes()), filter_mask=1)
    with pytest.raises(ValueError, match=f"'/a' {ABSENT}"):
        read_data(str(path))


@pytest.mark.parametrize("name", ["DIMENSION_LIST", "note 0"])
def test_attributes_that_are_not_there(name, tmp_path):
    """In headers without a checksum, as older versions write them."""
    path = tmp_path / "x.nc"
    with h5py.File(path, "w") as file:
        file["a"] = np.zeros(2)
        file["a"].make_scale("a")
        file["v"] = np.zeros(2)
        file["v"].dims[0].attach_scale(file["a"])
        file["v"].attrs["note 0"] = np.array(["one", "two"], h5py.string_dtype())
    check_heaps(path)
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL").to_bytes(8, "little")
    place = content.index(heap, content.index(name.encode() + b"\0")) - 4
    content[place : place + 4] = b"\xff" * 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"'{name}' {ABSENT}"):
        check_heaps(path)


def test_lists_that_end_early(tmp_path):
    """HDF5 goes on after what is said to be free, and never ends where nothing is."""
    path = tmp_path / "x.nc"
    content = bytearray(written(path, PLAIN))
    heap = content.index(b"GCOL")
    for place in range(heap + 16, heap + 4096):
        rest = (heap + 4096 - place).to_bytes(8, "little")
        if content[place : place + 16] == bytes(8) + rest:
            content[place + 9] = 0
            break
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"the texts at byte [0-9,]+ are damaged"):
        check_heaps(path)


def test_other_files_pass(tmp_path):
    for content in (b"", b"CDF\x01 an older format", b"\x89HDF\r\n\x1a\n cut off"):
        (tmp_path / "x.nc").write_bytes(content)
        check_heaps(tmp_path / "x.nc")
    with h5py.File(tmp_path / "x.nc", "w", userblock_size=512) as file:
        file["texts"] = TEXTS
        file.create_dataset("none yet", (3,), h5py.string_dtype())
    check_heaps(tmp_path / "x.nc")
