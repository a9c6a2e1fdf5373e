"""More data than memory.

Readings of 2,000 sensors by day and hour arrive as Parquet files, one per month. We learn from the
files without ever loading all of them into memory, predict readings that nobody took, and then
continue with the next month, in which new sensors appear.
"""

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bayesring import TensorRing

quick = bool(os.environ.get("BAYESRING_QUICK"))  # a short run, to check that everything works
rows_per_month = 20_000 if quick else 250_000

# %% ## The files
# Each sensor has a daily and a yearly cycle, stronger or weaker and earlier or later, plus noise
# with standard deviation 0.5. Each file holds random readings from one month. Together they cover
# fewer than one in five cells of the table of sensors, days and hours.

rng = np.random.default_rng(0)
n_sensors, noise = 2_100, 0.5
level = rng.normal(10, 3, n_sensors)
daily, yearly = rng.gamma(4, 0.5, n_sensors), rng.gamma(4, 1.5, n_sensors)
shift = rng.normal(0, 1.5, n_sensors)
names = np.array([f"sensor {number:04d}" for number in range(n_sensors)])
start = np.datetime64("2025-01-01")


def truth(sensor, day, hour):
    course = daily[sensor] * np.sin(2 * np.pi * (hour - 9 - shift[sensor]) / 24)
    return level[sensor] + course - yearly[sensor] * np.cos(2 * np.pi * day / 365)


def readings(month, sensors):
    sensor = rng.choice(sensors, rows_per_month)
    day = rng.integers(30 * month, 30 * month + 30, rows_per_month)
    hour = rng.integers(0, 24, rows_per_month)
    value = truth(sensor, day, hour) + noise * rng.standard_normal(rows_per_month)
    return pa.table({"sensor": names[sensor], "day": start + day, "hour": hour, "reading": value})


folder = Path(tempfile.mkdtemp())
for month in range(10):
    parquet.write_table(readings(month, np.arange(2_000)), folder / f"month-{month:02d}.parquet")
megabytes = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
print(f"{10 * rows_per_month:,} rows in {len(list(folder.iterdir()))} files, {megabytes:.0f} MB")

# %% ## Learn from the folder
# Pass a path instead of a table. The files are read repeatedly in shuffled order and never held in
# memory. Keys may be text, numbers or dates. Time grows with the number of rows; memory does not.

ring = TensorRing(
    4, inference="online-em", random_state=0, progress=False, epochs=3 if quick else 20
)
ring.fit(folder, modes=["sensor", "day", "hour"], value="reading")
held = ring.held_out_
print(f"shape                {ring.shape_}")
print(f"held-out error       {np.sqrt(np.mean((held.values - held.mean) ** 2)):.3f}")
print(f"noise in the files   {noise:.3f}")

# %% ## Predict what nobody read
# One sensor over one day, hour by hour, with 90 % intervals for a new reading.

one, day = 7, 150
wanted = pa.table(
    {"sensor": np.repeat(names[one], 24), "day": np.repeat(start + day, 24), "hour": np.arange(24)}
)
found = ring.predict_table(wanted).to_pandas()
figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
figure.suptitle(f"{names[one]} on {start + day}: predicted, and the true course")
axis.fill_between(found["hour"], found["lower"], found["upper"], color="#56B4E9", alpha=0.4)
axis.plot(found["hour"], found["mean"], color="#0072B2", label="predicted, with 90 % interval")
axis.plot(found["hour"], truth(one, day, np.arange(24)), "--", color="#D55E00", label="truth")
axis.set(xlabel="hour", ylabel="reading")
axis.legend()

# %% ## A month later
# New rows come from new days and from a hundred new sensors. `partial_fit` continues with the new
# rows only: modes grow, new sensors start from what the known ones have in common, and the earlier
# fit stands in for the old rows.

newcomers = np.arange(2_000, 2_100)
ring.partial_fit(readings(10, newcomers))
print(f"shape                {ring.shape_}")

hours = np.tile(np.arange(24), len(newcomers))
sensors = np.repeat(newcomers, 24)
cells = pa.table(
    {"sensor": names[sensors], "day": np.repeat(start + 315, hours.size), "hour": hours}
)
found = ring.predict_table(cells).to_pandas()
actual = truth(sensors, 315, hours)
error = np.sqrt(np.mean((found["mean"] - actual) ** 2))
print(f"error at new sensors {error:.3f} (readings have standard deviation {actual.std():.2f})")

figure, axis = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
figure.suptitle("New sensors, hour by hour: predicted and true")
axis.plot(actual, found["mean"], ".", color="#0072B2", ms=3)
axis.axline((0, 0), slope=1, color="0.6", lw=1)
axis.set(xlabel="truth", ylabel="predicted")

# %% The same from a shell: `bayesring fit FOLDER -o model.ring --inference online-em --modes
# sensor,day,hour --value reading`. It shows rows per second and the held-out error while it runs.
