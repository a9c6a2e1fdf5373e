"""Complete a log on a cluster.

A shop logs how long its pages take: by page, country and day, twenty million rows in Parquet files.
We fit them on a Dask cluster, here two processes of this machine, fill in what nobody measured, and
write the result as Parquet. On a real cluster only the line that makes the client changes. With
``BAYESRING_FILES=2`` it takes a tenth of the rows.
"""

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from dask import dataframe
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster
from pyarrow import parquet

from bayesring import TensorRing

quick = bool(os.environ.get("BAYESRING_QUICK"))  # a short run, to check that everything works
n_files = 2 if quick else int(os.environ.get("BAYESRING_FILES", "20"))
rows_per_file = 3_000 if quick else 1_000_000

# %% ## The log
# The time of a page depends on what is on it, on how far away the customer is, and on the load of
# the day. One row in twenty lost its value.

rng = np.random.default_rng(0)
pages, countries, days = (40, 12, 30) if quick else (4_000, 120, 365)
weight, distance = rng.gamma(4, 0.2, pages), rng.gamma(3, 0.3, countries)
load = 1 + 0.3 * np.sin(2 * np.pi * np.arange(days) / 7) + 0.002 * np.arange(days)
noise = 0.3


def truth(page, country, day):
    return weight[page] * load[day] + distance[country] * (1 + 0.5 * weight[page])


def rows(n):
    page, country = rng.integers(pages, size=n), rng.integers(countries, size=n)
    day = rng.integers(days, size=n)
    seconds = truth(page, country, day) + noise * rng.standard_normal(n)
    keys = {"page": page, "country": country, "day": np.datetime64("2025-01-01") + day}
    return pa.table(keys | {"seconds": pa.array(seconds, mask=rng.random(n) < 0.05)})


folder = Path(tempfile.mkdtemp())
(folder / "log").mkdir()
for number in range(n_files):
    parquet.write_table(rows(rows_per_file), folder / "log" / f"part-{number:03d}.parquet")
megabytes = sum(file.stat().st_size for file in (folder / "log").iterdir()) / 1e6
print(f"{n_files * rows_per_file:,} rows in {n_files} files, {megabytes:,.0f} MB")

# %% ## A cluster
# Workers read the files themselves, so they must see the folder. They keep the observations and
# nothing else; the state of the chains is here.

cluster = SubprocessCluster(n_workers=2, host="127.0.0.1", threads_per_worker=1)
client = Client(cluster)

# %% ## The fit
# The same call as for a table, with `client=`, and bit for bit the same result. If a worker dies,
# its observations are read again and nothing changes; with `checkpoint=` even the loss of the
# scheduler costs little.

ring = TensorRing(
    2, warmup=4 if quick else 30, draws=4 if quick else 20, chains=2, random_state=0, progress=False
)
ring.fit(folder / "log", modes=["page", "country", "day"], value="seconds", client=client)
print(f"shape               {ring.shape_}")
print(f"observations        {ring.n_observations_:,}")
noise_found = [trace.described["noise"][-1] for trace in ring.trace_]
print(f"noise found         {np.mean(noise_found):.3f} (planted {noise:.3f})")

figure, axis = plt.subplots(figsize=(8, 3.0), layout="constrained")
figure.suptitle("Noise of both chains, scan by scan")
for trace in ring.trace_:
    axis.plot(trace.described["noise"], lw=1)
axis.axhline(noise, color="0.6", lw=1)
axis.set(xlabel="scan", ylabel="noise, seconds")

# %% ## What nobody measured
# A Dask DataFrame goes in and one comes out, with mean, std, lower and upper. Nothing is computed
# until the workers write it.

log = dataframe.read_parquet(folder / "log")
gaps = log[log["seconds"].isna()]
ring.predict_table(gaps).to_parquet(folder / "filled")
filled = parquet.read_table(folder / "filled").to_pandas()
places = [
    filled["page"].to_numpy(),
    filled["country"].to_numpy(),
    (filled["day"].to_numpy().astype("M8[D]") - np.datetime64("2025-01-01")).astype(int),
]
actual = truth(*places)
error = np.sqrt(np.mean((filled["mean"] - actual) ** 2))
print(f"filled              {len(filled):,} rows")
print(f"error               {error:.3f} (of their own mean: {actual.std():.3f})")

figure, axis = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
figure.suptitle("Filled and true seconds")
some = slice(None, 2_000)
axis.plot(actual[some], filled["mean"][some], ".", color="#0072B2", ms=3)
axis.axline((0, 0), slope=1, color="0.6", lw=1)
axis.set(xlabel="truth", ylabel="predicted")

# %% ## The report
# One page with findings, checks and how to do it again. It needs the model only.

ring.report(folder / "report.html")
print(f"report              {(folder / 'report.html').stat().st_size / 1e3:,.0f} kB")
client.close()
cluster.close()
