"""One file per model: a zip archive of plain arrays and a JSON description. No pickle inside.

Written to a temporary name and renamed, so that an interrupted write leaves the old file whole.
Reading checks the format, its version, every array's checksum and the objects named.
"""

from __future__ import annotations

import io
import json
import os
import platform
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from bayesring import likelihoods, priors
from bayesring.infer.estimate import AdamMoments, RingEstimate, forgotten
from bayesring.model.rank import Adaption, FixedRank, StrandGrowth, Truncation
from bayesring.infer.state import Draws, Trace
from bayesring.data.labels import Labels, plain_labels
from bayesring.data.observations import HeldOut, Observations, in_order
from bayesring.model.types import RingSize, SlicePrior
from bayesring.data.writing import replacing

FORMAT = "bayesring model"
VERSION = 2
DESCRIPTION = "description.json"
PRIOR_FIELDS = ("precision", "diagonal", "linear")
"""What is kept of a `SlicePrior`."""
MOST_OBSERVATIONS = 500_000
"""Training observations that are kept with a model; more than these are left out."""


def write(
    path: str | os.PathLike[str],
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a description and named arrays to one file."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **description}, indent=1)
    with (
        replacing(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        archive.writestr(_member(DESCRIPTION), text)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            archive.writestr(_member(f"{name}.npy"), buffer.getvalue())


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write` wrote; a ValueError says what is wrong with any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read(DESCRIPTION))
            if description.get("format") != FORMAT:
                raise ValueError(f"{path} is not a bayesring model.")
            if description.get("version") != VERSION:
                raise ValueError(
                    f"{path} has format version {description.get('version')}, but this release "
                    f"reads version {VERSION}; load it with the release that wrote it."
                )
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(archive.read(name)), allow_pickle=False
                )
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a bayesring model, or is damaged: {error}.") from error
    return description, arrays


def chains_to_arrays(chains: Sequence[Draws], traces: Sequence[Trace]) -> dict[str, NDArray[Any]]:
    """Draws and traces of all chains as named arrays: "0/flat", "0/trace noise", ..."""
    arrays: dict[str, NDArray[Any]] = {}
    for chain, (draws, trace) in enumerate(zip(chains, traces, strict=True)):
        named: dict[str, Any] = draws._asdict()
        named |= {"rank": trace.rank, "log_likelihood": trace.log_likelihood}
        named |= {f"trace {name}": numbers for name, numbers in trace.described.items()}
        arrays |= {f"{chain}/{name}": np.asarray(array) for name, array in named.items()}
    return arrays


def chains_from_arrays(
    arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]
) -> tuple[tuple[Draws, ...], list[Trace]]:
    """What `chains_to_arrays` named, checked against the shape of the tensor."""
    chains, traces = [], []
    numbers = [name.split("/")[0] for name in arrays]
    for chain in range(1 + max(int(number) for number in numbers if number.isdigit())):
        prefix = f"{chain}/"
        own = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        kept: dict[str, Any] = {field: own[field] for field in Draws._fields}
        draws = Draws(**kept | {"strands": int(own["strands"])})
        sizes = draws.strands * np.array(shape) * np.roll(draws.bonds, 1) * draws.bonds
        if draws.flat.shape != (len(draws.nuisance), sizes.sum()):
            raise ValueError(f"the draws of chain {chain} do not fit the shape {shape}.")
        if draws.weights.shape != (len(draws.nuisance), sum(draws.rank)):
            raise ValueError(f"the weights of chain {chain} do not fit its rank {draws.rank}.")
        described = {
            name.removeprefix("trace "): array
            for name, array in own.items()
            if name.startswith("trace ")
        }
        chains.append(draws)
        traces.append(Trace(own["rank"], own["log_likelihood"], described))
    return tuple(chains), traces


def kept(data: Observations) -> Observations | None:
    """The training data in an order of their own and in their units, unless there are too many."""
    if len(data.values) > MOST_OBSERVATIONS:
        return None
    return in_order(data._replace(location=0.0, scale=1.0))


def training_to_arrays(labels: Labels, observed: Observations | None) -> dict[str, NDArray[Any]]:
    """Labels and training observations, if kept, as named arrays."""
    arrays: dict[str, NDArray[Any]] = {
        f"labels/{mode}": levels for mode, levels in enumerate(labels.levels) if levels is not None
    }
    if observed is not None:
        arrays |= {"observed/coords": observed.coords, "observed/values": observed.values}
    return arrays


def training_from_arrays(
    described: Mapping[str, Any] | None,
    arrays: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
) -> tuple[Labels, Observations | None]:
    """What `training_to_arrays` named, checked against the shape; older files have no labels."""
    labels = plain_labels(len(shape))
    if described is not None:
        levels = tuple(arrays.get(f"labels/{mode}") for mode in range(len(shape)))
        labels = Labels(tuple(described["names"]), levels, described["value"])
    for mode, (level, size) in enumerate(zip(labels.levels, shape, strict=True)):
        if level is not None and level.shape != (size,):
            raise ValueError(f"the labels of mode {mode} do not fit its size {size}.")
    if "observed/coords" not in arrays:
        return labels, None
    return labels, Observations(arrays["observed/coords"], arrays["observed/values"], shape)


def held_out_to_arrays(held: HeldOut | None) -> dict[str, NDArray[Any]]:
    """Predictions for held-out values as named arrays."""
    return (
        {} if held is None else {f"held out/{name}": each for name, each in held._asdict().items()}
    )


def held_out_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> HeldOut | None:
    """What `held_out_to_arrays` named; None in files that have none."""
    if "held out/values" not in arrays:
        return None
    return HeldOut(*(arrays[f"held out/{name}"] for name in HeldOut._fields))


def estimates_to_arrays(estimates: Sequence[RingEstimate]) -> dict[str, NDArray[Any]]:
    """Rings of online EM as named arrays: "learner 0/flat", ..."""
    return {
        f"learner {number}/{name}": array
        for number, estimate in enumerate(estimates)
        for name, array in _estimate_to_arrays(estimate).items()
    }


def _estimate_to_arrays(estimate: RingEstimate) -> dict[str, NDArray[Any]]:
    """All that going on with new data needs."""
    arrays: dict[str, NDArray[Any]] = {
        "flat": estimate.cores,
        "curvature": estimate.curvature,
        "nuisance": estimate.nuisance,
        "width": np.array(estimate.width),
    }
    for mode, prior in enumerate(estimate.slice_priors):
        arrays |= {
            f"weights {mode}": estimate.weights[mode],
            f"gains {mode}": estimate.gains[mode],
            f"counts {mode}": estimate.counts[mode],
        }
        arrays |= {f"prior {mode} {name}": getattr(prior, name) for name in PRIOR_FIELDS}
    return arrays


def estimates_from_arrays(
    arrays: Mapping[str, NDArray[Any]], weights_learned: bool
) -> list[RingEstimate]:
    """What `estimates_to_arrays` named; what Adam remembered is forgotten."""
    prefixes = {name.split("/")[0] for name in arrays if name.startswith("learner ")}
    found = []
    for prefix in sorted(prefixes, key=lambda each: int(each.split()[1])):
        own = {
            name.removeprefix(f"{prefix}/"): array
            for name, array in arrays.items()
            if name.startswith(f"{prefix}/")
        }
        found.append(_estimate_from_arrays(own, weights_learned))
    return found


def _estimate_from_arrays(own: Mapping[str, NDArray[Any]], weights_learned: bool) -> RingEstimate:
    order = sum(name.startswith("counts ") for name in own)

    def of_modes(name: str) -> tuple[NDArray[Any], ...]:
        return tuple(own[f"{name} {mode}"] for mode in range(order))

    weights, counts = of_modes("weights"), of_modes("counts")
    size = RingSize(len(weights[0]), tuple(each.shape[1] for each in weights))
    priors = tuple(
        SlicePrior(*(own[f"prior {mode} {name}"] for name in PRIOR_FIELDS)) for mode in range(order)
    )
    estimate = RingEstimate(
        size,
        counts,
        own["flat"],
        weights,
        of_modes("gains"),
        own["nuisance"],
        priors,
        own["curvature"],
        AdamMoments.empty(0, 0),
        (),
        np.zeros(sum(each.size for each in weights) if weights_learned else 0),
        spreads=(None,) * order,
        width=float(own["width"]),
    )
    return forgotten(estimate)


def _member(name: str) -> zipfile.ZipInfo:
    """Archive member with a fixed date, so that equal models give equal files."""
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def to_plain(value: Any) -> Any:
    """Frozen dataclasses (likelihoods, priors, rank policies) as plain data for JSON."""
    if is_dataclass(value):
        plain = {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
        return {"class": type(value).__name__, **plain}
    if isinstance(value, (tuple, list, range, np.ndarray)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def from_plain(value: Any, classes: Mapping[str, Callable[..., Any]]) -> Any:
    """Rebuild what `to_plain` took apart, from the named classes only."""
    if isinstance(value, dict):
        arguments = {key: from_plain(item, classes) for key, item in value.items()}
        name = arguments.pop("class", None)
        if name not in classes:
            raise ValueError(f"the model uses {name!r}, which this release does not know.")
        return classes[name](**arguments)
    if isinstance(value, list):
        return tuple(from_plain(item, classes) for item in value)
    return value


def storable_classes() -> dict[str, Callable[..., Any]]:
    """Classes that a model file may name."""
    found = {name: getattr(likelihoods, name) for name in likelihoods.__all__}
    found |= {name: getattr(priors, name) for name in priors.__all__}
    return found | {cls.__name__: cls for cls in (Adaption, FixedRank, StrandGrowth, Truncation)}


def versions() -> dict[str, str]:
    """What a result, to the bit, depends on besides seed and data."""
    return {
        "bayesring": version("bayesring"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
        "processor": platform.processor() or "unknown",
    }
