"""Cases over files: generated ones, and files of every format with altered bytes."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr
from pyarrow import feather, parquet

from bayesring import TensorRing, load
from bayesring.checks import check_level
from bayesring.choosing import choose_likelihood
from bayesring.data.containers import open_container
from bayesring.data.files import read_data, write_table
from bayesring.data.parquet import ParquetRows
from bayesring.fitting import survey_files
from tests.fuzz.hostile import NUMBERS, TEXTS, altered, wrong
from tests.fuzz.memory import TINY
from tests.hostile_models import MUTATIONS, judge

DATA = Path(__file__).parents[1] / "data"
MODELS = sorted(DATA.glob("*.ring"))


def _understood(data: Any, modes: Any = None, value: Any = None) -> None:
    """What is done with the contents of a file before a fit."""
    container = open_container(data, modes, value)
    observed = container.observations
    assert np.isfinite(observed.values).all()
    assert observed.coords.shape == (len(observed.values), len(observed.shape))
    choose_likelihood("auto", observed)


def comma_separated(rng: Random, folder: Path) -> None:
    """CSV with hostile keys: as generated, with altered bytes, compressed."""
    n_keys, n = rng.randrange(2, 4), rng.choice([1, 2, 5, 12])
    names = rng.sample(["a", "b", "c d", 'q"', "x,y", "\u00e9", " s", "n\nl", "=h"], n_keys)
    kinds = [
        lambda: rng.choice(["a", "b", "c"]),
        lambda: rng.choice(TEXTS),
        lambda: str(rng.randrange(5)),
        lambda: rng.choice(["007", "7", "+7", "7.0", "1_000", "\u0663"]),
        lambda: str(rng.choice([2**53 + 1, 2**63 - 1, 2**63, -(2**63)])),
        lambda: f"2001-01-{rng.randrange(1, 29):02}",
        lambda: rng.choice(["1.5", "2.50", "1e3", "NaN"]),
    ]
    makers = [rng.choice(kinds) for _ in names]
    numbers = [lambda: repr(rng.gauss(0, 1)), lambda: repr(rng.choice(NUMBERS)), lambda: ""]
    numbers += [lambda: rng.choice(["1_0", " 1", "1e999", "inf", "x", "NA", "0x10", "1,5"])]
    weights = rng.choice([[6, 1, 2, 0], [6, 1, 2, 1]])
    rows = [[*(make() for make in makers), rng.choices(numbers, weights)[0]()] for _ in range(n)]
    text = io.StringIO(newline="")
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    ends = rng.choice(["\n", "\n", "\r\n", "\r"])
    writer = csv.writer(text, quoting=quoting, lineterminator=ends)
    writer.writerows([[*names, "v"], *rows])
    encoding = rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])
    content = text.getvalue().encode(encoding, "replace")
    harmed = rng.randrange(3) == 0
    ending = rng.choice([".csv", ".csv", ".csv.gz", ".CSV.GZ"])
    if harmed:
        content = altered(rng, content)
    if ending.lower().endswith(".gz"):
        content = gzip.compress(content, 1)
        if harmed:
            content = altered(rng, content)
    path = folder / f"table{ending}"
    path.write_bytes(content)
    if rng.randrange(4) == 0:
        modes, value = rng.choice([None, names, ["v"]]), rng.choice([None, "v", "w", names[0]])
        table = read_data(str(path), modes, value)
        _understood(table, modes, value)
        return
    table = read_data(str(path), names, "v")
    if not harmed and encoding.startswith("utf-8"):
        _check_round_trip(table, names, rows, folder)
    _understood(table, names, "v")


def _check_round_trip(table: Any, names: list[str], rows: list[list[str]], folder: Path) -> None:
    """Keys are written as they were read, in their order; values as the same numbers."""
    path = folder / "written.csv"
    write_table(str(path), table)
    with path.open(newline="", encoding="utf-8") as file:
        header, *found = csv.reader(file)
    assert header == [*names, "v"]
    assert [row[:-1] for row in found] == [row[:-1] for row in rows]
    for after, before in zip(found, rows, strict=True):
        assert not after[-1] or float(after[-1]) == float(before[-1])


@cache
def valid(ending: str) -> list[bytes]:
    """Whole files of a format, to be altered."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"data{ending}"
        found = []
        for write in WRITERS[ending](rng):
            write(path)
            found.append(path.read_bytes())
        return found


def _table(rng: np.random.Generator, n: int = 60) -> Any:
    texts = np.array(["s0", "s1", "\u00e9", "long text " * 5])
    return pa.table(
        {
            "a": texts[rng.integers(0, 4, n)],
            "b": rng.integers(0, 3, n),
            "c": np.arange("2001-01-01", "2001-01-05", dtype="M8[D]")[rng.integers(0, 4, n)],
            "v": pa.array(rng.standard_normal(n), mask=rng.random(n) < 0.2),
        }
    )


def _array(rng: np.random.Generator) -> np.ndarray:
    array = rng.standard_normal((4, 3, 2))
    array[0, 1] = np.nan
    return array


def _labelled(rng: np.random.Generator) -> xr.Dataset:
    return xr.DataArray(
        _array(rng), dims=["a", "b", "c"], coords={"a": list("wxyz")}, name="v"
    ).to_dataset()


