"""Cells of the arena: one data set, mask or fold, and method each, kept in one JSON file."""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import numpy as np

from bayesring import metrics
from bayesring.data.writing import replacing
from bayesring.model.types import FloatArray, Observations
from bayesring.posterior.convergence import DiagnosticWarning
from paper.accuracy import N_CHECKED
from paper.arena import rolling
from paper.arena.contests import CONTESTS
from paper.arena.rivals import BY_VALUES, Entrant, RivalSetting, rivals
from paper.arena.trivial import Known
from paper.contenders import OURS, SMURFF
from paper.results_store import CellKey, Provenance, Result, ResultsStore, alone_in
from paper.runner import ResultCell
from paper.tasks import SCORES, TASKS

STUDY = "arena"
COSTS = {SMURFF: 200.0, OURS: 400.0, BY_VALUES: 800.0}
"""Approximate seconds per fit; the others take a few."""


class JsonStore(ResultsStore):
    """Results of a study in one JSON file, one line per cell."""

    def path(self, study: str) -> Any:
        """The file of a study."""
        return self.folder / f"{study}.json"

    def load(self, study: str, key: CellKey) -> Result | None:
        """Result of a cell, or None if it is not computed yet."""
        return self._rows(study).get("/".join(key))

    def keep(self, study: str, key: CellKey, result: Result, source: Provenance) -> None:
        """Add a line, or replace the one with the same name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with alone_in(self.folder), replacing(self.path(study)) as temporary:
            rows = self._rows(study) | {"/".join(key): result | source._asdict()}
            lines = [f"{json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows)]
            temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    def _rows(self, study: str) -> dict[str, Result]:
        path = self.path(study)
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def make_cells(quick: bool = False) -> list[ResultCell]:
    """All cells: every trivial method before the slow ones; in a smoke test one of each fold."""
    found = [
        ResultCell(
            STUDY,
            column,
            method,
            str(fold),
            work,
            (name, fold, method, quick),
            1.0 if quick else COSTS.get(method, 1.0),
        )
        for name, contest in CONTESTS.items()
        for column, folds in contest.columns(name).items()
        for method in rivals(contest)
        for fold in (folds[:1] if quick else folds)
        if not is_elsewhere(name, method)
    ]
    found += [
        ResultCell(
            STUDY,
            f"{rolling.NAME} {mask}",
            method,
            "0",
            rolling.work,
            (mask, method, quick),
            1.0 if quick else COSTS.get(method, 1.0),
        )
        for mask in (rolling.MASKS[:1] if quick else rolling.MASKS)
        for method in rolling.forecasters(quick, threads=1)
    ]
    return sorted(found, key=lambda cell: cell.cost)


def is_elsewhere(name: str, method: str) -> bool:
    """Whether `make accuracy` computes the cells of a method on a data set in the same way."""
    return method in (SMURFF, OURS) and name in TASKS


def work(name: str, fold: int | str, method: str, quick: bool, threads: int) -> Result:
    """Fit one method and score it. Test values are read here and nowhere else."""
    contest = CONTESTS[name]
    data = contest.load()
    train, test = data.split(fold)
    seed = fold if isinstance(fold, int) else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        begin = time.perf_counter()
        fitted = rivals(contest)[method](Known(train, data), RivalSetting(seed, threads, quick))
        mean = fitted.predict(test.coords)
        found = {"seed": seed, "seconds": time.perf_counter() - begin, **fitted.described}
        return found | score(contest.scores, fitted, train, test, mean) | covered(fitted, test)


def score(
    scores: tuple[str, ...],
    fitted: Entrant,
    train: Observations,
    test: Observations,
    mean: FloatArray,
) -> Result:
    """Squared errors of the mean; absolute errors of the median, if there is one."""
    if fitted.median is None or not {"MAE", "MAPE"} & {*scores}:
        median = mean
    else:
        median = fitted.median(test.coords)
    found = {}
    for each in scores:
        if each == "MAPE":
            found[each] = float(np.mean(np.abs(test.values - median) / test.values))
        else:
            found[each] = SCORES[each](train, test, median if each == "MAE" else mean)
    return found


def covered(fitted: Entrant, test: Observations) -> Result:
    """Share of some test values within their 90 % intervals."""
    if fitted.interval is None:
        return {}
    some = np.random.default_rng(0).permutation(len(test.values))[:N_CHECKED]
    lower, upper = fitted.interval(test.coords[some])
    return {"coverage": metrics.coverage(test.values[some], lower, upper)}
