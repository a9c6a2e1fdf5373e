"""Methods of a fitted model that say how well it foretells values: log scores, log likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesring.checks import check_fits, check_values
from bayesring.data import inputs
from bayesring.data.opentables import loaded, open_table
from bayesring.data.tables import values_of
from bayesring.model.types import NOTHING, FloatArray, IntArray
from bayesring.posterior import Posterior
from bayesring.posterior.convergence import rows_of
from bayesring.predicting import Predicting


class Scoring(Predicting):
    """Methods of a class that holds the result of a fit, given values to judge it by.

    All densities are those of the model itself, as sampled. Intervals and `sample` may be
    calibrated by held-out values; a density cannot be had from their quantiles.
    """

    def log_score(self, X: Any, y: Any = None) -> FloatArray:
        """log 1/S sum_s p(y_n | f_s, .) of every row, (n,): how well its value was foretold.

        A log density in the units of the data, or a log probability if values are discrete. It is
        that of the model as sampled: calibration by held-out values, which intervals and `sample`
        follow, does not enter. If `X` is a table, it may contain the values, in the value column of
        the fit. `bayesring.compare` tells models apart by these scores.

        Returns
        -------
        array (n,)
            One log density or log probability per row.

        Examples
        --------
        >>> ring.log_score(X[:5], y[:5]).shape
        (5,)
        """
        posterior, coords, values = self._known_values(X, y)
        return posterior.log_score(coords, values)

    def log_likelihood(self, X: Any = None, y: Any = None) -> FloatArray:
        """log p(y_n | f_s, .) of every row for every draw, (chains, draws, n).

        A log density in the units of the data, or a log probability if values are discrete or
        known by their ends only; that of the model as sampled, not calibrated, as LOO and WAIC
        need it. `X` and `y` are as for `log_score`. Without them, of the training
        values in the order of `observed_`, with what else is known of these: their exposures and
        errors, and a row of weight w counts w times; equal rows have become one. If chains were
        interrupted, as many draws of each as of the shortest.

        Returns
        -------
        array (chains, draws, n)
            One number per kept draw and row.

        Examples
        --------
        >>> ring.log_likelihood(X[:5], y[:5]).shape    # two chains of twenty draws
        (2, 20, 5)
        """
        if X is not None:
            posterior, coords, values = self._known_values(X, y)
            given = NOTHING
        elif y is not None:
            raise ValueError("log_likelihood got y without X; give both, or neither.")
        else:
            posterior, data = self._posterior(), self.observed_
            if data is None:
                raise ValueError(
                    "log_likelihood needs X and y, because the model has not kept its training "
                    "values: it was fitted from files, or to 500,000 observations or more."
                )
            coords, values, given = data.coords, data.values, data.given
        check_fits(
            2 * 8 * posterior.n_draws * len(coords),
            f"the log likelihood of {len(coords):,} values in {posterior.n_draws:,} draws",
            "ask for fewer rows at a time, or for log_score, which needs no memory per draw.",
        )
        found = posterior.log_likelihood(coords, values, given)
        rows = np.stack(rows_of(posterior))
        if rows.size == len(found):  # all draws, chain after chain
            return found.reshape(*rows.shape, len(coords))
        return np.asarray(found[rows])

    def _known_values(self, X: Any, y: Any) -> tuple[Posterior, IntArray, FloatArray]:
        """Posterior, coordinates in it, and values, which a table may contain."""
        X = loaded(X, "X")
        posterior, coords = self._locate(X, stacklevel=4)
        if y is None and inputs.is_labelled(X, self.labels_) and self.labels_.value is not None:
            frame = open_table(X, "X")
            if self.labels_.value not in frame.columns:
                raise ValueError(
                    f"X has no column {self.labels_.value!r} of values; name it so, or give y."
                )
            y = self._values_in(frame)
        if y is None:
            raise ValueError("y is required: one value per row of X.")
        values = check_values(self._coded(y), len(coords))
        posterior.check_values(values)
        return posterior, coords, values

    def _values_in(self, frame: Any) -> Any:
        """The values in a table."""
        assert self.labels_.value is not None
        return values_of(frame, self.labels_.value)

    def _coded(self, y: Any) -> Any:
        """Values as the likelihood knows them."""
        return y
