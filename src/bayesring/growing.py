"""What a fitted model does with new observations: it goes on learning, or folds new labels in."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, Self

import numpy as np

from bayesring.checks import check_fits
from bayesring.data import inputs
from bayesring.data.extras import given_arguments
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations, in_order, joined, renumbered, standardised
from bayesring.data.positions import (
    axes_of,
    placed_more,
    positions_among,
    prolonged,
    with_new_sites,
)
from bayesring.featuring import grown, keys_of_mode, with_features
from bayesring.fitting import Keep, fit_more
from bayesring.oncluster import is_dask
from bayesring.ordering import in_line, rebound
from bayesring.posterior import folding
from bayesring.predicting import Predicting
from bayesring.settings import Settings
from bayesring.wording import shown


class OnlyOnline:
    """A method that only estimators with online EM have; others say what to set.

    As scikit-learn's `available_if`, whose own message would hide that.
    """

    def __init__(self, method: Any) -> None:
        self._method = method
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, ring: Any, owner: type | None = None) -> Any:
        if ring is None:
            return self._method
        if ring.inference != "online-em":
            raise AttributeError(
                f"partial_fit needs inference='online-em', but inference is {ring.inference!r}."
            )
        return MethodType(self._method, ring)


class Growing(Predicting):
    """Methods that take new observations."""

    inference: str

    @abstractmethod
    def _settings(self, names: Sequence[str] = (), seed: int | None = None) -> Settings:
        """The parameters, checked."""

    @abstractmethod
    def _set_fitted(self) -> None:
        """Set the attributes that follow from the posterior."""

    @OnlyOnline
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        shape: tuple[int, ...] | None = None,
        exposure: Any = None,
        sample_weight: Any = None,
        positions: Mapping[str | int, Any] | None = None,
        features: Mapping[str | int, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> Self:
        """Go on with new observations; only for online EM. The first call fits.

        What was learned before enters as a prior: the old observations are not needed again. If
        they are kept (`observed_`), short chains over all observations give the draws.
        Coordinates or labels beyond those known make their modes grow, and new slices start from
        what the known ones have in common. Noise and units stay as the first call found them.
        `exposure` is that of counts, and `sample_weight` that of rows, one unless given, and
        `features` are those of new labels, if the fit had some; see `fit`. `positions` says where
        new coordinates lie, if the first call had positions for their mode: for the new ones alone,
        after the last known one, or for all. Left out, they go on at the usual distance.
        Interrupted, it leaves the model as it was.

        `checkpoint` names a folder for the state of this call, a new one for each: killed and run
        again with the same model, data and folder, it goes on from there and ends with the same
        bits; after its end, it returns at once. See `fit`.

        Returns
        -------
        self
            The estimator, which has learned from the new observations.

        Examples
        --------
        >>> stream = TensorRing(2, inference="online-em", epochs=5, **settings)
        >>> stream = stream.fit(X[:150], y[:150])
        >>> stream.partial_fit(X[150:], y[150:]).n_observations_ == len(y)
        True
        """
        if is_dask(X):
            raise ValueError(
                "X is a Dask DataFrame, and partial_fit learns from data in memory; give it the "
                "computed partitions in turn."
            )
        extras = given_arguments(exposure=exposure, sample_weight=sample_weight)
        if not hasattr(self, "posterior_"):
            fit: Any = self.fit  # type: ignore[attr-defined]
            extras |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
            return fit(  # type: ignore[no-any-return]
                X, y, shape=shape, positions=positions, features=features, **extras
            )
        keep = Keep(checkpoint, checkpoint_every)
        keep.check()
        posterior, settings = self.posterior_, self._settings(self.labels_.names, self.seed_)
        data, labels = inputs.observe_more(
            X, y, shape, self.labels_, posterior.shape, extras, posterior.likelihood
        )
        posterior.check_values(data.values)
        data, labels, described, _ = grown(data, labels, features, self.features_, posterior.shape)
        labels = self._with_places(labels, data.shape, X, positions)
        data = data._replace(location=posterior.location, scale=posterior.scale)
        axes = with_features(axes_of(labels, data.shape), described)
        prior = rebound(self.prior_, axes)
        model = settings.model._replace(likelihood=posterior.likelihood, prior=prior)
        everything = joined(self.observed_, data)
        estimates, drawn = fit_more(self.estimates_, data, model, settings, everything, keep, axes)
        # only here, at the end, anything changes
        self.posterior_ = replace(posterior, shape=data.shape, chains=tuple(drawn))
        self.estimates_, self.labels_, self.observed_ = estimates, labels, everything
        self.prior_, self.features_ = prior, described
        self.n_observations_ += len(data.values)
        self._set_fitted()
        return self

    def fold_in(
        self,
        X: Any,
        y: Any = None,
        *,
        shape: tuple[int, ...] | None = None,
        exposure: Any = None,
        positions: Mapping[str | int, Any] | None = None,
        features: Mapping[str | int, Any] | None = None,
    ) -> Self:
        """A new model that also knows the labels of new observations, without refitting.

        Every row of `X` must have a label, or a coordinate, that the fit did not know: the day
        after the last, a new station. In every kept draw the slices of new labels are drawn given
        their observations; see `bayesring.posterior.folding`. Known slices, noise and rank stay as
        they are, so it takes moments; after many new observations, fit anew. `exposure` is that of
        counts, one unless given; see `fit`. `features` are those of new labels, if the fit had
        some; labels that only they have are known, too, and `X` may be None then. `positions` says
        where new coordinates lie, as for `partial_fit`. This model does not change, and the new one
        does not go on with `partial_fit`.

        Returns
        -------
        TensorRing
            A new model; this one stays as it is.

        Examples
        --------
        >>> ring.fold_in([[9, 0, 0], [9, 1, 0]], [0.4, 0.6]).shape_    # a tenth row of the tensor
        (10, 8, 7)
        """
        posterior = self._posterior()
        if self.prior_.share:
            raise ValueError("fold_in cannot be used with share; fit anew with the new labels.")
        if X is None and y is None and features is None:
            raise ValueError("X is None, but observations or features of new labels are required.")
        if X is None and exposure is not None:
            raise ValueError("exposure is that of observations, but X is None.")
        if X is None and features is not None:
            nothing = np.empty((0, len(posterior.shape)), dtype=np.int64)
            data = Observations(nothing, np.empty(0), posterior.shape)
            labels = self.labels_
        else:
            extras = given_arguments(exposure=exposure)
            data, labels = inputs.observe_more(
                X, y, shape, self.labels_, posterior.shape, extras, posterior.likelihood
            )
        more = grown(data, labels, features, self.features_, posterior.shape)
        data, labels, described, rows = more
        posterior.check_values(data.values)
        check_fits(
            16 * sum(len(own.flat) * own.size.parameters(data.shape) for own in posterior.chains),
            f"the draws of a model of shape {data.shape}",
            "give new labels numbers next to the old ones.",
        )
        is_new = np.any(data.coords >= posterior.shape, axis=1)
        if not len(is_new) and (features is None or data.shape == posterior.shape):
            other = (
                "" if features is None else ", or features of a label that the model does not know"
            )
            raise ValueError(f"fold_in needs at least one row with a value{other}.")
        if not is_new.all():
            raise ValueError(
                "fold_in is for rows with a label that the model does not know, but row "
                f"{int(np.argmin(is_new))} of those with a value has none; fit anew with these."
            )
        labels = self._with_places(labels, data.shape, X, positions)
        added = tuple(
            keys_of_mode(labels, data.shape, mode)[size:]
            for mode, size in enumerate(posterior.shape)
        )
        lines = in_line(self.prior_, labels, data.shape)
        group = getattr(posterior.likelihood, "group_mode", None)
        if group is not None and np.any(np.diff(lines[group]) < 0):
            raise ValueError(
                f"fold_in cannot put a label between known ones of {shown(labels.names[group])}, "
                "whose labels have noise of their own (noise_by); fit anew with the new ones."
            )
        standard = in_order(standardised(data, posterior.location, posterior.scale))
        new = added, rows, positions_among(labels, posterior.shape, added)
        folded = folding.fold_in(posterior, self.prior_, new, standard, self.seed_)
        ring = copy.copy(self)
        ring.posterior_ = folded.at_levels(lines)
        ring.labels_ = labels.at(lines)
        ring.features_ = tuple(
            own if own is None else own.at(line) for own, line in zip(described, lines, strict=True)
        )
        axes = with_features(axes_of(ring.labels_, data.shape), ring.features_)
        ring.prior_ = rebound(self.prior_, axes)
        everything = joined(self.observed_, data)
        ring.observed_ = None if everything is None else in_order(renumbered(everything, lines))
        if self.held_out_ is not None:
            ring.held_out_ = renumbered(self.held_out_, lines)
        ring.estimates_ = []
        ring.n_observations_ = self.n_observations_ + len(data.values)
        ring._set_fitted()
        return ring

    def _with_places(
        self,
        labels: Labels,
        shape: Sequence[int],
        X: Any,
        positions: Mapping[str | int, Any] | None,
    ) -> Labels:
        """Labels with the places of new ones: as given, as `X` says, or at the usual distance."""
        known = self.posterior_.shape
        wider = labels if positions is None else placed_more(labels, positions, known, shape)
        given = {} if positions is None else positions
        found = with_new_sites(prolonged(wider, shape), known, shape, X)
        for mode, name in enumerate(labels.names):
            sites = wider.sites_of(mode)
            if sites is not None and (name in given or mode in given):  # rather than those of X
                found = found.with_sites(mode, sites)
        return found