WRITERS: dict[str, Callable[[np.random.Generator], list[Callable[[Path], Any]]]] = {
    ".parquet": lambda rng: [
        lambda path, how=how: parquet.write_table(_table(rng), path, **how)
        for how in (
            {"compression": "none"},
            {"compression": "snappy", "row_group_size": 20},
            {"compression": "zstd", "use_dictionary": False},
            {"compression": "gzip", "data_page_version": "2.0"},
        )
    ],
    ".arrow": lambda rng: [
        lambda path, how=how: feather.write_feather(_table(rng), path, compression=how)
        for how in ("uncompressed", "lz4", "zstd")
    ],
    ".npy": lambda rng: [
        lambda path, dtype=dtype: np.save(path, np.nan_to_num(_array(rng)).astype(dtype))
        for dtype in ("f8", "f4", ">i4", "?")
    ],
    ".npz": lambda rng: [
        lambda path: np.savez(path, v=_array(rng)),
        lambda path: np.savez_compressed(path, v=_array(rng)),
    ],
    ".nc": lambda rng: [lambda path: _labelled(rng).to_netcdf(path, engine="h5netcdf")],
}


def altered_file(ending: str) -> Callable[[Random, Path], None]:
    """Cases over files of one format."""

    def case(rng: Random, folder: Path) -> None:
        path = folder / f"altered{ending}"
        content = rng.choice(valid(ending))
        path.write_bytes(altered(rng, content) if rng.randrange(50) else content)
        name = rng.choice([None, None, "v", "w"]) if ending not in (".parquet", ".arrow") else None
        data = read_data(str(path), None, name)
        if ending in (".parquet", ".arrow"):
            _understood(data, ["a", "b", "c"], "v")
        else:
            _understood(data)

    return case


def streamed_parquet(rng: Random, folder: Path) -> None:
    """Parquet data as online EM reads them: keys and values of every row, never all at once."""
    path = folder / "altered.parquet"
    path.write_bytes(altered(rng, rng.choice(valid(".parquet"))))
    rows = ParquetRows(str(path), ["a", "b", "c"], "v", 1)
    survey = survey_files(rows, False)
    assert survey.n_observed <= survey.n_rows
    assert all(size >= 1 for size in survey.shape)


def zipped_arrays(rng: Random, folder: Path) -> None:
    """NPZ archives: altered bytes, or altered members under a right checksum."""
    if rng.randrange(2):
        altered_file(".npz")(rng, folder)
        return
    path = folder / "members.npz"
    with zipfile.ZipFile(path, "w", rng.choice([0, 8])) as archive:
        for name in rng.sample(["v.npy", "w.npy", "../x.npy", "t.txt"], rng.choice([1, 1, 2])):
            archive.writestr(name, altered(rng, rng.choice(valid(".npy"))))
    _understood(read_data(str(path), None, rng.choice([None, "v", "t.txt"])))


@cache
def valid_store() -> Path:
    """A Zarr store to be altered."""
    path = Path(tempfile.mkdtemp()) / "store.zarr"
    _labelled(np.random.default_rng(0)).to_zarr(path, zarr_format=2, consolidated=True)
    return path


def zarr_store(rng: Random, folder: Path) -> None:
    """Zarr stores with altered, removed or exchanged files."""
    path = folder / "store.zarr"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(valid_store(), path)
    for _ in range(rng.choice([1, 1, 2])):
        file = rng.choice(sorted(each for each in path.rglob("*") if each.is_file()))
        choice = rng.randrange(6)
        if choice == 0:
            file.unlink()
        elif choice == 1:
            file.write_bytes(rng.choice([b"", b"{}", b"[]", b"null", b'{"shape": [1e9]}']))
        else:
            file.write_bytes(altered(rng, file.read_bytes()))
    _understood(read_data(str(path), None, rng.choice([None, None, "v"])))


def model_file(rng: Random, folder: Path) -> None:
    """Model files that may have been made to mislead."""
    generator = np.random.default_rng(rng.getrandbits(32))
    path = folder / "altered.ring"
    path.write_bytes(rng.choice(MUTATIONS)(generator, rng.choice(MODELS).read_bytes()))
    found = judge(path, generator.integers(0, 1000, (5, 3)))
    assert found in ("works", "refused"), found
    if found == "refused":
        refuse()


def refuse() -> None:
    """Raise a refusal, after one that was judged already."""
    check_level(0)


@cache
def interrupted() -> tuple[Path, np.ndarray]:
    """The checkpoint of a fit, and what the fit predicted."""
    folder = Path(tempfile.mkdtemp()) / "checkpoint"
    return folder, _checkpointed(folder)


def _checkpointed(folder: Path) -> np.ndarray:
    X = np.argwhere(np.ones((3, 3, 2)))
    ring = TensorRing(**(TINY | {"chains": 2}))
    ring.fit(X, X.sum(axis=1) + 0.5, checkpoint=folder, checkpoint_every=0)
    return np.asarray(ring.predict(X))


def checkpoint(rng: Random, folder: Path) -> None:
    """Checkpoint folders with altered files: a fit goes on with the same bits, or says why not."""
    whole, expected = interrupted()
    path = folder / "checkpoint"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    for _ in range(rng.choice([1, 1, 2, 4])):
        file = rng.choice(sorted(each for each in path.iterdir() if each.name != "lock"))
        choice = rng.randrange(6)
        if choice == 0:
            file.unlink()
        elif choice == 1:
            other = rng.choice(sorted(path.iterdir()))
            file.write_bytes(other.read_bytes())
        else:
            file.write_bytes(altered(rng, file.read_bytes()))
        if not any(each.name != "lock" for each in path.iterdir()):
            break
    assert np.array_equal(_checkpointed(path), expected)


def unknown_paths(rng: Random, folder: Path) -> None:
    """Paths that are no files, and arguments that are no paths."""
    (folder / "empty.csv").write_bytes(b"")
    (folder / "folder.csv").mkdir(exist_ok=True)
    name = rng.choice(["empty.csv", "folder.csv", "none.csv", "x.txt", "", ".csv", "a\0.csv"])
    path: Any = rng.choice([str(folder / name), folder / name, wrong(rng)])
    if rng.randrange(2):
        load(path)
    elif isinstance(path, str):
        read_data(path)
