"""Bridge sensor outages.

Thirty car parks of Birmingham report how full they are, every half hour of 77 days. Counters fail
for days on end, and one is taken away for good. What was parked there meanwhile?
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayesring import TensorRing, metrics
from bayesring.datasets import load_birmingham

settings = {"random_state": 0, "progress": False}
if os.environ.get("BAYESRING_QUICK"):  # a short run, to check that everything works
    settings |= {"rank": 2, "warmup": 10, "draws": 10, "chains": 1}

# %% ## The table
# One row per car park, day and time. Every counter fails three times, for four days each, and that
# of one car park stays silent from the sixtieth day on.

data = load_birmingham()
park, day, slot = np.indices(data.tensor.shape)
days = data.positions["day"]
hours = data.positions["half_hour"]
table = pd.DataFrame(
    {
        "park": [f"park {number:02}" for number in park.ravel()],
        "day": days[day.ravel()],
        "hour": hours[slot.ravel()],
        "cars": data.tensor.ravel(),
    }
)
rng = np.random.default_rng(0)
off = np.zeros(data.tensor.shape[:2], dtype=bool)
for counter in off:
    for begin in rng.choice(len(days) - 4, 3, replace=False):
        counter[begin : begin + 4] = True
gone = 4
off[gone] = False
off[gone, 60:] = True
table["off"] = off[park.ravel(), day.ravel()]
table = table.dropna()
seen, hidden = table[~table.off].drop(columns="off"), table[table.off]
print(f"{len(seen):,} counts are known, and {len(hidden):,} fall into outages")

# %% ## One fit
# Dates and hours are ordered modes, and nothing has to be said about that. Values are held out as
# they are missing, by days of one car park, so that intervals are as wide as such gaps need them.

ring = TensorRing(**settings).fit(seen, modes=["park", "day", "hour"], value="cars")
filled = ring.predict_table(hidden)

# %% ## Against what one would do by hand
# The mean of the same car park at the same hour on the same weekday, and straight lines from the
# day before an outage to the day after it.

by_weekday = seen.assign(weekday=seen.day.dt.day_of_week)
usual = by_weekday.groupby(["park", "weekday", "hour"]).cars.mean().rename("usual").reset_index()
asked = hidden.assign(weekday=hidden.day.dt.day_of_week)
usual = asked.merge(usual, how="left", on=["park", "weekday", "hour"]).usual.to_numpy()
usual = np.where(np.isnan(usual), seen.cars.mean(), usual)
wide = seen.pivot_table(index="day", columns=["park", "hour"], values="cars").reindex(days)
lines = wide.interpolate("index", limit_direction="both").stack(["park", "hour"], future_stack=True)
lines = lines.reindex(pd.MultiIndex.from_frame(hidden[["day", "park", "hour"]])).to_numpy()
lines = np.where(np.isnan(lines), seen.cars.mean(), lines)

is_gone = (hidden.park == f"park {gone:02}").to_numpy()
truth, model = hidden.cars.to_numpy(), filled["mean"].to_numpy()
inside = (
    (filled.lower <= hidden.cars.to_numpy()) & (hidden.cars.to_numpy() <= filled.upper)
).to_numpy()
print("RMSE                       four days   gone for good")
for way, guess in (("straight lines", lines), ("usual weekday", usual), ("model", model)):
    errors = [metrics.rmse(truth[rows], guess[rows]) for rows in (~is_gone, is_gone)]
    print(f"{way:<24}{errors[0]:12.1f}{errors[1]:16.1f}")
print(f"{'in 90 % interval':<24}{inside[~is_gone].mean():12.1%}{inside[is_gone].mean():16.1%}")

# %% ## An outage
# Two weeks around the first outage of the largest car park, with 90 % intervals.


def show(name, first, last):
    """The counts of a car park between two days, and what the model says of its outages."""
    own = table[(table.park == name) & (table.day >= first) & (table.day <= last)]
    own = own.sort_values(["day", "hour"]).reset_index(drop=True)
    when = own.day + pd.to_timedelta(own.hour, unit="h")
    figure, axis = plt.subplots(figsize=(10, 3.2), layout="constrained")
    figure.suptitle(f"{name}, 8:00 to 16:30 of every day")
    place = np.arange(len(own))
    low, high = ring.predict_interval(own.drop(columns=["off", "cars"]))
    gap = own.off.to_numpy()
    axis.fill_between(
        place, 0, 1, where=gap, transform=axis.get_xaxis_transform(), color="0.92", lw=0
    )
    axis.fill_between(place, low, high, where=gap, color="#56B4E9", alpha=0.5, lw=0, label="90 %")
    mean = ring.predict(own.drop(columns=["off", "cars"]))
    axis.plot(place, np.where(gap, mean, np.nan), color="#0072B2", label="model")
    axis.plot(place, own.cars, color="black", lw=0.8, label="counted (hidden where grey)")
    mornings = np.flatnonzero(own.hour == hours[0])
    mornings = mornings[:: 1 + len(mornings) // 16]
    axis.set_xticks(mornings, [f"{when[each]:%d %b}" for each in mornings])
    axis.set_ylabel("cars")
    axis.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))


largest = table.groupby("park").cars.mean().idxmax()
first = table[(table.park == largest) & table.off].day.min()
show(largest, first - pd.Timedelta(days=5), first + pd.Timedelta(days=9))

# %% ## Gone for good
# Nothing comes after this gap. What the others count on the same days carries the model through it.

show(f"park {gone:02}", days[55], days[-1])
