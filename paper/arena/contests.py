"""Data sets of the arena: what is scored, what others have published, what suits the trivial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring import datasets
from bayesring.datasets import Dataset
from bayesring.datasets.dataset import N_FOLDS
from bayesring.datasets.traffic import MASKS
from bayesring.model.types import IntArray
from paper import published

Recoding = Mapping[str, Callable[[NDArray[Any]], IntArray]]
"""Functions of the labels of some modes; levels with the same result belong together."""


def together(labels: NDArray[Any]) -> IntArray:
    """All levels in one group."""
    return np.zeros(len(labels), dtype=np.int64)


def weekday(days: NDArray[Any]) -> IntArray:
    """0 for Monday to 6 for Sunday."""
    return (days.astype("M8[D]").astype(np.int64) + 3) % 7


def hour_of_day(hours: NDArray[Any]) -> IntArray:
    """0 to 23."""
    return hours.astype("M8[h]").astype(np.int64) % 24


def hour_of_week(hours: NDArray[Any]) -> IntArray:
    """0 to 167, from Monday on."""
    return 24 * weekday(hours) + hour_of_day(hours)


def month_of_year(months: NDArray[Any]) -> IntArray:
    """0 to 11."""
    return months.astype("M8[M]").astype(np.int64) % 12


class Contest(NamedTuple):
    """A data set with what is known about it."""

    load: Callable[[], Dataset]
    scores: tuple[str, ...]
    modes: tuple[str, ...]
    """Modes along which slices are compared."""
    source: str
    """Where the published figures come from."""
    printed: Mapping[str, tuple[str, ...]]
    """Method: figures as printed, one text per column, with " / " between scores."""
    masks: tuple[str, ...] = ()
    """Columns of the table; without any, the mean over five folds or seeds is the only one."""
    lines: tuple[str, ...] = ()
    """Modes along which series are interpolated."""
    plane: tuple[str, str] | None = None
    """Modes whose levels span a plane."""
    groups: Mapping[str, tuple[Recoding, ...]] = {}
    """Name: cells that are thought to be alike, and those to turn to where none is known."""
    counts: bool = False
    """Whether the values are counts."""

    def columns(self, name: str) -> dict[str, list[int | str]]:
        """Names of the columns, which name cells as well, with the folds that each is made of."""
        if self.masks:
            return {f"{name} {mask}": [mask] for mask in self.masks}
        return {name: [*range(N_FOLDS)]}


def _paper(name: str, scores: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    best = " / ".join(published.best(name, score).mean for score in scores)
    return {"best of the paper": (best,)}


PAPER = "Tao, Tanaka and Zhao (2023), tables 1 and 2; the best of each column."
NOTEBOOKS = "The notebooks of the repository of the data, with the same masks."
ERRORS, SHARES, IMAGE = ("RMSE", "MAE"), ("RMSE", "MAPE"), ("PSNR", "SSIM")
SLOTS_OF_DAYS: dict[str, tuple[Recoding, ...]] = {
    "slot": ({"day": together},),
    "slot and weekday": ({"day": weekday}, {"day": together}),
}
SLOTS_OF_HOURS: dict[str, tuple[Recoding, ...]] = {
    "slot": ({"hour": hour_of_day},),
    "slot and weekday": ({"hour": hour_of_week}, {"hour": hour_of_day}),
}
CONTESTS = {
    "Server room": Contest(
        datasets.load_server_room,
        ERRORS,
        ("cooling", "power", "location", "time"),
        "The papers on SONATA, NONFAT and SFTL; their MAE is not at hand.",
        {"SONATA": (".115 / -",), "NONFAT": (".117 / -",), "SFTL": (".161 / -",)},
        lines=("time",),
        groups={"mean of the series": ({"time": together},)},
    ),
    "Birmingham": Contest(
        datasets.load_birmingham,
        SHARES,
        ("park", "day", "half_hour"),
        NOTEBOOKS,
        {
            "BGCP": ("25.57 / .077", "27.89 / .084", "74.29 / .122"),
            "BATF": ("25.21 / .073", "29.74 / .084", "113.0 / .177"),
            "BTMF": ("18.19 / .034", "25.90 / .062", "69.53 / .134"),
        },
        MASKS,
        ("day", "half_hour"),
        ("day", "half_hour"),
        SLOTS_OF_DAYS,
        counts=True,
    ),
    "Hangzhou": Contest(
        datasets.load_hangzhou,
        SHARES,
        ("station", "day", "slot"),
        NOTEBOOKS,
        {
            "BGCP": ("33.68 / .198", "37.73 / .202", "76.11 / .214"),
            "BATF": ("44.88 / .199", "38.83 / .205", "40.49 / .212"),
            "BTMF": ("30.03 / .240", "35.25 / .252", "46.01 / .259"),
            "TRMF": ("36.63 / .232", "41.15 / -", "37.86 / .260"),
            "HaLRTC": ("31.81 / .190", "36.19 / .201", "53.15 / .215"),
        },
        MASKS,
        ("day", "slot"),
        ("day", "slot"),
        SLOTS_OF_DAYS,
        counts=True,
    ),
    "NYC": Contest(
        datasets.load_nyc,
        SHARES,
        ("origin", "destination", "hour"),
        NOTEBOOKS,
        {
            "BGCP": ("4.842 / .526", "- / -", "- / -"),
            "BATF": ("4.904 / .493", "5.119 / -", "4.863 / -"),
            "BTMF": ("4.590 / .443", "4.812 / .456", "4.772 / .448"),
            "HaLRTC": ("6.844 / -", "8.129 / -", "7.030 / -"),
        },
        MASKS,
        ("hour",),
        groups=SLOTS_OF_HOURS,
        counts=True,
    ),
    "USHCN": Contest(
        datasets.load_ushcn,
        ERRORS,
        ("variable", "place", "month"),
        PAPER,
        _paper("USHCN", ERRORS),
        lines=("month",),
        groups={"slot": ({"month": month_of_year},)},
    ),
    "Indian Pines": Contest(
        datasets.load_indian_pines,
        IMAGE,
        ("row", "column", "band"),
        PAPER,
        _paper("Indian Pines", IMAGE),
        lines=("row", "column", "band"),
        plane=("row", "column"),
        groups={"mean of the pixel": ({"band": together},)},
    ),
    "Alog": Contest(
        datasets.load_alog, ERRORS, ("user", "action", "resource"), PAPER, _paper("Alog", ERRORS)
    ),
}
