"""Convert a fitted estimator to a model file and back; `posterior.store` defines the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.data.extras import check_carried
from bayesring.data.modelheaders import one_line
from bayesring.data.observations import HeldOut
from bayesring.data.positions import axes_of
from bayesring.engine.threads import Threads, count_threads
from bayesring.likelihoods import Likelihood
from bayesring.model.rank import RankPolicy
from bayesring.model.spec import Model
from bayesring.posterior import Posterior
from bayesring.posterior import store as storage
from bayesring.posterior.featurefiles import (
    features_from_arrays,
    features_to_arrays,
    features_to_plain,
)
from bayesring.posterior.labelchecks import check_texts
from bayesring.posterior.modelchecks import (
    DESCRIPTION,
    LARGEST,
    check_fields,
    check_parameters,
)
from bayesring.posterior.sitefiles import sites_to_plain
from bayesring.priors import Featured, RingPrior
from bayesring.wording import shorten

TABLE_KINDS = ("pandas", "polars", "pyarrow", "modin", "cudf", "xarray")
"""Libraries whose tables narwhals can make, and that of labelled arrays."""
TEXTS = DESCRIPTION["versions"]
"""An object of texts."""
ORIGIN = "origin"
"""Where a command got its data: texts, among them the name of a file."""
ASKED = "asked"
"""Names that the user gave for objects: `likelihood="auto"`, `rank="auto"`."""


def describe(parameters: Mapping[str, Any], model: Model, seed: int) -> dict[str, Any]:
    """The parameters of a fit as plain data, including everything its bits depend on."""
    objects = ("likelihood", "prior", "rank", "random_state")
    plain = {
        name: storage.to_plain(value) for name, value in parameters.items() if name not in objects
    }
    return {
        "parameters": plain | {"random_state": seed},
        "likelihood": storage.to_plain(model.likelihood),
        "prior": storage.to_plain(model.prior),
        "rank": storage.to_plain(model.policy),
        "versions": storage.versions(),
        ASKED: {
            name: parameters[name] for name in objects[:3] if isinstance(parameters[name], str)
        },
    }


def write_model(ring: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file."""
    posterior = ring.posterior_
    description = ring.description_ | {
        "estimator": type(ring).__name__,
        "sampled": ring.sampled_,
        "fitted likelihood": storage.to_plain(posterior.likelihood),
        "shape": list(posterior.shape),
        "location": posterior.location,
        "scale": posterior.scale,
        "interrupted": ring.interrupted_,
        "warmup": storage.to_plain(ring.warmup_),
        "n_observations": ring.n_observations_,
        "labels": {
            "names": ring.labels_.names,
            "value": ring.labels_.value,
            "table kind": ring.table_kind_,
            "zones": ring.labels_.zones,
            "sites": sites_to_plain(ring.labels_),
        },
        "features": features_to_plain(ring.features_),
        "symmetric": ring.symmetric_,
    }
    check_parameters(description["parameters"])  # now, because on reading it would be too late
    _check_texts(description)
    arrays = storage.chains_to_arrays(posterior.chains, ring.trace_)
    arrays |= storage.training_to_arrays(ring.labels_, ring.observed_)
    arrays |= storage.held_out_to_arrays(ring.held_out_)
    arrays |= storage.estimates_to_arrays(ring.estimates_)
    arrays |= features_to_arrays(ring.features_)
    if hasattr(ring, "classes_"):
        arrays["classes/labels"] = ring.classes_
    storage.write(path, description, arrays)


def read_model(path: str | os.PathLike[str], estimators: Mapping[str, Callable[..., Any]]) -> Any:
    """Read what `write_model` wrote, as the kind of estimator named in the file.

    Attributes derived from the posterior are not set yet. The file may be untrusted; a ValueError
    says what is wrong with it.
    """
    description, arrays = storage.read(path)
    try:
        return _rebuilt(description, arrays, estimators)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        reason = one_line(error)
        raise ValueError(f"{path} is not a complete bayesring model: {reason}.") from error


