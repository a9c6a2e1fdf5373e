"""Options that commands share, stated once: a parameter of a command may be a group of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, get_type_hints

from bayesring.command import ending
from bayesring.command import options as opt


class Fitting(NamedTuple):
    """How a ring is fitted."""

    rank: opt.Rank = "auto"
    order: opt.Ordered = "auto"
    features: opt.FeatureFiles = None
    share: opt.Share = None
    inference: opt.Inference = "gibbs"
    chains: opt.Chains = None
    draws: opt.Draws = "auto"
    warmup: opt.Warmup = "auto"
    max_time: opt.MaxTime = None
    max_memory: opt.MaxMemory = 2**30
    seed: opt.Seed = 0
    jobs: opt.Jobs = None

    def settings(self) -> dict[str, Any]:
        """The same as arguments in Python."""
        return {
            "rank": opt.rank_in(self.rank),
            "order": opt.order_in(self.order),
            "features": opt.features_in(self.features),
            "share": opt.share_in(self.share),
            "inference": self.inference,
            "chains": "auto" if self.chains is None else self.chains,
            "draws": opt.length_in(self.draws),
            "warmup": opt.length_in(self.warmup),
            "max_time": self.max_time,
            "max_memory": self.max_memory,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }


class OfCells(NamedTuple):
    """Columns that say more of the cells of a table, those to fill among them."""

    exposure: opt.Exposure = None
    weight: opt.Weight = None
    value_error: opt.ValueError_ = None

    def extras(self) -> dict[str, str]:
        """The same as arguments in Python."""
        return extras_in(self._asdict())


class OfValues(NamedTuple):
    """Columns that say more of the values of a table."""

    exposure: opt.Exposure = None
    weight: opt.Weight = None
    value_error: opt.ValueError_ = None
    value_lower: opt.ValueLower = None
    value_upper: opt.ValueUpper = None

    def extras(self) -> dict[str, str]:
        """The same as arguments in Python."""
        return extras_in(self._asdict())


def extras_in(options: Mapping[str, str | None]) -> dict[str, str]:
    """Columns that were named, by their arguments in Python."""
    return {
        "sample_weight" if name == "weight" else name: column
        for name, column in options.items()
        if column is not None
    }


class Keeping(NamedTuple):
    """What is kept of a fit that ends early."""

    checkpoint: opt.CheckpointFolder = None
    checkpoint_every: opt.CheckpointEvery = 30.0
    keep_partial: opt.KeepPartial = False

    def safety(self, force: bool) -> Any:
        """Checkpoint and interrupt settings; also sets what `main` says about resuming."""
        from bayesring.command.workflows import Safety
        from bayesring.fitting import Keep

        safety = Safety(Keep(self.checkpoint, self.checkpoint_every), self.keep_partial, force)
        ending.go_on = safety.go_on
        return safety


class Text(NamedTuple):
    """How the text of a file with values is read."""

    sep: opt.Sep = None
    decimal: opt.Decimal = "."
    encoding: opt.Encoding = None
    na: opt.Na = None
    sheet: opt.Sheet = None

    def dialect(self) -> Any:
        """The same for the functions that read."""
        return opt.dialect_of(*self)


class TextOfKeys(NamedTuple):
    """How the text of a file that lists cells is read."""

    sep: opt.Sep = None
    decimal: opt.Decimal = "."
    encoding: opt.Encoding = None
    sheet: opt.Sheet = None

    def dialect(self) -> Any:
        """The same for the functions that read."""
        return opt.dialect_of(self.sep, self.decimal, self.encoding, None, self.sheet)


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the options of its groups one by one, where each group stands."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: each for name, each in hints.items() if hasattr(each, "_fields")}
    listed: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            listed.append(parameter.replace(annotation=hints[name]))
            continue
        own = get_type_hints(groups[name], include_extras=True)
        listed += [
            inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                default=groups[name]._field_defaults[option],
                annotation=own[option],
            )
            for option in groups[name]._fields
        ]

    @wraps(command)
    def run(**named: Any) -> None:
        given = {
            name: group(**{option: named.pop(option) for option in group._fields})
            for name, group in groups.items()
        }
        command(**named, **given)

    run.__annotations__ = {each.name: each.annotation for each in listed} | {"return": None}
    run.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    return run
