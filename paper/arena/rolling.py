"""Rolling forecasts of Hangzhou's last seven days, as its published tables make them.

A model learns from the days before. Then, over and over, it forecasts the next slots of all
stations at once, and these become known, as far as the mask shows them. Methods are told of them,
not fitted anew: ours by `fold_in`, which draws the slice of the day that has begun. Every cell of
the seven days that has a value is scored once for each horizon.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring import TensorRing, datasets, metrics
from bayesring.datasets import Dataset
from bayesring.datasets.traffic import shown_cells
from bayesring.model.types import FloatArray, IntArray
from bayesring.posterior.convergence import DiagnosticWarning
from paper.contenders import OURS, QUICK_RING
from paper.results_store import Result

NAME, COMPLETE, LEVEL = "Hangzhou, forecasts", "complete", 0.9
MASKS = (COMPLETE, "RM 40", "NM 40")
HORIZONS = (2, 4, 6)
STEP, AHEAD = min(HORIZONS), max(HORIZONS)
"""Slots between forecasts, and slots of each: the forecasts of one walk serve all horizons."""
WEEK = 7
"""Days that are forecast: the last ones."""
PRINTED = {
    "TRMF": ("30.58 / 32.63 / 33.91", "35.77 / 38.36 / 40.39", "38.63 / 40.42 / 42.64"),
    "BTMF": ("34.72 / 36.01 / 37.52", "- / - / -", "- / - / -"),
}
"""RMSE two, four and six slots ahead, for each mask."""


class Traffic(NamedTuple):
    """Passengers, stations x days x slots, 0 for no value, and which of them may be seen."""

    data: Dataset
    values: FloatArray
    shown: NDArray[np.bool_]

    @property
    def first_day(self) -> int:
        """The first day that is forecast."""
        return int(self.values.shape[1]) - WEEK

    def known(self, day: int, slot: int) -> FloatArray:
        """All that is known before a slot of a day, else NaN; (stations, day + 1, slots)."""
        seen = np.where(self.shown & (self.values > 0), self.values, np.nan)[:, : day + 1]
        seen[:, day, slot:] = np.nan
        return seen

    def origins(self) -> Iterator[tuple[int, int]]:
        """Days and slots before which forecasts are made."""
        _, n_days, n_slots = self.values.shape
        days = range(self.first_day, n_days)
        return ((day, slot) for day in days for slot in range(0, n_slots, STEP))


class Ahead(NamedTuple):
    """A forecast of the next slots of all stations, at most `AHEAD`, (stations, slots)."""

    mean: FloatArray
    interval: tuple[FloatArray, FloatArray] | None = None


Forecaster = Callable[[int, int], Ahead]
"""A forecast from a day and a slot on; it is asked for one after the other."""


def load(mask: str) -> Traffic:
    """The table as a mask shows it."""
    data = datasets.load_hangzhou()
    everything = np.ones(data.shape, dtype=bool)
    shown = everything if mask == COMPLETE else shown_cells(data.shape, mask)
    return Traffic(data, np.nan_to_num(data.tensor), shown)


# ---- The trivial: a guess at the whole day, given what is known before a slot of it.


def same_slot(known: FloatArray, days: slice) -> FloatArray:
    """The mean of every slot on some of the days before, NaN where nothing is known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        return np.asarray(np.nanmean(known[:, :-1][:, days], axis=1))


def usual(known: FloatArray, slot: int) -> FloatArray:
    """The mean of the same slot on earlier days, or all of the station."""
    found = same_slot(known, slice(None))
    return np.where(np.isnan(found), np.nanmean(known, axis=(1, 2))[:, None], found)


def weekly(known: FloatArray, slot: int) -> FloatArray:
    """The mean of the same slot on this weekday, or on all days."""
    found = same_slot(known, slice((known.shape[1] - 1) % WEEK, None, WEEK))
    return np.where(np.isnan(found), usual(known, slot), found)


def last(known: FloatArray, slot: int) -> FloatArray:
    """The last value of the day, or the usual ones before there is any."""
    guess = usual(known, slot)
    for station, today in enumerate(known[:, -1]):
        seen = np.flatnonzero(~np.isnan(today))
        if seen.size:
            guess[station] = today[seen[-1]]
    return guess


def level(known: FloatArray, slot: int) -> FloatArray:
    """What is usual on this weekday, times how busy the last hour was beside it."""
    guess, recent = weekly(known, slot), slice(max(slot - AHEAD, 0), slot)
    today = known[:, -1, recent]
    then = np.where(np.isnan(today), 0.0, guess[:, recent]).sum(axis=1)
    ratio = np.divide(np.nansum(today, axis=1), then, out=np.ones(len(then)), where=then > 0)
    return np.asarray(guess * ratio[:, None])


TRIVIAL: dict[str, Callable[[FloatArray, int], FloatArray]] = {
    "slot": usual,
    "slot and weekday": weekly,
    "last value": last,
    "slot and weekday, times the last hour": level,
}


