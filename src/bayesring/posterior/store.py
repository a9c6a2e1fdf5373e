"""Model files: a zip archive of plain arrays and a JSON description, without pickle.

Files are written under a temporary name and renamed, so an interrupted write leaves the old file
intact. Reading checks the format, its version, every array's checksum and the named objects. Files
may be untrusted; `bayesring.posterior.modelchecks` defines what they may contain.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from bayesring import likelihoods, priors
from bayesring.data import archives
from bayesring.data.labels import Labels, plain_labels
from bayesring.data.modelheaders import (
    DESCRIPTION,
    FORMAT,
    VERSION,
    WrongFormat,
    check_format,
    not_a_model,
)
from bayesring.data.observations import HeldOut, Observations
from bayesring.data.writing import replacing
from bayesring.infer.estimate import AdamMoments, RingEstimate, forgotten
from bayesring.infer.state import Draws, Trace
from bayesring.likelihoods import Likelihood
from bayesring.model.growth import JointGrowth
from bayesring.model.rank import Adaption, FixedRank, StrandGrowth, Truncation
from bayesring.model.types import Given, RingSize, SlicePrior
from bayesring.posterior.labelchecks import check_keys, check_labels, zones_from_plain
from bayesring.posterior.modelchecks import (
    LABELS,
    check_cells,
    check_chain,
    check_fields,
    check_learner,
    check_settings,
    layout,
)
from bayesring.posterior.sitefiles import with_sites
from bayesring.priors import RingPrior
from bayesring.wording import shorten

POLICIES = (Adaption, FixedRank, JointGrowth, StrandGrowth, Truncation)
PRIOR_FIELDS = ("precision", "diagonal", "linear")
"""Fields of a `SlicePrior` that are kept."""


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
    """Read what `write` wrote; a ValueError says what is wrong with any other file.

    The file may be untrusted: see `bayesring.data.archives`.
    """
    try:
        with archives.open_regular(path) as file, archives.open_archive(file) as archive:
            description = archives.read_description(archive, DESCRIPTION)
            check_format(description, path)
            arrays = archives.read_arrays(archive, DESCRIPTION)
    except (FileNotFoundError, WrongFormat):
        raise
    except archives.BROKEN as error:
        raise not_a_model(path, error) from None
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
    arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...], likelihood: Likelihood
) -> tuple[tuple[Draws, ...], list[Trace]]:
    """Inverse of `chains_to_arrays`, checked against the shape of the tensor."""
    chains: list[Draws] = []
    traces: list[Trace] = []
    groups = _numbered(arrays, "")
    if not groups:
        raise ValueError("it holds no draws.")
    for chain, own in enumerate(groups):
        size = check_chain(own, shape, likelihood, f"chain {chain}")
        chains.append(
            Draws(
                own["flat"],
                layout(shape, size),
                np.array(size.bonds, dtype=np.int64),
                size.strands,
                own["nuisance"].astype(np.float64, copy=False),
                own["scans"].astype(np.int64, copy=False),
                own["weights"].astype(np.float64, copy=False),
            )
        )
        described = {
            name.removeprefix("trace "): array
            for name, array in own.items()
            if name.startswith("trace ")
        }
        if traces and described.keys() != traces[0].described.keys():
            raise ValueError(f"the traces of chain {chain} are not those of chain 0.")
        traces.append(Trace(own["rank"], own["log_likelihood"], described))
    return tuple(chains), traces


def _numbered(arrays: Mapping[str, NDArray[Any]], prefix: str) -> list[dict[str, NDArray[Any]]]:
    """Arrays named "<prefix><number>/<name>", grouped by number, from 0 on."""
    groups: dict[int, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        found = re.fullmatch(re.escape(prefix) + r"(0|[1-9][0-9]{0,5})/(.+)", name)
        if found:
            groups.setdefault(int(found[1]), {})[found[2]] = array
    absent = set(range(len(groups))) - groups.keys()
    if absent:
        raise ValueError(f"it lacks the arrays of {prefix or 'chain '}{min(absent)}.")
    return [groups[number] for number in range(len(groups))]


def _under(arrays: Mapping[str, NDArray[Any]], folder: str) -> dict[str, NDArray[Any]]:
    """Arrays named "<folder>/<name>"."""
    start = f"{folder}/"
    return {
        name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
    }


def check_known(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Reject arrays that no part of a model would read."""
    for name in arrays:
        if not re.fullmatch(
            r"(0|[1-9][0-9]{0,5}|labels|sites|observed|held out|classes)/.+"
            r"|(learner|features) [0-9]+/.+",
            name,
        ):
            raise ValueError(f"it has an array {shorten(name)}, which is unknown.")


