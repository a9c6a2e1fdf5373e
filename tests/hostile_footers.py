"""Reads many Parquet files with altered footers: run as a program of its own, which Arrow may end.

One line per file: its number, and for the stream and for the whole table "works", or what was
refused; anything else is a failure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bayesring.data.files import read_data
from bayesring.data.parquet import ParquetRows

MODES = ["text", "number", "day"]


def write(path: Path, n: int = 3000, **settings: object) -> bytes:
    rng = np.random.default_rng(0)
    columns = {
        "text": [f"k{number}" for number in rng.integers(0, 50, n)],
        "number": rng.integers(0, 9, n),
        "day": pa.array(rng.integers(0, 99, n), pa.timestamp("us")),
        "value": rng.normal(size=n),
    }
    parquet.write_table(pa.table(columns), path, row_group_size=1000, **settings)
    return path.read_bytes()


def altered(rng: np.random.Generator, content: bytes) -> bytes:
    """Bits or bytes of the footer changed; now and then its length."""
    changed = bytearray(content)
    end = len(changed) - 8
    begin = end - int.from_bytes(changed[end : end + 4], "little")
    if rng.random() < 0.05:
        changed[end + rng.integers(4)] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    for place in rng.integers(begin, end, rng.integers(1, 4)):
        if rng.random() < 0.7:
            changed[place] ^= 1 << int(rng.integers(8))
        else:
            changed[place : place + 4] = rng.bytes(min(4, end - place))
    return bytes(changed)


def outcome(action, name: str) -> str:
    try:
        action()
    except ValueError as error:
        message = str(error)
        fine = name in message and "\n" not in message and not isinstance(error, UnicodeError)
        return "refused" if fine else f"refused badly: {message}"
    return "works"


def main(seed: int, n: int, folder: str) -> None:
    path = Path(folder) / "altered.parquet"
    sources = [write(path), write(path, store_schema=False, write_page_index=True)]
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        path.write_bytes(altered(rng, sources[number % 2]))
        streamed = outcome(lambda: ParquetRows(path, MODES, "value", 1).survey(), path.name)
        whole = outcome(lambda: read_data(str(path)), path.name)
        sys.stdout.write(f"{number} {streamed} {whole}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
