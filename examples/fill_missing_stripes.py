"""Fill missing stripes.

A scanner that loses whole columns leaves stripes in which no band was recorded. Only the order of
the columns says anything about them: what lies left and right.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from bayesring import complete, metrics
from bayesring.datasets import load_indian_pines

settings = {"random_state": 0, "progress": False}
step = 20
if os.environ.get("BAYESRING_QUICK"):  # a short run, to check that everything works
    settings |= {"rank": 2, "warmup": 10, "draws": 10, "chains": 1}
    step = 40

# %% ## The scene
# Ten bands of Indian Pines. Three columns of every eighteen are lost in all bands, and of the
# others a sixth of the cells was recorded.

scene = xr.DataArray(
    load_indian_pines().tensor[:, :, ::step], dims=("row", "column", "band"), name="radiance"
).assign_coords(band=np.arange(0, 200, step))
lost = np.arange(scene.sizes["column"]) % 18 >= 15
known = (np.random.default_rng(0).random(scene.shape) < 1 / 6) & ~lost[:, None]
recorded = scene.where(known)
print(f"{known.sum():,} of {known.size:,} cells recorded, {lost.sum()} of {lost.size} columns lost")

# %% ## With order and without
# Axes of an array are ordered by themselves. With `order=None` a lost column is any column and gets
# the mean of all. The trivial answer is a straight line from the left to the right of a stripe.

restored = complete(recorded, **settings)
unordered = complete(recorded, order=None, **settings)
lines = recorded.interpolate_na("column").interpolate_na("column", fill_value="extrapolate")
stripe = np.zeros(scene.shape, dtype=bool)
stripe[:, lost] = True
ways = {"straight lines": lines, "without order": unordered.mean, "with order": restored.mean}
print("RMSE               in stripes   elsewhere")
for way, image in ways.items():
    errors = [
        metrics.rmse(scene.values[cells], image.values[cells])
        for cells in (stripe & np.isfinite(lines.values), ~stripe & ~known)
    ]
    print(f"{way:<16}{errors[0]:13.4f}{errors[1]:12.4f}")
inside = ((restored.lower <= scene) & (scene <= restored.upper)).values
print(f"in 90 % interval{inside[stripe].mean():13.1%}{inside[~stripe & ~known].mean():12.1%}")

# %% ## One band
# The error bar knows where the stripes are, and is largest in their middle.

band = {"band": int(scene["band"][len(scene["band"]) // 2])}
low, high = np.percentile(scene.sel(band), [1, 99])
panels = {"recorded": recorded, "without order": unordered.mean, "with order": restored.mean}
figure, axes = plt.subplots(1, 5, figsize=(13, 2.9), layout="constrained")
figure.suptitle(f"Band {band['band']}, stripes lost in all bands")
for axis, (title, image) in zip(axes, (panels | {"truth": scene}).items(), strict=False):
    axis.set_facecolor("black")
    axis.imshow(image.sel(band), cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
    axis.set_title(title)
shown = axes[4].imshow(restored.std.where(~known).sel(band), cmap="magma", interpolation="nearest")
axes[4].set_title("error bar")
figure.colorbar(shown, ax=axes[4], shrink=0.85)
for axis in axes:
    axis.set(xticks=[], yticks=[])

# %% ## One row
# Recorded cells are known. Elsewhere the interval holds the noise, and a little more in stripes.

row = {"row": 70} | band
column = scene["column"]
figure, axis = plt.subplots(figsize=(10, 3.2), layout="constrained")
figure.suptitle("One row of one band, stripes in grey")
axis.fill_between(
    column, 0, 1, where=lost, transform=axis.get_xaxis_transform(), color="0.9", lw=0, step="mid"
)
axis.fill_between(
    column, restored.lower.sel(row), restored.upper.sel(row), color="#56B4E9", alpha=0.5, lw=0,
    label="90 %",
)  # fmt: skip
axis.plot(column, restored.mean.sel(row), color="#0072B2", label="restored")
axis.plot(column, scene.sel(row), color="black", lw=0.8, label="truth")
axis.plot(column, recorded.sel(row), "o", ms=3, color="#D55E00", label="recorded")
axis.set_xlabel("column")
axis.legend(frameon=False, ncols=4)
