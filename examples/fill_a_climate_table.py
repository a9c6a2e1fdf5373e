"""Fill a climate table.

Seventeen climate variables at 125 places in North America over 156 months make 331,500 numbers. We
pretend to know one in ten of them. The table is long, with one row per variable, place and month,
and we get it back with every gap filled and an error bar for each.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayesring import complete
from bayesring.datasets import load_ushcn, ushcn_table

settings = {"random_state": 0, "progress": False}
if os.environ.get("BAYESRING_QUICK"):  # a short run, to check that everything works
    settings |= {"rank": 2, "warmup": 10, "draws": 10, "chains": 1}

# %% ## The table
# Keys may be text, categories, numbers or dates. A missing value marks a cell to fill in.

table = pd.DataFrame(ushcn_table(share=0.1, seed=0))
print(table.sample(5, random_state=1).to_string(index=False))

# %% ## One call
# `modes` names the key columns and `value` the column of values. Nothing else needs to be chosen:
# the rank is chosen automatically, and the noise is learned.

completion = complete(table, modes=["variable", "place", "month"], value="value", **settings)
print(completion.table.sample(5, random_state=1).to_string(index=False, float_format="%.2f"))

# %% Known values are kept unchanged, with no error bar. Because we know the hidden values, we can
# check the result: the error, and how many hidden values lie in their 90 % intervals.

filled = completion.table
hidden = table["value"].isna().to_numpy()
truth = load_ushcn().tensor.ravel()
error = (filled["mean"] - truth)[hidden]
inside = ((filled["lower"] <= truth) & (truth <= filled["upper"]))[hidden]
print(f"rank found           {completion.model.rank_}")
print(f"root mean square     {np.sqrt(np.mean(error**2)):.3f} (values have standard deviation 1)")
print(f"in 90 % interval     {inside.mean():.1%}")

# %% ## One series
# Maximum temperature at one place: the known values, the completed series, and the truth.

wanted = (filled["variable"] == "TMX") & (filled["place"] == "40.475N 104.75W")
series = filled[wanted].assign(truth=truth[wanted])
figure, axis = plt.subplots(figsize=(10, 3.4), layout="constrained")
figure.suptitle("Maximum temperature at 40.5 N 104.8 W, standardised")
axis.fill_between(
    series["month"], series["lower"], series["upper"], color="#56B4E9", alpha=0.4, label="90 %"
)
axis.plot(series["month"], series["truth"], color="0.6", lw=1, label="truth")
axis.plot(series["month"], series["mean"], color="#0072B2", lw=1.3, label="filled")
axis.plot(series["month"], series["value"], "o", color="#D55E00", ms=5, label="known")
axis.legend(ncols=4, loc="lower left")

# %% ## One month on the map
# The values known for January 1996, the completed map, the truth, and the error bars.

wanted = (filled["variable"] == "TMX") & (filled["month"].astype(str) == "1996-01-01")
month = filled[wanted].assign(truth=truth[wanted])
north, west = month["place"].str.extract(r"([\d.]+)N ([\d.]+)W").astype(float).to_numpy().T
panels = {"known": "value", "filled": "mean", "truth": "truth", "error bar": "std"}
figure, axes = plt.subplots(1, 4, figsize=(12, 3), sharey=True, layout="constrained")
figure.suptitle("Maximum temperature in January 1996, standardised")
for axis, (title, column) in zip(axes, panels.items(), strict=True):
    is_error = title == "error bar"
    limits = {"vmin": 0.0} if is_error else {"vmin": -2.0, "vmax": 2.0}
    points = axis.scatter(
        -west, north, c=month[column], s=34, cmap="magma" if is_error else "coolwarm", **limits
    )
    axis.set_title(title)
    figure.colorbar(points, ax=axis, shrink=0.8)

# %% ## What to measure next
# The cells the model knows least about:

print(completion.model.suggest(5).to_string(index=False, float_format="%.2f"))
