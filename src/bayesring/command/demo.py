"""The demo: complete a hyperspectral scene from 1 % of its cells."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesring import metrics
from bayesring.command.outputs import check_replaced
from bayesring.data.files import check_target, write_table
from bayesring.data.tables import make_table
from bayesring.data.writing import check_destination, check_folder, replacing
from bayesring.datasets import load_indian_pines, random_split, ushcn_table
from bayesring.estimator import TensorRing
from bayesring.model.types import FloatArray

SHARE = 0.01
KNOWN_CLIMATE = 0.1
"""Share of the climate table that has a value."""
BANDS = (29, 120)
WRITTEN = ("completion.png", "rank.png", "report.html", "result.json", "report.md")
"""Files that the demo leaves."""
N_CHECKED = 50_000
"""Test cells at which the intervals are checked."""


class DemoResult(NamedTuple):
    """What the demo found, and how good it is."""

    psnr: float
    ssim: float
    coverage: float
    rank: list[list[int]]
    """Per chain, one number per bond."""
    seconds: float


class DemoPictures(NamedTuple):
    """What the demo shows."""

    observed: FloatArray
    completed: FloatArray
    truth: FloatArray
    deviation: FloatArray


def run_demo(seed: int = 0, **settings: Any) -> tuple[DemoResult, DemoPictures, TensorRing]:
    """Fit the scene with automatic rank; the test cells are read once, to score.

    `settings` go to `TensorRing`; the demo itself uses its defaults, but two chains instead of
    four, so that it takes a minute.
    """
    begin = time.perf_counter()
    scene = load_indian_pines().tensor
    split = random_split(scene.shape, SHARE, seed)
    known = tuple(split.train.T)
    settings = {"chains": 2} | settings
    ring = TensorRing(shape=scene.shape, random_state=seed, **settings)
    ring.fit(split.train, scene[known])

    completed, deviation = ring.predict_tensor(return_std=True)
    completed[known], deviation[known] = scene[known], 0.0
    chosen = np.random.default_rng(seed).choice(len(split.test), N_CHECKED, replace=False)
    cells = split.test[chosen]
    lower, upper = ring.predict_interval(cells, level=0.9)
    observed = np.full(scene.shape, np.nan)
    observed[known] = scene[known]
    result = DemoResult(
        psnr=metrics.psnr(scene, completed),
        ssim=metrics.ssim(scene, completed),
        coverage=metrics.coverage(scene[tuple(cells.T)], lower, upper),
        rank=[list(draws.rank) for draws in ring.posterior_.chains],
        seconds=time.perf_counter() - begin,
    )
    return result, DemoPictures(observed, completed, scene, deviation), ring


def check_demo(folder: Path, force: bool = False) -> None:
    """Refuse, before any work, a folder that `write_demo` cannot, or should not, write to."""
    check_folder(folder)
    if folder.is_dir():
        for name in WRITTEN:
            check_destination(folder / name)
        check_replaced(folder / "report.html", "page", force)
        found = [name for name in WRITTEN if (folder / name).exists()]
        if found and "report.html" not in found and not force:
            raise FileExistsError(
                f"{folder / found[0]} exists, but no report of a demo beside it; --force replaces "
                "it."
            )


def write_demo(folder: Path, result: DemoResult, pictures: DemoPictures, ring: TensorRing) -> None:
    """Write the pictures, the numbers and a short report into `folder`."""
    from bayesring.report.figures import plot_bands, save

    folder.mkdir(parents=True, exist_ok=True)
    completion, rank, page, numbers, text = (folder / name for name in WRITTEN)
    save(plot_bands(BANDS, *pictures), completion)
    save(ring.plot_rank().figure, rank)
    ring.report(page, progress=ring.progress)
    with replacing(numbers) as temporary:
        temporary.write_text(json.dumps(result._asdict(), indent=1) + "\n")
    with replacing(text) as temporary:
        temporary.write_text(REPORT.format(**summary(result)))


def write_climate(path: str, seed: int = 0, force: bool = False) -> tuple[int, int]:
    """Write the USHCN climate table with most of its values left out: rows, rows with a value."""
    check_target(path)
    if Path(path).exists() and not force:
        raise FileExistsError(f"{path} exists; --force replaces it.")
    columns = ushcn_table(KNOWN_CLIMATE, seed)
    write_table(path, make_table("pyarrow", columns))
    return len(columns["value"]), int(np.isfinite(columns["value"]).sum())


def summary(result: DemoResult) -> dict[str, str]:
    """The numbers as text."""
    ranks = ", ".join("x".join(map(str, rank)) for rank in result.rank)
    return {
        "PSNR": f"{result.psnr:.2f} dB",
        "SSIM": f"{result.ssim:.3f}",
        "coverage": f"{result.coverage:.1%}",
        "rank": ranks,
        "seconds": f"{result.seconds:.0f}",
    }


REPORT = """# Indian Pines from 1 % of its cells

| | |
|---|---|
| PSNR of the completed scene | {PSNR} |
| SSIM, mean over bands | {SSIM} |
| hidden cells inside their 90 % interval | {coverage} |
| rank found, per chain | {rank} |
| seconds | {seconds} |

![observed, completed, truth, error bar](completion.png)

![path of the rank](rank.png)

More, with slices to move through: [report.html](report.html).
"""
