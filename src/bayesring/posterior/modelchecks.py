"""Rules for the parts of a model file, and functions that enforce them.

Kernels do not check their arguments, so type, shape and range of every array are checked before a
kernel reads it. ValueErrors name the part, what was found and what was expected, but not the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import inf, isfinite, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import KINDS
from bayesring.likelihoods import Likelihood
from bayesring.model.types import IntArray, RingSize
from bayesring.priors import BondPrior, ModePrior
from bayesring.wording import shorten

MOST_MODES = 64
MOST_COUNT = 2**53
LARGEST = 1e100
"""Bound on entries in standard units and on precisions, so products and squares stay finite."""
LEAST = {"weight": 0.0, "exposure": 5e-324, "error": 0.0, "std": 0.0}
"""Least of what is known of cells; anything if not named."""
ENDS = ("lower", "upper")


class Expected(NamedTuple):
    """Requirements on an array."""

    kinds: str
    """Allowed dtype kinds, in NumPy's notation."""
    shape: tuple[int, ...]
    least: float = -inf
    most: float = inf
    finite: bool = True


class Rule(NamedTuple):
    """Requirements on a field of the description."""

    fits: Callable[[Any], bool]
    expected: str


def whole(shape: tuple[int, ...], least: int, most: int = MOST_COUNT) -> Expected:
    """Integers in a range."""
    return Expected("iu", shape, least, most)


def real(shape: tuple[int, ...], least: float = -LARGEST, most: float = LARGEST) -> Expected:
    """Finite float64 in a range."""
    return Expected("f", shape, least, most)


