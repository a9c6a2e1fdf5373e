"""Methods of a fitted model that say whether to trust it, and export its draws."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sklearn.utils import estimator_html_repr

from bayesring.checks import check_count
from bayesring.data.features import Features
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations, standardised
from bayesring.infer import selfcheck
from bayesring.infer.precision import random_cells
from bayesring.infer.selfcheck import SelfCheck
from bayesring.infer.state import Trace
from bayesring.model.types import IntArray
from bayesring.posterior import Posterior
from bayesring.posterior.convergence import Diagnostics, DiagnosticWarning, diagnose
from bayesring.posterior.datatree import Training, to_datatree
from bayesring.posterior.explained import Explained, explain
from bayesring.posterior.interchange import to_tensorly
from bayesring.priors import RingPrior
from bayesring.reporting import Reporting


class Inspecting(Reporting):
    """Methods of a class that holds the result of a fit."""

    posterior_: Posterior
    prior_: RingPrior
    labels_: Labels
    features_: tuple[Features | None, ...]
    trace_: Sequence[Trace]
    sampled_: bool
    warmup_: int
    seed_: int
    n_observations_: int
    observed_: Observations | None

    @abstractmethod
    def _posterior(self) -> Posterior:
        """The result of the fit; an error if there is none."""

    @abstractmethod
    def _known_coords(self, X: Any) -> IntArray:
        """Coordinates of cells that the fit knows."""

    def diagnostics(self, X: Any = None) -> Diagnostics:
        """Whether the chains can be trusted: R-hat, effective sample sizes, Monte Carlo errors.

        Judges noise, log likelihood and the entries at the rows of `X`, or at some random cells.
        Its `problems` are what harms the answer, with what to do about it; it warns of them, once.
        Its `notes` do not harm it. `explained` says how much of a mode's variance its features
        explain, and each of them, with 90 % intervals; see `bayesring.posterior.explained`.

        Returns
        -------
        Diagnostics
            `problems` and `notes`, sentences; `error`, a number; ``print`` shows them as a table.

        Examples
        --------
        >>> found = ring.diagnostics()
        >>> isinstance(found.error, float), len(found.rows()) > 0
        (True, True)
        """
        found = replace(self._diagnose(X), explained=self._explained())
        self._warn_of(found, stacklevel=3)
        return found

    def _explained(self) -> tuple[Explained, ...]:
        names = self.labels_.names
        return explain(self.posterior_, self.prior_, self.features_, names, self.seed_)

    def _diagnose(self, X: Any = None) -> Diagnostics:
        cells = None if X is None else self._known_coords(X)
        posterior = self._posterior()
        warmup = self.warmup_ if self.sampled_ else None
        return diagnose(posterior, self.trace_, warmup, self.n_observations_, cells, self.seed_)

    def _warn_of(self, found: Diagnostics, stacklevel: int) -> None:
        if found.problems:
            warnings.warn(" ".join(found.problems), DiagnosticWarning, stacklevel=stacklevel)

    def check(self, n_fits: int = selfcheck.REFITS) -> SelfCheck:
        """Whether the intervals can be believed on this table, by simulation.

        Values are simulated from `n_fits` of the kept draws at the training cells; together with
        the observed ones, at most 5,000 in all, most of them are fitted anew at the rank found, and
        the others are looked up in their predictive distributions. No more scans are made than the
        fit took: if it had less than ten for each refit, there are fewer of these. The observed
        values are compared with the draws, too. ``print(ring.check())`` says in a sentence what
        came out; see `bayesring.infer.selfcheck`.

        Returns
        -------
        SelfCheck
            ``print`` says what came out.

        Examples
        --------
        >>> checked = ring.check()
        >>> len(str(checked)) > 20
        True
        """
        posterior, data = self._posterior(), self.observed_
        check_count(n_fits, "n_fits", 2)
        if data is None:
            raise ValueError(
                "check() simulates values at the training cells, but the model has not kept them: "
                "it was fitted from files, or to 500,000 observations or more."
            )
        data = standardised(data, posterior.location, posterior.scale)
        scans = sum(len(trace.log_likelihood) for trace in self.trace_)
        if not self.sampled_:
            scans = sum(int(draws.scans[-1]) for draws in posterior.chains)
        fitted = selfcheck.CheckedFit(
            posterior.chains,
            posterior.shape,
            posterior.likelihood,
            self.prior_,
            data,
            self.seed_,
            scans,
            n_fits,
        )
        from bayesring.progress import step_progress

        with step_progress(bool(getattr(self, "progress", False)), n_fits) as step:
            return selfcheck.run(fitted, posterior.engine, step)

    def to_datatree(self, X: Any = None) -> Any:
        """The draws as an `xarray.DataTree`, which both lines of ArviZ read: ``az.loo(tree)``.

        Draws of noise and of the entries at `X`, or at some random cells; log likelihood, values
        and replicates at the training cells, or at 2,000 of them; see
        `bayesring.posterior.datatree`. ``arviz.InferenceData.from_datatree`` converts it.

        Returns
        -------
        xarray.DataTree
            The groups that ArviZ knows.

        Examples
        --------
        >>> sorted(ring.to_datatree().children)[:3]
        ['log_likelihood', 'observed_data', 'posterior']
        """
        posterior = self._posterior()
        cells = random_cells(posterior.shape, self.seed_) if X is None else self._known_coords(X)
        training = Training(self.observed_, self.seed_)
        return to_datatree(posterior, self.trace_, self.sampled_, cells, training)

    def to_tensorly(self, draw: int = 0) -> Any:
        """One of the draws as a TensorLy `TRTensor`, in the units of the data.

        Ranks are one higher than the ring's if a mean was subtracted from the values; see
        `bayesring.posterior.interchange`. Do not average the cores of several draws: they are
        defined only up to an invertible matrix on each bond.

        Returns
        -------
        tensorly.tr_tensor.TRTensor
            The cores of one draw.

        Examples
        --------
        >>> ring.to_tensorly(draw=0).shape
        (9, 8, 7)
        """
        return to_tensorly(self._posterior(), draw)

    def _repr_html_(self) -> str:
        """Notebook view: a summary of the fitted model, then the parameters."""
        parameters = str(estimator_html_repr(self))
        return self._brief() + parameters if hasattr(self, "posterior_") else parameters

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