def _rebuilt(
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    estimators: Mapping[str, Callable[..., Any]],
) -> Any:
    """Build the estimator from checked parts."""
    name = description.get("estimator", "TensorRing")  # absent in older files
    if not isinstance(name, str) or name not in estimators:
        raise ValueError(f"its estimator {shorten(name)} is unknown.")
    storage.check_known(arrays)
    _check_texts(description)
    plain = check_fields(description, DESCRIPTION, "the description")
    parameters = check_parameters(description.get("parameters"))
    if parameters.get("shape") is not None:
        parameters["shape"] = tuple(parameters["shape"])
    if parameters.get("order") and isinstance(parameters["order"][0], list):  # modes and periods
        parameters["order"] = {mode: how for mode, how in parameters["order"]}
    likelihood, fitted = (
        _object(description, name, Likelihood) for name in ("likelihood", "fitted likelihood")
    )
    prior = _object(description, "prior", RingPrior)
    rank = _object(description, "rank", RankPolicy)
    ring = estimators[name](rank, likelihood=likelihood, prior=prior, **parameters)
    shape = tuple(plain["shape"])
    if fitted.group_mode is not None and fitted.group_mode >= len(shape):
        raise ValueError(f"noise_by refers to mode {fitted.group_mode}, which is not there.")
    fitted.check_units(plain["location"], plain["scale"])
    chains, ring.trace_ = storage.chains_from_arrays(arrays, shape, fitted)
    ring.posterior_ = Posterior(
        shape,
        fitted,
        plain["location"],
        plain["scale"],
        chains,
        Threads(count_threads(ring.n_jobs)),
    )
    ring.seed_ = parameters["random_state"]
    ring.n_observations_ = plain["n_observations"]
    ring.warmup_ = plain["warmup"]
    labels = description.get("labels")
    ring.labels_, ring.observed_ = storage.training_from_arrays(labels, arrays, shape)
    ring.features_ = features_from_arrays(description.get("features", {}), arrays, shape)
    axes = axes_of(ring.labels_, shape)
    for mode, own in enumerate(ring.features_):
        axes[mode] = axes[mode] if own is None else axes[mode]._replace(features=own.matrix)
    ring.prior_ = prior.bind(axes)
    check_pairs(prior.share, shape)
    ring.symmetric_ = tuple(tuple(pair) for pair in description.get("symmetric", []))
    if not set(ring.symmetric_) <= set(prior.share):
        raise ValueError(f"it is symmetric in {shorten(ring.symmetric_)}, which are not shared.")
    seconds = {second for _, second in prior.share}
    if [isinstance(own, Featured) for own in ring.prior_.modes] != [
        own is not None or mode in seconds for mode, own in enumerate(ring.features_)
    ]:
        raise ValueError("its modes with features are not those whose prior uses them.")
    ring.table_kind_ = None if labels is None else labels["table kind"]
    if ring.table_kind_ not in (None, *TABLE_KINDS):
        raise ValueError(f"the library {shorten(ring.table_kind_)} of its table is unknown.")
    ring.held_out_ = storage.held_out_from_arrays(arrays, shape)
    ring.estimates_ = storage.estimates_from_arrays(arrays, chains, shape, fitted, ring.prior_)
    ring.sampled_ = description.get("sampled", not ring.estimates_)
    if type(ring.sampled_) is not bool:
        raise ValueError(f"'sampled' must be true or false, got {shorten(ring.sampled_)}.")
    ring.interrupted_ = description.get("interrupted", False)
    if type(ring.interrupted_) is not bool:
        raise ValueError(f"'interrupted' must be true or false, got {shorten(ring.interrupted_)}.")
    _check_values(ring)
    _check_scans(ring)
    classes = storage.classes_from_arrays(arrays)
    if (classes is None) == (name == "TensorRingClassifier"):
        raise ValueError(f"a {name} has {'no ' if classes is None else ''}classes.")
    if classes is not None:
        ring.classes_ = classes
        for each in (likelihood, fitted):
            if not each.binary:
                raise ValueError(f"a {name} has binary values, but not {type(each).__name__}.")
    if ring.estimates_ and ring.inference != "online-em":
        raise ValueError(f"it has rings of online EM, but inference is {ring.inference!r}.")
    kept = ("parameters", "likelihood", "prior", "rank", "versions")
    ring.description_ = {name: description[name] for name in kept}
    for name in (ORIGIN, ASKED):  # absent in older files
        if name in description:
            check_fields(description, {name: TEXTS}, "the description")
            ring.description_[name] = description[name]
    if ORIGIN in ring.description_:
        ring.description_[ORIGIN] = _escaped(ring.description_[ORIGIN])
    return ring


