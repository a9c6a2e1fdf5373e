"""What comes before a fit: labels, features and settings that fit the data, and what to tell."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesring.checks import warn_of_rounded
from bayesring.data.extras import check_carried
from bayesring.data.features import Features
from bayesring.data.kinds import looks_otherwise
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations
from bayesring.data.positions import axes_of
from bayesring.data.traps import DataWarning, find_traps, summarise_data, traps_of_labels
from bayesring.featuring import attach, featured, with_features
from bayesring.likelihoods import Likelihood
from bayesring.model.types import Axis
from bayesring.ordering import ordered, refuse_order
from bayesring.priors.ring_prior import Pairs
from bayesring.settings import Settings
from bayesring.sharing import pairs_of, sharing, together

if TYPE_CHECKING:
    from bayesring.data.parquet.rows import Survey
    from bayesring.engine.spread import Spread


class Prepared(NamedTuple):
    """Observations with all that is known of their labels."""

    data: Observations | Spread
    labels: Labels
    features: tuple[Features | None, ...]
    """Of the labels of each mode."""
    symmetric: Pairs
    """Pairs of modes in which the table is symmetric."""


def warn_of_kind(
    likelihood: str | Likelihood, data: Observations | Spread, stacklevel: int
) -> None:
    """Warn those who take normal noise, because it is the default, for what is clearly not real."""
    if isinstance(likelihood, str) and likelihood == "gaussian" and isinstance(data, Observations):
        for concern in looks_otherwise(data.values):
            warnings.warn(concern, UserWarning, stacklevel=stacklevel)


def check_for_files(**given: Any) -> None:
    """Refuse what can be told of data in memory only."""
    for name, value in given.items():
        if value is not None:
            verb = "are" if name in ("positions", "features") else "is"
            what = "coordinates" if name in ("positions", "shape") else "data in memory"
            raise ValueError(f"{name} {verb} for {what}, but X is the path of a file.")


def prepare(data: Observations | Spread, labels: Labels, share: Any, features: Any) -> Prepared:
    """Join the labels of shared modes, and those that only features know."""
    if isinstance(data, Observations):
        data, labels, symmetric = together(data, labels, share)
        data, labels, described = attach(data, labels, features)
        return Prepared(data, labels, described, symmetric)
    if share or features is not None:
        name = "share" if share else "features"
        raise ValueError(f"{name} is for data in memory, but X lies on the workers of a cluster.")
    return Prepared(data, labels, (None,) * len(data.shape), ())


def settled(settings: Settings, prepared: Prepared, share: Any) -> tuple[Settings, Sequence[Axis]]:
    """Settings for these data, checked, and what is known about the labels of each mode."""
    data, labels, described, _ = prepared
    likelihood = settings.model.likelihood
    if isinstance(data, Observations):
        likelihood.check(data.values)
        check_carried(data.given, likelihood)
    else:
        data.check(likelihood)
    settings = settings.sized(data.shape, data.n)
    settings.check_ring_fits(data.shape, data.n)
    axes = with_features(axes_of(labels, data.shape), described)
    settings = ordered(settings, axes, labels.names, data.n)
    settings = featured(settings, described, labels.names)
    return sharing(settings, pairs_of(share, labels.names), labels.names), axes


def settled_for_rows(settings: Settings, survey: Survey, share: Any) -> Settings:
    """Settings for rows that are read batch by batch, checked."""
    names = survey.labels.names
    refuse_order(settings, "files")
    sharing(settings, pairs_of(share, names), names)
    try:
        settings.model.likelihood.units_from(survey.moments)
    except ValueError as error:  # of the smallest and the largest value, which have no row
        raise ValueError(_without_row(str(error))) from None
    settings = settings.sized(survey.shape, survey.n_observed)
    return settings.bound(survey.moments, names, survey.shape)


def _without_row(message: str) -> str:
    """A message about values that were not read from a row of that number."""
    return re.sub(r" in row \d+", "", message)


def tell(data: Observations, labels: Labels, settings: Settings, stacklevel: int) -> None:
    """One line on what was given, and warnings where it looks wrong."""
    concerns = settings.model.likelihood.data_concerns(data.values)
    for concern in concerns:
        warnings.warn(concern, UserWarning, stacklevel=stacklevel)
    for trap in find_traps(data, labels, bool(concerns)):
        warnings.warn(trap, DataWarning, stacklevel=stacklevel)
    if settings.progress:
        from bayesring.progress import say

        say([summarise_data(data, labels)])


def tell_of_files(survey: Survey, likelihood: Likelihood, stacklevel: int) -> None:
    """Warnings where values or labels of data that are not in memory look wrong."""
    if survey.rounded is not None:
        name = f"value column {survey.labels.value!r}"
        warn_of_rounded(name, *survey.rounded, stacklevel=stacklevel + 1)
    concerns = likelihood.data_concerns(survey.outline) if survey.smallest < survey.largest else []
    for concern in concerns:
        warnings.warn(_without_row(concern), UserWarning, stacklevel=stacklevel)
    for trap in traps_of_labels(survey.labels, survey.counts):
        warnings.warn(trap, DataWarning, stacklevel=stacklevel)
