"""Small files that hold enormous ones are refused before memory is taken; ordinary ones are not."""

from __future__ import annotations

import gzip
import re
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr
from pyarrow import feather, parquet

from bayesring.data import expanding
from bayesring.data.files import read_data
from tests.fuzz.commands import call

MIB = 2**20
REFUSED = (
    r"^[^ ]*{name} has 0\.[0-9] MiB, but expands to [0-9,]+ MiB or more, while 300 times as much "
    r"as the file, or 1 MiB, are allowed; if it is what it should be, {instead}\.$"
)


@pytest.fixture
def strict(monkeypatch):
    """Files that expand to over a megabyte are suspected."""
    monkeypatch.setattr(expanding, "UNSUSPECTED", MIB)
    monkeypatch.setattr(expanding, "PIECE", MIB // 4)


def constant_text(path, size):
    with gzip.open(path, "wb") as file:
        file.write(b"a,b,v\n")
        for _ in range(size // MIB):
            file.write(b"x,y,0\n" * (MIB // 6))


def constant_table(n, text="x"):
    return pa.table({"a": np.full(n, text), "b": np.zeros(n, int), "v": np.zeros(n)})


def zeros(path, n):
    xr.DataArray(np.zeros((n, 8)), dims=["a", "b"], name="v").to_netcdf(
        path, engine="h5netcdf", encoding={"v": {"zlib": True, "complevel": 9}}
    )


def workbook(path, size):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * size)


N = 4 * MIB
WRITERS = {
    "x.csv.gz": (lambda path: constant_text(path, N), "unpack it first"),
    "x.npz": (
        lambda path: np.savez_compressed(path, v=np.zeros((N // 8, 1))),
        "save it uncompressed, as numpy.savez does",
    ),
    "x.parquet": (
        lambda path: parquet.write_table(constant_table(N // 8), path),
        "read it with another library and save it as CSV",
    ),
    "x.arrow": (
        lambda path: feather.write_feather(
            pa.table({"a": np.zeros(N), "v": np.ones(N)}), path, compression="zstd"
        ),
        "save it without compression",
    ),
    "x.feather": (
        lambda path: feather.write_feather(
            pa.table({"a": constant_table(N)["a"].dictionary_encode(), "v": np.zeros(N)}),
            path,
            compression="zstd",
        ),
        "save it without compression",
    ),
    "x.nc": (lambda path: zeros(path, N // 8), "save it without compression"),
    "x.xlsx": (lambda path: workbook(path, N), "save it as CSV"),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.usefixtures("strict")
def test_contents_far_larger_than_their_file_are_refused(name, tmp_path):
    write, instead = WRITERS[name]
    write(tmp_path / name)
    with pytest.raises(ValueError, match=REFUSED.format(name=name, instead=instead)):
        read_data(str(tmp_path / name))


@pytest.mark.usefixtures("strict")
def test_a_long_text_for_many_rows_is_stored_once(tmp_path):
    path = tmp_path / "x.parquet"
    keys = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), ["k" * 5000])
    table = pa.table({"a": keys, "v": np.random.default_rng(0).random(20_000)})
    parquet.write_table(table.cast(pa.schema({"a": pa.string(), "v": pa.float64()})), path)
    assert path.stat().st_size < 2 * MIB // 10
    with pytest.raises(ValueError, match=r"expands to 95 MiB or more"):
        read_data(str(path))


@pytest.mark.usefixtures("strict")
def test_nothing_is_expanded_beyond_the_limit(tmp_path):
    constant_text(tmp_path / "x.csv.gz", 100 * MIB)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"expands to [34][0-9] MiB or more"):
        read_data(str(tmp_path / "x.csv.gz"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * MIB


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("command", ["complete", "fit"])
def test_commands_refuse_in_one_sentence(command, tmp_path):
    source, target = tmp_path / "x.csv.gz", tmp_path / ("y.csv" if command == "complete" else "y")
    constant_text(source, N)
    words = [command, str(source), "-o", str(target), "--modes", "a,b", "--value", "v"]
    code, said = call(words)
    assert code == 2
    assert len(re.findall(r"error: .* MiB or more, .* unpack it first\.$", said.strip())) == 1
    assert not target.exists()


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_sizes_that_arrow_declares(compression, tmp_path, monkeypatch):
    """The lengths of all buffers, whatever their compression."""
    rng = np.random.default_rng(0)
    table = constant_table(MIB).append_column("r", pa.array(rng.standard_normal(MIB)))
    feather.write_feather(table, tmp_path / "x.arrow", compression=compression)
    seen = []
    monkeypatch.setattr(expanding, "check_expanded", lambda _, size, __: seen.append(size))
    expanding.check_arrow(str(tmp_path / "x.arrow"))
    assert table.nbytes <= seen[0] <= 1.01 * table.nbytes


@pytest.mark.usefixtures("strict")
def test_ordinary_files_are_read(tmp_path):
    """Ratios of 5 to 200, and more where nothing is large."""
    rng = np.random.default_rng(0)
    n = 3 * MIB // 8
    lines = [
        f"s{key:04},{value:.2f}\n"
        for key, value in zip(rng.integers(0, 50, n), rng.random(n), strict=True)
    ]
    with gzip.open(tmp_path / "x.csv.gz", "wt") as file:
        file.writelines(["a,v\n", *lines])
    assert read_data(str(tmp_path / "x.csv.gz"), ["a"], "v").num_rows == n
    table = constant_table(n).append_column("r", pa.array(np.round(rng.random(n), 2)))
    parquet.write_table(table, tmp_path / "x.parquet")
    feather.write_feather(table, tmp_path / "x.arrow", compression="zstd")
    for name in ("x.parquet", "x.arrow"):
        assert read_data(str(tmp_path / name)).equals(table)
    np.savez_compressed(tmp_path / "x.npz", v=np.zeros(10_000), w=np.zeros(2 * MIB))
    assert len(read_data(str(tmp_path / "x.npz"), value="v")) == 10_000
    np.savez_compressed(tmp_path / "small.npz", v=np.zeros(100_000))
    assert 300 * (tmp_path / "small.npz").stat().st_size < 800_000
    assert len(read_data(str(tmp_path / "small.npz"))) == 100_000