def _escaped(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts that a report can hold: bytes of file names that are no UTF-8 are shown."""
    return {name: text.encode("utf-8", "backslashreplace").decode() for name, text in texts.items()}


def _check_texts(description: Mapping[str, Any]) -> None:
    """Refuse texts that no report could hold, but in names of files, which are not ours."""
    for name, found in description.items():
        if name != ORIGIN:
            check_texts(found, f"the description, in {name!r},")


def _check_values(ring: Any) -> None:
    """Values of a kind that the likelihood has, and nothing known of them that it cannot use."""
    likelihood = ring.posterior_.likelihood
    for data in (ring.observed_, ring.held_out_):
        if data is not None:
            likelihood.check(data.values)
    if ring.observed_ is not None:
        check_carried(ring.observed_.given, likelihood)
    if ring.held_out_ is not None:
        _check_held_out(ring.held_out_, likelihood)


def _check_held_out(held: HeldOut, likelihood: Likelihood) -> None:
    """Predictions of values that were held out: probabilities, or errors that can be counted."""
    if likelihood.binary and np.any((held.mean < 0) | (held.mean > 1)):
        raise ValueError(
            f"the means of the held-out data must be probabilities, got {held.mean.min():g} to "
            f"{held.mean.max():g}."
        )
    wrong = ~(np.abs(held.values - held.mean) < LARGEST * held.std)
    if not likelihood.discrete and wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"the held-out data must be within {LARGEST:g} error bars of their means, got "
            f"{held.values[row]:g} for {held.mean[row]:g} with {held.std[row]:g} in row {row}."
        )


def _check_scans(ring: Any) -> None:
    """Draws that were kept from scans after the warm-up, if there are scans at all."""
    lengths = [len(trace.log_likelihood) for trace in ring.trace_]
    if ring.warmup_ > (min(lengths) - 1 if ring.sampled_ else max(lengths)):
        raise ValueError(f"its warmup of {ring.warmup_} is not within chains of {lengths} scans.")
    last = [int(draws.scans[-1]) for draws in ring.posterior_.chains]
    if ring.sampled_ and any(scan > n for scan, n in zip(last, lengths, strict=True)):
        raise ValueError(f"its draws are from scans up to {last}, but chains have {lengths} scans.")


def check_pairs(pairs: Sequence[tuple[int, int]], shape: tuple[int, ...]) -> None:
    """Pairs of different modes of the same size."""
    used = [mode for pair in pairs for mode in pair]
    fits = len(set(used)) == len(used) and max(used, default=0) < len(shape)
    if not fits or any(first >= second or shape[first] != shape[second] for first, second in pairs):
        raise ValueError(f"it shares {shorten(pairs)}, which are no pairs of equal modes.")


def _object(description: Mapping[str, Any], name: str, kind: Any) -> Any:
    """A likelihood, prior or rank policy, rebuilt from its plain form."""
    found = storage.from_plain(description.get(name), storage.storable_classes())
    if not isinstance(found, kind):
        raise ValueError(
            f"{name!r} in the description must be a {kind.__name__}, got {shorten(found)}."
        )
    return found