CARRIED = tuple(name for name in Given._fields if name != "group")
"""What may be known of training observations besides their values."""


def training_to_arrays(labels: Labels, observed: Observations | None) -> dict[str, NDArray[Any]]:
    """Labels and training observations, if kept, as named arrays."""
    arrays: dict[str, NDArray[Any]] = {
        f"labels/{mode}": levels for mode, levels in enumerate(labels.levels) if levels is not None
    }
    placed = {mode: own for mode, own in enumerate(labels.sites) if own is not None}
    arrays |= {f"sites/{mode}": own.places for mode, own in placed.items()}
    if observed is not None:
        arrays |= {"observed/coords": observed.coords, "observed/values": observed.values}
        known = observed.given._asdict().items()
        arrays |= {f"observed/{name}": each for name, each in known if each is not None}
    return arrays


def training_from_arrays(
    described: Mapping[str, Any] | None,
    arrays: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
) -> tuple[Labels, Observations | None]:
    """Inverse of `training_to_arrays`, checked against the shape; older files have no labels."""
    labels, found = plain_labels(len(shape)), _under(arrays, "labels")
    if described is not None:
        check_fields(described, LABELS, "the labels")
        levels = tuple(found.pop(str(mode), None) for mode in range(len(shape)))
        zones = zones_from_plain(described.get("zones", []))
        labels = Labels(tuple(described["names"]), levels, described["value"], zones)
        labels = with_sites(labels, described.get("sites", {}), _under(arrays, "sites"), shape)
    if found:
        raise ValueError(f"it has labels of a mode {shorten(min(found))}, which is not there.")
    check_labels(labels, shape)
    observed = _under(arrays, "observed")
    if not observed:
        return labels, None
    known = [name for name in CARRIED if name in observed]
    check_cells(observed, ["values", *known], shape, "the training data")
    given: Any = {name: observed[name].astype(float) for name in known}
    return labels, Observations(observed["coords"], observed["values"], shape, given=Given(**given))


def held_out_to_arrays(held: HeldOut | None) -> dict[str, NDArray[Any]]:
    """Predictions for held-out values as named arrays."""
    return (
        {} if held is None else {f"held out/{name}": each for name, each in held._asdict().items()}
    )


def held_out_from_arrays(
    arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]
) -> HeldOut | None:
    """Inverse of `held_out_to_arrays`, checked; None for files without held-out values."""
    found = _under(arrays, "held out")
    if not found:
        return None
    check_cells(found, HeldOut._fields[1:], shape, "the held-out data")
    return HeldOut(*(found[name] for name in HeldOut._fields))


def classes_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
    """The two labels of a classifier, checked; None for a regressor."""
    found = _under(arrays, "classes")
    if not found:
        return None
    labels = found.get("labels")
    if labels is None or len(found) > 1 or labels.shape != (2,) or labels.dtype.kind not in "Uiufb":
        raise ValueError("its classes must be two labels: text, numbers or booleans.")
    if not labels[0] < labels[1]:
        raise ValueError(f"its classes must be different and sorted, got {labels.tolist()}.")
    check_keys(labels, "its classes")
    return labels


def estimates_to_arrays(estimates: Sequence[RingEstimate]) -> dict[str, NDArray[Any]]:
    """Rings of online EM as named arrays: "learner 0/flat", ..."""
    return {
        f"learner {number}/{name}": array
        for number, estimate in enumerate(estimates)
        for name, array in _estimate_to_arrays(estimate).items()
    }


