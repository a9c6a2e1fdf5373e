"""Restore an image.

An aerial scene in many spectral bands, with only one cell in ten recorded. The bands resemble each
other, and so do rows and columns, which is enough to restore the scene.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from bayesring import complete, metrics
from bayesring.datasets import load_indian_pines

settings = {"random_state": 0, "progress": False}
step = 10
if os.environ.get("BAYESRING_QUICK"):  # a short run, to check that everything works
    settings |= {"rank": 2, "warmup": 10, "draws": 10, "chains": 1}
    step = 40

# %% ## The scene
# Every tenth band of Indian Pines as an `xarray.DataArray`, with NaN where nothing was recorded.

scene = xr.DataArray(
    load_indian_pines().tensor[:, :, ::step], dims=("row", "column", "band"), name="radiance"
).assign_coords(band=np.arange(0, 200, step))
known = np.random.default_rng(0).random(scene.shape) < 0.1
recorded = scene.where(known)
print(dict(recorded.sizes), f"{known.sum():,} of {known.size:,} cells recorded")

# %% ## One call
# The result has the same dimensions, coordinates and attributes as the input.

restored = complete(recorded, **settings)
inside = (restored.lower <= scene) & (scene <= restored.upper)
print(restored.mean.coords)
print(f"peak signal to noise     {metrics.psnr(scene.values, restored.mean.values):.1f} dB")
print(f"in 90 % interval         {inside.values[~known].mean():.1%}")

# %% ## One band
# The recorded cells, the restored band, the truth, and the model's uncertainty.

band = {"band": int(scene["band"][len(scene["band"]) // 2])}
low, high = np.percentile(scene.sel(band), [1, 99])
panels = {"recorded": recorded, "restored": restored.mean, "truth": scene}
figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), layout="constrained")
figure.suptitle(f"Band {band['band']}, 10 % of the cells recorded")
for axis, (title, image) in zip(axes, panels.items(), strict=False):
    axis.set_facecolor("black")
    axis.imshow(image.sel(band), cmap="viridis", vmin=low, vmax=high, interpolation="nearest")
    axis.set_title(title)
shown = axes[3].imshow(restored.std.where(~known).sel(band), cmap="magma", interpolation="nearest")
axes[3].set_title("error bar")
figure.colorbar(shown, ax=axes[3], shrink=0.85)
for axis in axes:
    axis.set(xticks=[], yticks=[])

# %% ## One pixel
# The spectrum of the pixel that was recorded in most bands.

row, column = np.unravel_index(np.argmax(known.sum(axis=2)), known.shape[:2])
pixel = {"row": row, "column": column}
figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
figure.suptitle("The spectrum of one pixel")
band = scene["band"]
axis.fill_between(
    band, restored.lower.sel(pixel), restored.upper.sel(pixel), color="#56B4E9", alpha=0.4,
    label="90 %",
)  # fmt: skip
axis.plot(band, scene.sel(pixel), color="0.6", label="truth")
axis.plot(band, restored.mean.sel(pixel), color="#0072B2", label="restored")
axis.plot(band, recorded.sel(pixel), "o", color="#D55E00", label="recorded")
axis.set_xlabel("band")
axis.legend()
