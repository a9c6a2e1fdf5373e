"""Write a Parquet data set of any length: a planted ring of rank 3 plus noise.

    python benchmarks/make_stream.py stream.parquet --rows 100_000_000
    python benchmarks/make_stream.py stream --rows 100_000_000 --files 10

The columns are described in `bayesring.experiments.stream`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bayesring.experiments.stream import make_stream

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="file, or folder if there are several files")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--shape", type=int, nargs="+", default=[1000, 1000, 100])
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=1)
    given = parser.parse_args()
    make_stream(given.target, given.rows, tuple(given.shape), given.noise, given.seed, given.files)
