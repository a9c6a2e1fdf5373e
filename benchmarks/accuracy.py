"""Accuracy of the defaults on the paper's six data sets, into docs/accuracy and the README.

Cells that `docs/accuracy` has are not worked out again. Name data sets to work on these alone.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from bayesring.convergence import DiagnosticWarning
from bayesring.experiments import accuracy

FOLDER, README = Path("docs/accuracy"), Path("README.md")
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"


def main(names: list[str]) -> None:
    """Work out what is missing, print the table, bring the README up to date."""
    warnings.simplefilter("ignore", DiagnosticWarning)
    accuracy.run(FOLDER, names or None)
    table = accuracy.table(FOLDER)
    print(table)
    before, rest = README.read_text().split(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{table}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
