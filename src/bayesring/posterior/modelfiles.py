"""A fitted estimator as a model file, and back; `bayesring.posterior.store` knows the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from bayesring.posterior import store as storage
from bayesring.engine.threads import Threads, count_threads
from bayesring.posterior import Posterior
from bayesring.model.spec import Model


def describe(parameters: Mapping[str, Any], model: Model, seed: int) -> dict[str, Any]:
    """The parameters of a fit as plain data, with what its bits depend on."""
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
    }


def write_model(ring: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file."""
    posterior = ring.posterior_
    description = ring.description_ | {
        "fitted likelihood": storage.to_plain(posterior.likelihood),
        "shape": list(posterior.shape),
        "location": posterior.location,
        "scale": posterior.scale,
        "warmup": ring.warmup_,
        "n_observations": ring.n_observations_,
        "labels": {
            "names": ring.labels_.names,
            "value": ring.labels_.value,
            "table kind": ring.table_kind_,
        },
    }
    arrays = storage.chains_to_arrays(posterior.chains, ring.trace_)
    arrays |= storage.training_to_arrays(ring.labels_, ring.observed_)
    arrays |= storage.held_out_to_arrays(ring.held_out_)
    arrays |= storage.estimates_to_arrays(ring.estimates_)
    storage.write(path, description, arrays)


def read_model(path: str | os.PathLike[str], estimator: Callable[..., Any]) -> Any:
    """What `write_model` wrote, as an estimator; what follows from the posterior is not set yet."""
    description, arrays = storage.read(path)
    classes = storage.storable_classes()
    try:
        parameters: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in description["parameters"].items()
        }
        ring = estimator(
            storage.from_plain(description["rank"], classes),
            likelihood=storage.from_plain(description["likelihood"], classes),
            prior=storage.from_plain(description["prior"], classes),
            **parameters,
        )
        shape = tuple(description["shape"])
        chains, traces = storage.chains_from_arrays(arrays, shape)
        ring.posterior_ = Posterior(
            shape,
            storage.from_plain(description["fitted likelihood"], classes),
            description["location"],
            description["scale"],
            chains,
            Threads(count_threads(ring.n_jobs)),
        )
        ring.prior_ = storage.from_plain(description["prior"], classes).for_shape(shape)
        ring.trace_ = traces
        ring.seed_ = parameters["random_state"]
        ring.n_observations_ = description["n_observations"]
        ring.warmup_ = description["warmup"]
        ring.table_kind_ = description.get("labels", {}).get("table kind")
        ring.labels_, ring.observed_ = storage.training_from_arrays(
            description.get("labels"), arrays, shape
        )
        ring.held_out_ = storage.held_out_from_arrays(arrays)
        ring.estimates_ = storage.estimates_from_arrays(arrays, ring.prior_.weights.learned)
        ring.sampled_ = not ring.estimates_
        kept = ("parameters", "likelihood", "prior", "rank", "versions")
        ring.description_ = {name: description[name] for name in kept}
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is not a complete bayesring model: {error!r}.") from error
    return ring
