"""What `bayesring info` tells: versions, or what a model file says about itself."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from bayesring import __version__
from bayesring.data.modelheaders import not_a_model, read_model_header

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "narwhals", "pandas", "polars", "pyarrow")
FILE_LIBRARIES = ("xarray", "h5netcdf", "zarr", "openpyxl", "matplotlib", "arviz", "dask")


def about_us() -> dict[str, Any]:
    """Versions of bayesring and of what it uses, without loading any of it."""
    versions = {"bayesring": __version__, "python": platform.python_version()}
    for name in (*LIBRARIES, *FILE_LIBRARIES):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {"versions": versions, "machine": platform.platform(), "cores": os.cpu_count()}


def about_model(path: str) -> dict[str, Any]:
    """What a model is of, and how it was fitted."""
    found, draws = read_model_header(path)
    try:
        return _told(path, found, draws)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise not_a_model(path, error) from None


def _told(path: str, found: dict[str, Any], draws: list[int]) -> dict[str, Any]:
    labels = found.get("labels") or {}
    shape = [int(size) for size in found["shape"]]
    names = labels.get("names") or [f"mode {mode}" for mode in range(len(shape))]
    parameters = found.get("parameters") or {}
    observed, cells = int(found["n_observations"]), 1.0
    for size in shape:
        cells *= size
    settings = {
        name: parameters.get(name) for name in ("inference", "order", "warmup", "random_state")
    }
    told = {
        "model": path,
        "bytes": os.path.getsize(path),
        "estimator": found.get("estimator", "TensorRing"),
        "modes": dict(zip(map(str, names), shape, strict=True)),
        "value": labels.get("value"),
        "fitted_to": labels.get("table kind") or "arrays",
        "observed": observed,
        "density": observed / cells,
        "likelihood": _class(found.get("fitted likelihood")),
        "rank_policy": _class(found.get("rank")),
        "chains": len(draws),
        "draws": draws,
        **{name if name != "random_state" else "seed": each for name, each in settings.items()},
        "interrupted": bool(found.get("interrupted", False)),
        "format": found["version"],
        "versions": {name: str(each) for name, each in (found.get("versions") or {}).items()},
    }
    origin = found.get("origin")
    if isinstance(origin, dict):
        told |= {name: str(each) for name, each in origin.items() if name in ("command", "input")}
    return told


def _class(described: Any) -> str | None:
    return described.get("class") if isinstance(described, dict) else None
