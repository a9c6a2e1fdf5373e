"""Accuracy of the defaults beside SMURFF, into docs/accuracy and the README.

The cells are those of `bayesring reproduce`; what `docs/accuracy` has is not worked out again. Name
data sets to work on these alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bayesring.experiments import accuracy
from bayesring.experiments.cells import run_cells
from bayesring.experiments.methods import OURS, SMURFF

OUT, README = Path("docs"), Path("README.md")
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"


def main(names: list[str]) -> None:
    """Work out what is missing, print the table, bring the README up to date."""
    outcome = run_cells(accuracy.make_cells(names or None, [OURS, SMURFF]), OUT)
    table = accuracy.table(OUT)
    print(table, *outcome.unavailable, *outcome.failed, sep="\n")
    before, rest = README.read_text().split(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{table}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
