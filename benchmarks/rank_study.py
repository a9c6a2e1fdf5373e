"""The paper's rank study, into results/rank, docs/rank.json and docs/images/rank.png.

Runs that `results/rank` has are not repeated. All of it takes about half an hour on two cores.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from bayesring.experiments import rank_study

FOLDER = Path("results/rank")


def main() -> None:
    """Perform what is missing, print the table, keep summary and picture with the docs."""
    runs = rank_study.all_runs()
    done = rank_study.run_study(FOLDER, runs, report=lambda run, found: print(run, found.rank))
    summary = rank_study.write_study(FOLDER, done)
    print(rank_study.table(summary))
    shutil.copy(FOLDER / "summary.json", "docs/rank.json")
    shutil.copy(FOLDER / "rank.png", "docs/images/rank.png")


if __name__ == "__main__":
    main()