def simple(guess: Callable[[FloatArray, int], FloatArray], traffic: Traffic) -> Forecaster:
    """A forecaster that guesses."""
    return lambda day, slot: Ahead(guess(traffic.known(day, slot), slot)[:, slot : slot + AHEAD])


# ---- Ours.


class Ring:
    """`TensorRing()` of the first days; days that follow are folded in as far as they are known."""

    def __init__(self, traffic: Traffic, **settings: Any) -> None:
        self._traffic, self._day = traffic, traffic.first_day
        cells, values = observed(traffic.known(self._day - 1, traffic.values.shape[2]))
        positions = dict(traffic.data.positions)
        positions["day"] = positions["day"][: self._day]
        n_stations, _, n_slots = traffic.values.shape
        shape = (n_stations, self._day, n_slots)
        given: dict[str, Any] = {"modes": list(traffic.data.labels), "positions": positions}
        self._ring: Any = TensorRing(progress=False, **settings)
        self._ring.fit(cells, values, shape=shape, **given)

    def __call__(self, day: int, slot: int) -> Ahead:
        """Forecast from a slot of a day on."""
        n_stations, _, n_slots = self._traffic.values.shape
        while self._day < day:  # it has ended, and is as known as it will be
            self._ring = self._folded(self._day, n_slots)
            self._day += 1
        shape = (n_stations, min(AHEAD, n_slots - slot))
        stations, ahead = (index.ravel() for index in np.indices(shape))
        if slot == 0:  # the day after the last
            dawn = np.stack([stations, ahead], axis=1)
            found = self._ring.forecast(1, mode="day", cells=dawn, level=LEVEL)
            mean, low, high = found.mean, found.lower, found.upper
        else:
            cells = np.stack([stations, np.full(stations.size, day), slot + ahead], axis=1)
            now = self._folded(day, slot)
            mean, (low, high) = now.predict(cells), now.predict_interval(cells, LEVEL)
        mean, low, high = (np.reshape(each, shape) for each in (mean, low, high))
        return Ahead(mean, (low, high))

    def _folded(self, day: int, slot: int) -> Any:
        """The model with what is known of a day before a slot."""
        today = self._traffic.known(day, slot)
        today[:, :day] = np.nan
        cells, values = observed(today)
        where = {"day": self._traffic.data.positions["day"][day : day + 1]}
        shape = (today.shape[0], day + 1, today.shape[2])
        return self._ring.fold_in(cells, values, shape=shape, positions=where)


def observed(known: FloatArray) -> tuple[IntArray, FloatArray]:
    """Coordinates and values of what is known."""
    cells = np.argwhere(~np.isnan(known))
    return cells, known[tuple(cells.T)]


# ---- Scores.


def forecasters(quick: bool, threads: int) -> dict[str, Callable[[Traffic], Forecaster]]:
    """All methods, by name."""
    settings: dict[str, Any] = {"random_state": 0, "n_jobs": threads}
    settings |= {"rank": 2} | QUICK_RING if quick else {}
    found: dict[str, Callable[[Traffic], Forecaster]] = {
        name: partial(simple, guess) for name, guess in TRIVIAL.items()
    }
    return found | {OURS: partial(Ring, **settings)}


def walk(traffic: Traffic, forecast: Forecaster) -> Result:
    """RMSE of every horizon, and how much of it all 90 % intervals cover."""
    scored = traffic.values > 0
    scored[:, : traffic.first_day] = False
    shape = (len(HORIZONS), *traffic.values.shape)
    mean, low, high = (np.full(shape, np.nan) for _ in range(3))
    for day, slot in traffic.origins():
        ahead = forecast(day, slot)
        for place, horizon in enumerate(HORIZONS):
            if slot % horizon == 0:
                steps = slice(slot, slot + horizon)
                mean[place][:, day, steps] = ahead.mean[:, :horizon]
                if ahead.interval is not None:
                    for bound, own in zip((low, high), ahead.interval, strict=True):
                        bound[place][:, day, steps] = own[:, :horizon]
    y = traffic.values[scored]
    found = {
        f"RMSE {horizon}": metrics.rmse(y, mean[place][scored])
        for place, horizon in enumerate(HORIZONS)
    }
    if not np.isnan(low).all():
        ends = [np.concatenate([each[scored] for each in bound]) for bound in (low, high)]
        found["coverage"] = metrics.coverage(np.tile(y, len(HORIZONS)), *ends)
    return found


def work(mask: str, method: str, quick: bool, threads: int) -> Result:
    """Forecast with one method, and score it. What has not come yet is read here alone."""
    traffic = load(mask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        begin = time.perf_counter()
        found = walk(traffic, forecasters(quick, threads)[method](traffic))
        return {"seed": 0, "seconds": time.perf_counter() - begin} | found