def _estimate_to_arrays(estimate: RingEstimate) -> dict[str, NDArray[Any]]:
    """Everything needed to continue with new data."""
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
    arrays: Mapping[str, NDArray[Any]],
    chains: Sequence[Draws],
    shape: tuple[int, ...],
    likelihood: Likelihood,
    prior: RingPrior,
) -> list[RingEstimate]:
    """Inverse of `estimates_to_arrays`, checked: one per chain and of its size, or none.

    Adam's moments are not restored.
    """
    groups = _numbered(arrays, "learner ")
    if groups and len(groups) != len(chains):
        raise ValueError(f"it has {len(groups)} rings of online EM, but {len(chains)} chains.")
    found = []
    for number, own in enumerate(groups):
        draws = chains[number]
        size = RingSize(draws.strands, tuple(draws.bonds.tolist()))
        check_learner(own, shape, size, likelihood, f"learner {number}")
        found.append(_estimate_from_arrays(own, prior.weights.learned))
    return found


def _estimate_from_arrays(own: Mapping[str, NDArray[Any]], weights_learned: bool) -> RingEstimate:
    order = sum(name.startswith("counts ") for name in own)

    def of_modes(name: str) -> tuple[NDArray[Any], ...]:
        return tuple(own[f"{name} {mode}"] for mode in range(order))

    weights, counts = of_modes("weights"), of_modes("counts")
    size = RingSize(len(weights[0]), tuple(each.shape[1] for each in weights))
    priors = tuple(
        SlicePrior(**{name: own[f"prior {mode} {name}"] for name in PRIOR_FIELDS})  # type: ignore
        for mode in range(order)
    )
    estimate = RingEstimate(
        size=size,
        counts=counts,
        cores=own["flat"],
        weights=weights,
        gains=of_modes("gains"),
        nuisance=own["nuisance"],
        slice_priors=priors,
        curvature=own["curvature"],
        adam=AdamMoments.empty(0, 0),
        weight_adam=(),
        weight_gradient=np.zeros(sum(each.size for each in weights) if weights_learned else 0),
        spreads=(None,) * order,
        width=float(own["width"]),
    )
    return forgotten(estimate)


def _member(name: str) -> zipfile.ZipInfo:
    """Archive member with a fixed date, so that identical models give identical files."""
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
    if isinstance(value, Mapping):
        return [[to_plain(name), to_plain(item)] for name, item in value.items()]
    return value


def from_plain(value: Any, classes: Mapping[str, Callable[..., Any]]) -> Any:
    """Inverse of `to_plain`, for known classes only."""
    if isinstance(value, dict):
        arguments = {key: from_plain(item, classes) for key, item in value.items()}
        name = arguments.pop("class", None)
        if not isinstance(name, str) or name not in classes:
            raise ValueError(f"the model uses {shorten(name)}, which this release does not know.")
        if name == "RingPrior" and "cores" in arguments:  # version 2: one prior for all modes
            arguments["modes"] = (arguments.pop("cores"),)
        if name == "Bernoulli":  # absent in older files, which have none
            arguments.setdefault("intercept", False)
        check_settings(classes[name], arguments)
        return classes[name](**arguments)
    if isinstance(value, list):
        return tuple(from_plain(item, classes) for item in value)
    return value


def storable_classes() -> dict[str, Callable[..., Any]]:
    """Classes that a model file may name."""
    found = {name: getattr(likelihoods, name) for name in likelihoods.__all__}
    found |= {name: getattr(priors, name) for name in priors.__all__}
    found |= {cls.__name__: cls for cls in POLICIES}
    return {name: cls for name, cls in found.items() if hasattr(cls, "__dataclass_fields__")}


def versions() -> dict[str, str]:
    """Everything besides seed and data that determines a result, bit for bit."""
    return {
        "bayesring": version("bayesring"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
        "processor": platform.processor() or "unknown",
    }