def is_whole(value: Any, least: int = 0, most: float = 2**31) -> bool:
    """Whether a value is an integer in a range; booleans are not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isfinite(value) if isinstance(value, float) else abs(value) < 2**63


def _counted(least: int) -> Rule:
    return Rule(lambda value: is_whole(value, least, 2**63), f"an integer of at least {least}")


def _auto_or(least: int) -> Rule:
    counted = _counted(least)
    return Rule(lambda v: v == "auto" or counted.fits(v), f"'auto' or {counted.expected}")


def listed(value: Any, fits: Callable[[Any], bool], most: float = inf, least: int = 0) -> bool:
    """Whether a value is a list of so many items that fit."""
    is_list = isinstance(value, (list, tuple)) and least <= len(value) <= most
    return is_list and all(map(fits, value))


def _names_modes(value: Any, periods: bool = False) -> bool:
    names: Any = [value] if isinstance(value, str) else value
    if periods and listed(names, lambda pair: isinstance(pair, list) and len(pair) == 2):
        periods = all(type(how) is bool or is_number(how) for _, how in names)
        return periods and _names_modes([mode for mode, _ in names])
    return listed(names, lambda each: isinstance(each, str) or is_whole(each), MOST_MODES)


TEXT = Rule(lambda value: isinstance(value, str), "text")
FLAG = Rule(lambda value: value in (True, False), "true or false")
PARAMETERS: Mapping[str, Rule] = {
    "inference": TEXT,
    "order": Rule(lambda v: v is None or _names_modes(v, True), "null, modes, or their periods"),
    "share": Rule(lambda value: value is None or listed(value, _names_modes), "null or pairs"),
    "update": TEXT,
    "dtype": TEXT,
    "shape": Rule(
        lambda value: value is None or listed(value, lambda size: is_number(size) and size >= 1),
        "null or a list of positive integers",
    ),
    "warmup": _auto_or(0),
    "draws": _auto_or(1),
    "chains": _auto_or(1),
    "max_time": Rule(lambda v: v is None or (is_number(v) and v > 0), "null or a positive number"),
    "max_memory": _counted(1),
    "batch_size": _auto_or(1),
    "epochs": _counted(1),
    "n_jobs": Rule(
        lambda value: value is None or (is_whole(value, -1024, 1024) and value != 0),
        "null or an integer other than 0, of at most 1024",
    ),
    "random_state": Rule(lambda value: is_whole(value, 0, inf), "an integer of at least 0"),
    "progress": FLAG,
}
"""Parameters of the estimator that are plain data."""
DESCRIPTION: Mapping[str, Rule] = {
    "shape": Rule(
        lambda value: listed(value, lambda size: is_whole(size, 1), MOST_MODES, 2),
        "a list of two positive integers or more",
    ),
    "location": Rule(is_number, "a finite number"),
    "scale": Rule(lambda value: is_number(value) and value > 0, "a positive finite number"),
    "warmup": _counted(0),
    "n_observations": _counted(1),
    "versions": Rule(
        lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
        "an object of texts",
    ),
}
"""Fields of the description of a model that are plain data."""
LABELS: Mapping[str, Rule] = {
    "names": Rule(lambda value: listed(value, TEXT.fits, MOST_MODES), "a list of texts"),
    "value": Rule(lambda value: value is None or TEXT.fits(value), "null or text"),
    "table kind": Rule(lambda value: value is None or TEXT.fits(value), "null or text"),
}
"""Fields of the description of labels."""
FIELD_TYPES: Mapping[str, Rule] = {
    "bool": Rule(lambda value: type(value) is bool, "true or false"),
    "int": Rule(is_whole, "an integer of at least 0"),
    "int | tuple[int, ...]": Rule(
        lambda value: is_whole(value, 1) or listed(value, lambda each: is_whole(each, 1)),
        "a positive integer or a list of them",
    ),
    "int | None": Rule(lambda value: value is None or is_whole(value), "null or an integer"),
    "str | int | None": Rule(
        lambda value: value is None or TEXT.fits(value) or is_whole(value), "null, text or integer"
    ),
    "float": Rule(is_number, "a finite number"),
    "float | None": Rule(lambda v: v is None or v == inf or is_number(v), "null or a number"),
    "tuple[tuple[float, ...], ...]": Rule(lambda value: value == (), "an empty list"),
    "tuple[float, ...]": Rule(lambda value: listed(value, is_number), "a list of finite numbers"),
    "tuple[ModePrior, ...]": Rule(
        lambda value: listed(value, lambda each: isinstance(each, ModePrior), MOST_MODES, 1),
        "a list of priors of modes",
    ),
    "NormalWishart | Gradual": Rule(lambda value: isinstance(value, ModePrior), "a prior"),
    "Design | None": Rule(lambda value: value is None, "null"),
    "Pairs": Rule(lambda v: listed(v, lambda p: listed(p, is_whole, 2, 2)), "pairs of modes"),
    "BondPrior": Rule(lambda value: isinstance(value, BondPrior), "a prior of weights"),
}
"""Fields of likelihoods, priors and rank policies by their annotation."""


def check_fields(found: Any, rules: Mapping[str, Rule], where: str) -> dict[str, Any]:
    """The fields listed in `rules`; raises an error if one is missing or invalid."""
    if not isinstance(found, dict):
        raise ValueError(f"{where} must be an object, got {shorten(found)}.")
    for name, rule in rules.items():
        if name not in found:
            raise ValueError(f"{where} lacks {name!r}.")
        if not rule.fits(found[name]):
            raise ValueError(
                f"{name!r} in {where} must be {rule.expected}, got {shorten(found[name])}."
            )
    return {name: found[name] for name in rules}


def check_parameters(found: Any) -> dict[str, Any]:
    """Parameters of the estimator, known ones only; older files may have fewer."""
    if not isinstance(found, dict) or "random_state" not in found:
        raise ValueError("the parameters must be an object with a random_state.")
    unknown = sorted(set(found) - set(PARAMETERS))
    if unknown:
        raise ValueError(f"the parameters contain {shorten(unknown[0])}, which is unknown.")
    rules = {name: rule for name, rule in PARAMETERS.items() if name in found}
    return check_fields(found, rules, "the parameters")


def check_settings(cls: Any, settings: Mapping[str, Any]) -> None:
    """Fields of a likelihood, prior or rank policy: only known ones, each of the right type."""
    types = {field.name: str(field.type) for field in fields(cls)}
    for name, value in settings.items():
        if name not in types:
            raise ValueError(f"{cls.__name__} has no field {shorten(name)}.")
        rule = FIELD_TYPES[types[name]]
        if not rule.fits(value):
            raise ValueError(
                f"{name!r} of {cls.__name__} must be {rule.expected}, got {shorten(value)}."
            )


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], parts: Mapping[str, Expected], where: str
) -> None:
    """The arrays listed in `parts`; raises an error if one is missing, unknown or invalid."""
    for name in parts.keys() - arrays.keys():
        raise ValueError(f"{where} lacks the array {name!r}.")
    for name in arrays.keys() - parts.keys():
        raise ValueError(f"{where} has an array {shorten(name)}, which is unknown.")
    for name, part in parts.items():
        _check_array(arrays[name], part, f"the array {name!r} of {where}")


def _check_array(array: NDArray[Any], part: Expected, where: str) -> None:
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in part.kinds or (kind == "f" and size not in (4, 8)):
        expected = " or ".join(dict.fromkeys(KINDS[kind] for kind in part.kinds))
        raise ValueError(f"{where} holds {array.dtype}, but {expected} are required.")
    if array.shape != part.shape:
        raise ValueError(f"{where} has the shape {array.shape}, but {part.shape} is required.")
    if not array.size:
        return
    if part.finite and not np.isfinite(array).all():
        raise ValueError(f"{where} holds numbers that are not finite.")
    low, high = array.min().item(), array.max().item()  # bounds may be beyond float32
    if part.finite and not (low >= part.least and high <= part.most):
        raise ValueError(
            f"{where} holds numbers from {array.min()} to {array.max()}, but {part.least} to "
            f"{part.most} is allowed."
        )


def check_chain(
    arrays: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
    likelihood: Likelihood,
    where: str,
) -> RingSize:
    """All arrays of one chain, and the size of its ring."""
    order = len(shape)
    frame = {"strands": whole((), 1), "bonds": whole((order,), 1)}
    check_arrays({name: arrays[name] for name in frame if name in arrays}, frame, where)
    size = RingSize(int(arrays["strands"]), tuple(map(int, arrays["bonds"])))
    n_draws, n_scans = _length(arrays, "nuisance", where), _length(arrays, "rank", where)
    if n_draws < 1:
        raise ValueError(f"{where} holds no draws.")
    n_entries = size.parameters(shape)
    found = arrays["flat"].shape if "flat" in arrays else ()
    if found != (n_draws, n_entries):
        raise ValueError(
            f"the draws of {where} do not fit the shape {shape}: the array 'flat' has the shape "
            f"{found}, but {(n_draws, n_entries)} is required."
        )
    traces = {
        name: Expected("f", (n_scans,), finite=False)
        for name in arrays
        if name.startswith("trace ")
    }
    parts = frame | {
        "flat": real((n_draws, n_entries)),
        "starts": whole((order,), 0),
        "nuisance": _nuisance(likelihood, n_draws),
        "scans": whole((n_draws,), 1),
        "weights": real((n_draws, size.strands * sum(size.bonds))),
        "rank": whole((n_scans, order), 1),
        "log_likelihood": Expected("f", (n_scans,), finite=False),
    }
    check_arrays(arrays, parts | traces, where)
    likelihood.check_nuisance(arrays["nuisance"], f"the array 'nuisance' of {where}")
    if not np.array_equal(arrays["starts"], layout(shape, size)):
        raise ValueError(
            f"the array 'starts' of {where} says that the cores begin at "
            f"{arrays['starts'].tolist()}, but they begin at {layout(shape, size).tolist()}."
        )
    if np.any(np.diff(arrays["scans"].astype(np.int64)) <= 0):
        raise ValueError(f"the array 'scans' of {where} must increase.")
    _check_reach(arrays["flat"], shape, size, where)
    return size


def check_learner(
    arrays: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
    size: RingSize,
    likelihood: Likelihood,
    where: str,
) -> None:
    """All arrays of one ring of online EM, which must match the size of its chain."""
    n_entries = size.parameters(shape)
    parts = {
        "flat": real((n_entries,)),
        "curvature": real((n_entries,), 0.0),
        "nuisance": _nuisance(likelihood),
        "width": real((), 1 / LARGEST),
    }
    for mode, n_slices in enumerate(shape):
        entries = prod(size.core_shape(mode, 1))
        bond = (size.strands, size.bonds[mode])
        own = arrays.get(f"prior {mode} diagonal")
        rows = 1 if own is not None and own.shape[:1] == (1,) else n_slices
        parts |= {
            f"weights {mode}": real(bond),
            f"gains {mode}": real(bond, 1 / LARGEST),
            f"counts {mode}": whole((n_slices,), 0),
            f"prior {mode} precision": real((entries, entries)),
            f"prior {mode} diagonal": real((rows, entries), 0.0),
            f"prior {mode} linear": real((rows, entries)),
        }
    check_arrays(arrays, parts, where)
    likelihood.check_nuisance(arrays["nuisance"], f"the array 'nuisance' of {where}")
    totals = {float(arrays[f"counts {mode}"].sum(dtype=float)) for mode in range(len(shape))}
    if len(totals) > 1 or not 1 <= min(totals) <= MOST_COUNT:
        raise ValueError(f"the counts of {where} must sum to one positive number in all modes.")


def _nuisance(likelihood: Likelihood, *draws: int) -> Expected:
    """Parameters of a likelihood, which checks their ranges itself."""
    return real((*draws, len(likelihood.initial_nuisance())))


def check_cells(
    arrays: Mapping[str, NDArray[Any]],
    numbers: Sequence[str],
    shape: tuple[int, ...],
    where: str,
) -> None:
    """Coordinates inside the tensor, their finite values, and what else is known of these."""
    n = _length(arrays, "coords", where)
    parts = {
        name: Expected("f", (n,), LEAST.get(name, -inf), finite=name not in ENDS)
        for name in numbers
    }
    check_arrays(arrays, {"coords": whole((n, len(shape)), 0)} | parts, where)
    if n and np.any(arrays["coords"].max(axis=0) >= np.array(shape)):
        raise ValueError(f"the coordinates of {where} are beyond the shape {shape}.")
    if any(name in numbers for name in ENDS):
        _check_ends([arrays.get(name) for name in ENDS], where)


def _check_ends(ends: Sequence[NDArray[Any] | None], where: str) -> None:
    """Lower ends below upper ones, and both NaN where the value itself is known."""
    lower, upper = ends
    if lower is None or upper is None:
        raise ValueError(f"{where} must have both lower and upper ends, or neither.")
    wrong = ~((lower < upper) | (np.isnan(lower) & np.isnan(upper)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{where} must have lower ends below upper ones, got {lower[row]:g} and "
            f"{upper[row]:g} in row {row}."
        )


def layout(shape: tuple[int, ...], size: RingSize) -> IntArray:
    """Start of each core in the flat array of all entries of a ring, as in `ring.FlatRing`."""
    sizes = [prod(size.core_shape(mode, n)) for mode, n in enumerate(shape)]
    return np.cumsum([0, *sizes[:-1]]).astype(np.int64)


def _check_reach(flat: NDArray[Any], shape: tuple[int, ...], size: RingSize, where: str) -> None:
    """Reject cores whose product could overflow."""
    parts = np.split(flat, layout(shape, size)[1:], axis=1)
    largest = [max(float(part.max()), -float(part.min()), 1.0) for part in parts]
    reach = sum(np.log10(largest)) + sum(np.log10(size.bonds)) + np.log10(size.strands)
    if reach > np.log10(LARGEST):
        raise ValueError(f"the draws of {where} are too large: entries could reach 1e{reach:.0f}.")


def _length(arrays: Mapping[str, NDArray[Any]], name: str, where: str) -> int:
    if name not in arrays or not arrays[name].ndim:
        raise ValueError(f"{where} lacks the array {name!r}.")
    return len(arrays[name])
