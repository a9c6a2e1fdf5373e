"""Forecasts: the labels that come after the last of an ordered mode."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import check_coordinates, check_count, check_fits, check_level, check_within
from bayesring.data import inputs
from bayesring.data.labels import Labels, NewLabels
from bayesring.data.opentables import is_table, loaded, open_table
from bayesring.data.positions import following, mode_of, positions_of
from bayesring.data.tables import locate
from bayesring.model.types import IntArray
from bayesring.posterior import Prediction
from bayesring.posterior.unseen import widen
from bayesring.predicting import NO_TABLE, Predicting
from bayesring.priors import Coupling
from bayesring.sharing import turned
from bayesring.wording import as_text, shown


class Forecasting(Predicting):
    """Methods of a class that holds the result of a fit to an ordered mode."""

    def forecast(
        self,
        steps: int,
        *,
        mode: str | int | None = None,
        cells: Any = None,
        level: float = 0.9,
    ) -> Any:
        """What comes next: the labels after the last of an ordered mode, in every fibre.

        Parameters
        ----------
        steps : how many; they follow at the usual distance of the labels, months by months
        mode : the mode that goes on; may be left out if only one is ordered, or only one of those
            holds times
        cells : a table of the labels of the other modes, one row per fibre, or their coordinates;
            None for all fibres
        level : probability of the intervals

        Returns
        -------
        table, or `Prediction` of arrays
            A table with keys, mean, std, lower and upper if one was fitted, as `predict_table`
            gives; otherwise arrays, labelled ones if such was fitted. Their axis `mode` has the
            length `steps`, or, given `cells`, they have one row per fibre.

        Examples
        --------
        >>> ring.forecast(2).mean.shape    # two more steps along the ordered mode
        (9, 8, 2)
        """
        posterior, steps = self._posterior(), check_count(steps, "steps", 1)
        place = self._ordered_mode(mode)
        size, levels = posterior.shape[place], self.labels_.levels[place]
        zones = self.labels_.zones
        sizes = [steps if own == place else each for own, each in enumerate(posterior.shape)]
        others, added = (None, ()) if cells is None else self._fibres(cells, place)
        shape = tuple(sizes) if others is None else (len(others), steps)
        check_fits(
            8 * (len(sizes) + 4) * prod(shape),
            f"a forecast of {prod(shape):,} cells",
            "name the cells that you need with cells=.",
        )
        known = np.arange(size) if levels is None else levels
        new = following(known, steps, zones[place] if zones else None)
        if others is None:
            coords = np.stack([index.ravel() for index in np.indices(shape)], axis=1)
        else:
            coords = np.insert(np.repeat(others, steps, axis=0), place, 0, axis=1)
            coords[:, place] = np.tile(np.arange(steps), len(others))
        coords[:, place] += size
        grown = tuple(
            new if own == place else (added[own - (own > place)] if added else new[:0])
            for own in range(len(sizes))
        )
        wider = widen(posterior, self.prior_, grown, self.seed_)
        with self._shown(wider, len(coords)) as reporting:
            found = reporting.summarise(turned(coords, self.symmetric_), check_level(level))
        labels = self._grown(grown)
        if self.table_kind_ not in NO_TABLE:
            return inputs.table_of_cells(self.table_kind_, labels, coords, found._asdict())
        boxed = [each.reshape(shape) for each in found]
        if others is not None:
            return Prediction(*boxed)
        own = tuple(new if d == place else each for d, each in enumerate(labels.levels))
        named = labels._replace(levels=own)
        pairs = zip(Prediction._fields, boxed, strict=True)
        return Prediction(*(self._tensor(each, name, named) for name, each in pairs))

    def _grown(self, added: NewLabels) -> Labels:
        """The labels with new ones at the end."""
        levels: list[NDArray[Any] | None] = [
            own if own is None or not len(new) else np.concatenate([own, new])
            for own, new in zip(self.labels_.levels, added, strict=True)
        ]
        return self.labels_._replace(levels=tuple(levels))

    def _fibres(self, cells: Any, place: int) -> tuple[IntArray, NewLabels]:
        """Coordinates of fibres in the modes other than `place`, and labels unknown to the fit."""
        others = [own for own in range(len(self.posterior_.shape)) if own != place]
        shape = [self.posterior_.shape[own] for own in others]
        labels = Labels(
            tuple(self.labels_.names[own] for own in others),
            tuple(self.labels_.levels[own] for own in others),
            None,
            tuple(self.labels_.zones[own] for own in others) if self.labels_.zones else (),
        )
        cells = loaded(cells, "cells")
        if is_table(cells):
            return locate(open_table(cells, "cells"), labels, shape)
        coords = check_coordinates(cells, "cells", len(others))
        check_within(coords, shape, "cells")
        return coords, ()

    def _ordered_mode(self, mode: str | int | None) -> int:
        """The mode to go on with."""
        names = self.labels_.names
        chains = [d for d, own in enumerate(self.prior_.modes) if own.coupling is Coupling.CHAIN]
        if mode is not None:
            place = mode_of(mode, names, "mode")
            own = self.labels_.levels[place]
            if place not in chains and own is not None and positions_of(own) is None:
                raise ValueError(
                    f"mode names {shown(names[place])}, whose labels, such as {as_text(own[0])}, "
                    "are text, which has no order; fit with numbers or times."
                )
            if place not in chains:
                raise ValueError(
                    f"mode names {shown(names[place])}, which is not ordered; fit with "
                    f"order=[{shown(names[place])}]."
                )
            return place
        if not chains:
            raise ValueError("forecast needs an ordered mode, and no mode is; fit with order=.")
        levels = self.labels_.levels
        times = [d for d in chains if (own := levels[d]) is not None and own.dtype.kind == "M"]
        found = chains if len(chains) == 1 else times
        if len(found) != 1:
            ordered = [names[each] for each in chains]
            raise ValueError(f"mode must say which of the ordered modes {ordered} goes on.")
        return found[0]
