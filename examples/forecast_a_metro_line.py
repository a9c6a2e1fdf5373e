"""Forecast a metro line.

Passengers who enter twelve stations of the Hangzhou metro, every ten minutes of 25 days. Counters
fail for whole days, and on the last day we stand at noon: what does the afternoon bring?
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayesring import TensorRing, metrics
from bayesring.datasets import load_hangzhou

settings = {"random_state": 0, "progress": False}
if os.environ.get("BAYESRING_QUICK"):  # a short run, to check that everything works
    settings |= {"rank": 2, "warmup": 10, "draws": 10, "chains": 1}

# %% ## The table
# One row per station, day and time. One day in five of every station is missing.

data = load_hangzhou()
tensor = data.tensor[:12]
days, minutes = data.positions["day"], 360.0 + 10 * np.arange(tensor.shape[2])
station, day, slot = np.indices(tensor.shape)
table = pd.DataFrame(
    {
        "station": [f"station {number:02}" for number in station.ravel()],
        "day": days[day.ravel()],
        "minute": minutes[slot.ravel()],
        "passengers": tensor.ravel(),
    }
)
fails = np.random.default_rng(0).random(tensor.shape[:2]) < 0.2
fails[:, -1] = False
table["failed"] = fails[station.ravel(), day.ravel()]
table = table.dropna()
today, noon = table.day == days[-1], table.minute < 720
seen = table[~table.failed & ~today].drop(columns="failed")
print(seen.sample(4, random_state=1).to_string(index=False))

# %% ## Days and minutes are in order
# Nothing has to be said: dates and floats are ordered modes. Values are held out as they are
# missing here, by whole days.

ring = TensorRing(**settings).fit(seen, modes=["station", "day", "minute"], value="passengers")
hidden = table[table.failed]
slots = seen.groupby(["station", "minute"]).passengers.mean().rename("usual").reset_index()


def show_error(cells, way, guess):
    """Print the error of a guess."""
    print(f"RMSE {way:<26}{metrics.rmse(cells.passengers.to_numpy(), np.asarray(guess)):6.1f}")


def usual(cells):
    """The mean of the other days at the same time."""
    return cells.merge(slots, how="left", on=["station", "minute"]).usual.fillna(0.0)


show_error(hidden, "by the usual day", usual(hidden))
show_error(hidden, "by the model", ring.predict(hidden))
covered = metrics.coverage(hidden.passengers, *ring.predict_interval(hidden))
print(f"in 90 % interval               {covered:6.1%}")

# %% ## A missing day
# The busiest station on the first day that its counter failed, with 90 % intervals.

busiest = table.groupby("station").passengers.sum().idxmax()
gap = hidden[hidden.station == busiest]
gap = gap[gap.day == gap.day.min()]
figure, axis = plt.subplots(figsize=(9, 3.2), layout="constrained")
axis.fill_between(gap.minute / 60, *ring.predict_interval(gap), alpha=0.3, lw=0, label="90 %")
axis.plot(gap.minute / 60, ring.predict(gap), label="model")
axis.plot(gap.minute / 60, usual(gap), color="grey", ls="--", label="usual day")
axis.plot(gap.minute / 60, gap.passengers, color="black", lw=0.8, label="counted, but hidden")
axis.set(
    xlabel="hour", ylabel="passengers in ten minutes", title=f"{busiest}, {gap.day.min():%A %d %B}"
)
axis.legend(frameon=False)

# %% ## Noon
# The morning of the last day is folded in: its slice is drawn in every kept draw, which takes a
# moment, and the afternoon follows from it.

midday = ring.fold_in(table[today & noon].drop(columns="failed"))
afternoon = table[today & ~noon]
show_error(afternoon, "by the usual day", usual(afternoon))
show_error(afternoon, "forecast the day before", ring.predict(afternoon))
show_error(afternoon, "forecast at noon", midday.predict(afternoon))

# %% ## A fan
# Intervals of 50 and 90 % for the busiest station. The model has one noise for all stations, so the
# fan of the busiest is narrower than it should be, and that of the quietest wider.

own = table[today & (table.station == busiest)]
rest = own[own.minute >= 720]
figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
for level, shade in ((0.9, 0.25), (0.5, 0.45)):
    ends = midday.predict_interval(rest, level)
    axis.fill_between(rest.minute / 60, *ends, color="C0", alpha=shade, lw=0, label=f"{level:.0%}")
axis.plot(rest.minute / 60, midday.predict(rest, point="median"), color="C0", label="median")
axis.plot(own.minute / 60, own.passengers, color="black", lw=0.8, label="counted")
axis.axvline(12, color="grey", ls=":")
axis.set(xlabel="hour", ylabel="passengers in ten minutes", title=f"{busiest}, forecast at noon")
axis.legend(frameon=False)

# %% ## The next day
# Nothing is known of it but what days have in common, so its intervals are wider.

tomorrow = midday.forecast(1)
print(tomorrow.head(3).to_string(index=False, float_format="{:.0f}".format))
widths = (tomorrow.upper - tomorrow.lower).mean()
print(f"mean width of 90 % intervals: {widths:.0f} passengers")
