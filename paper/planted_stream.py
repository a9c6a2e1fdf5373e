"""Generate a Parquet data set of any length in bounded memory: a ring of rank 3 plus noise.

    python -m paper.planted_stream stream.parquet --rows 100_000_000
    python -m paper.planted_stream stream --rows 100_000_000 --files 10

Columns `i`, `j`, `k`, ... (int32) are the keys, `value` (float32) is the value: an entry of the
ring with variance about one, plus normal noise. Cells are drawn at random. The same arguments give
the same rows. A single file should have the extension .parquet.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from bayesring.checks import import_pyarrow
from bayesring.engine.threads import ONE_THREAD
from bayesring.model import ring
from bayesring.model.types import FloatArray, RingSize

GROUP = 1_000_000
"""Maximum number of rows generated at a time, and of rows in a row group."""
RANK = 3
NAMES = "ijklmnopq"


def planted_cores(shape: tuple[int, ...], seed: int) -> list[FloatArray]:
    """Random cores of a ring whose entries have variance one."""
    rng = np.random.default_rng(seed)
    size = RingSize(1, (RANK,) * len(shape))
    return [
        size.spread(mode) * rng.standard_normal(size.core_shape(mode, n_slices))
        for mode, n_slices in enumerate(shape)
    ]


def make_rows(cores: list[FloatArray], n: int, noise: float, seed: int, group: int) -> Any:
    """One row group, an Arrow table."""
    rng = np.random.default_rng([seed, group])
    shape = [len(core) for core in cores]
    columns = np.stack([rng.integers(0, size, n, dtype=np.int32) for size in shape])
    values = ONE_THREAD.entries(ring.flatten(cores), columns)
    values += noise * rng.standard_normal(n)
    keys = dict(zip(NAMES, columns, strict=False))
    return import_pyarrow().table({**keys, "value": values.astype(np.float32)})


def make_stream(
    target: Path,
    rows: int,
    shape: tuple[int, ...] = (1000, 1000, 100),
    noise: float = 0.5,
    seed: int = 0,
    files: int = 1,
) -> None:
    """Write `rows` rows to one file, or to a folder of several."""
    import_pyarrow()
    from pyarrow import parquet

    cores = planted_cores(shape, seed)
    size = min(GROUP, -(-rows // files))
    groups = [min(size, rows - begin) for begin in range(0, rows, size)]
    if files > 1:
        target.mkdir(parents=True)
    writer: Any = None
    current = -1
    for group, n in enumerate(track(groups, description="row groups")):
        table = make_rows(cores, n, noise, seed, group)
        if group * files // len(groups) > current:
            if writer is not None:
                writer.close()
            current = group * files // len(groups)
            path = target / f"part-{current:05}.parquet" if files > 1 else target
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=size)
    if writer is not None:
        writer.close()


def main() -> None:
    """Parse and write."""
    parser = argparse.ArgumentParser(description="Write a planted ring of rank 3 plus noise.")
    parser.add_argument("target", type=Path, help="file, or folder if there are several files")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--shape", type=int, nargs="+", default=[1000, 1000, 100])
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=1)
    given = parser.parse_args()
    make_stream(given.target, given.rows, tuple(given.shape), given.noise, given.seed, given.files)


if __name__ == "__main__":
    main()
