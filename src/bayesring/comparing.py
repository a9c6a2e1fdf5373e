"""Which of several models foretells values best, by log scores of held-out rows, with errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10, sqrt
from typing import Any

import numpy as np

from bayesring.estimator import TensorRing
from bayesring.model.types import FloatArray
from bayesring.posterior.suggest import is_observed
from bayesring.wording import shown

DENSITY_NOTE = (
    "{real} gives densities and {discrete} probabilities; they are comparable because all values "
    "are integers, one apart, as long as the noise of {real} is not much below one."
)


@dataclass(frozen=True)
class Comparison:
    """Log scores of some models at the same rows; ``print`` says who is worse, and by how much.

    A row counts as independent of the others, so that errors are too small if rows share what makes
    them hard to foretell.

    Parameters
    ----------
    names : the models, best first
    pointwise : log scores, (models, n), in the order of `names`
    notes : what to know about the comparison

    Examples
    --------
    >>> from bayesring import Comparison
    >>> import numpy as np
    >>> print(Comparison(("a", "b"), np.array([[-1.0, -1.2, -0.9], [-1.5, -1.8, -1.3]])))
    Mean log score of 3 values:
      a    -1.0333
      b    -1.5333
    b is worse than a by 0.500 +- 0.058 per value.
    """

    names: tuple[str, ...]
    pointwise: FloatArray
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, float]:
        """Mean log score of each model.

        Returns
        -------
        dict
            By the name of the model.

        Examples
        --------
        >>> import numpy as np
        >>> bayesring.Comparison(("a", "b"), np.array([[-1.0, -2.0], [-2.0, -3.0]])).scores
        {'a': -1.5, 'b': -2.5}
        """
        means = self.pointwise.mean(axis=1)
        return dict(zip(self.names, map(float, means), strict=True))

    @property
    def differences(self) -> dict[str, tuple[float, float]]:
        """Mean of d_n = score_n - best score_n over the rows, and its standard error.

        For each model but the best: sd(d) / sqrt(n), which is paired and thus much smaller than
        what the errors of both scores would suggest.

        Returns
        -------
        dict
            Pairs of mean and standard error, by the name of the model.

        Examples
        --------
        >>> import numpy as np
        >>> bayesring.Comparison(("a", "b"), np.array([[-1.0, -2.0], [-2.0, -3.0]])).differences
        {'b': (-1.0, 0.0)}
        """
        gaps = self.pointwise[1:] - self.pointwise[0]
        errors = gaps.std(axis=1, ddof=1) / sqrt(gaps.shape[1])
        pairs = zip(gaps.mean(axis=1).tolist(), errors.tolist(), strict=True)
        return dict(zip(self.names[1:], pairs, strict=True))

    def sentences(self) -> list[str]:
        """One per model that is not the best.

        Returns
        -------
        list of str
            Who is worse, by how much, and whether it may be chance.

        Examples
        --------
        >>> import numpy as np
        >>> bayesring.Comparison(("a", "b"), np.array([[-1.0, -2.0], [-2.0, -3.5]])).sentences()
        ['b is worse than a by 1.25 +- 0.25 per value.']
        """
        best, found = self.names[0], []
        for name, (gap, error) in self.differences.items():
            if error == 0.0 and gap == 0.0:
                found.append(f"{name} and {best} have the same scores.")
                continue
            digits = max(0, 1 - floor(log10(error))) if error > 0 else 2
            by = f"{-gap:.{digits}f} +- {error:.{digits}f}"
            chance = "" if -gap > 2 * error else ", which may be chance"
            found.append(f"{name} is worse than {best} by {by} per value{chance}.")
        return found

    def __str__(self) -> str:
        width = max(map(len, self.names))
        head = f"Mean log score of {self.pointwise.shape[1]:,} values:"
        lines = [f"  {name:{width}} {score:10.4f}" for name, score in self.scores.items()]
        return "\n".join([head, *lines, *self.sentences(), *(f"- {note}" for note in self.notes)])

    __repr__ = __str__


def compare(
    models: Mapping[str, TensorRing] | Sequence[TensorRing],
    X: Any,
    y: Any = None,
    *,
    offset: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare fitted models by their log scores at rows that none of them has seen.

    Rows that a model was fitted to flatter it; use others, or ``az.compare`` on `to_datatree`.

    Parameters
    ----------
    models : by name, or a list, whose names are those of their likelihoods
    X : coordinates or a table, as for `TensorRing.predict`
    y : values, or None if the table has them; by the name of the model if models see different ones
    offset : numbers to add to the log scores of some models, by name, one or one per row. A model
        of t(y) needs log |dt/dy|. For logarithms that is -log y:
        ``compare({"plain": a, "log": b}, X, {"plain": y, "log": np.log(y)},
        offset={"log": -np.log(y)})``

    Returns
    -------
    Comparison
        `scores`, `differences` with their standard errors, and `notes`.

    Examples
    --------
    >>> from bayesring import TensorRing, compare
    >>> test = np.arange(len(y)) % 4 == 0
    >>> models = {
    ...     f"rank {rank}": TensorRing(rank, shape=(9, 8, 7), **settings).fit(X[~test], y[~test])
    ...     for rank in (1, 3)
    ... }
    >>> sorted(compare(models, X[test], y[test]).scores)
    ['rank 1', 'rank 3']
    """
    named = _named_models(models)
    values = _values_by_name(named, y)
    added = _checked_offsets(named, offset)
    scores, notes = [], []
    for name, model in named.items():
        try:
            found = model.log_score(X, values[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        scores.append(found + _per_row(added.get(name, 0.0), len(found), name))
        notes += seen_cells(name, model, X)
    _check_same_values(named, values, added)
    return ranked(named, scores, notes)


def ranked(
    models: Mapping[str, TensorRing], scores: Sequence[FloatArray], notes: Sequence[str] = ()
) -> Comparison:
    """The comparison by log scores (n,) of each model at the same rows."""
    lengths = {len(each) for each in scores}
    if len(lengths) > 1:
        raise ValueError(f"models must be scored at the same rows, got {sorted(lengths)} of them.")
    pointwise = np.stack(scores)
    if pointwise.shape[1] < 2:
        raise ValueError("a comparison needs at least 2 rows, or no error can be given; got 1.")
    order = np.argsort(-pointwise.mean(axis=1), kind="stable")
    names = list(models)
    return Comparison(
        tuple(names[place] for place in order), pointwise[order], (*_mixture(models), *notes)
    )


def seen_cells(name: str, model: TensorRing, X: Any) -> list[str]:
    """A note if the model was fitted to values at some of the cells."""
    seen = int(np.count_nonzero(is_observed(model._coords(X)[0], model.observed_)))
    if not seen:
        return []
    return [
        f"{name} was fitted to values at the cells of {seen:,} of these rows, which favours it."
    ]


def _mixture(models: Mapping[str, TensorRing]) -> Iterator[str]:
    """A note if densities meet probabilities."""
    kinds: dict[bool, list[str]] = {False: [], True: []}
    for name, model in models.items():
        kinds[model.posterior_.likelihood.discrete].append(name)
    if all(kinds.values()):
        real, discrete = (", ".join(kinds[discrete]) for discrete in (False, True))
        yield DENSITY_NOTE.format(real=real, discrete=discrete)


def _named_models(models: Any) -> dict[str, TensorRing]:
    """At least two fitted models by name."""
    if isinstance(models, TensorRing) or not isinstance(models, (Mapping, Sequence)):
        raise TypeError(f"models must be a dictionary or a list of models, got {shown(models)}.")
    listed = list(models.values() if isinstance(models, Mapping) else models)
    if len(listed) < 2:
        raise ValueError(f"compare needs at least 2 models, got {len(listed)}.")
    for place, each in enumerate(listed):
        if not isinstance(each, TensorRing):
            raise TypeError(f"models must be fitted rings, got {shown(each)} in place {place}.")
        each._posterior()
    if isinstance(models, Mapping):
        return {str(name): each for name, each in models.items()}
    return dict(zip(distinct(likelihood_name(each) for each in listed), listed, strict=True))


def likelihood_name(model: TensorRing) -> str:
    """The name of a model that was given none."""
    return type(model.posterior_.likelihood).__name__.lower()


def distinct(names: Iterator[str]) -> list[str]:
    """Names with a number after those that occur again."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found


def _values_by_name(models: Mapping[str, TensorRing], y: Any) -> dict[str, Any]:
    """The values that each model sees; None if the table has them."""
    if isinstance(y, Mapping):
        if missing := [name for name in models if name not in y]:
            raise ValueError(f"y lacks values for {shown(missing[0])}, a name of models.")
        return {name: y[name] for name in models}
    if y is None:
        check_columns(models)
    return dict.fromkeys(models, y)


def check_columns(models: Mapping[str, TensorRing]) -> None:
    """Refuse models of different value columns."""
    columns = {name: model.labels_.value for name, model in models.items()}
    if len(set(columns.values())) > 1:
        told = ", ".join(f"{name}: {shown(column)}" for name, column in columns.items())
        raise ValueError(
            f"models were fitted to different columns ({told}), whose scores are not comparable; "
            "in Python, give y, and offset= if one is a transform of another."
        )


def _checked_offsets(
    models: Mapping[str, TensorRing], offset: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    for name in offset or {}:
        if name not in models:
            raise ValueError(f"offset names {shown(name)}, but the models are {list(models)}.")
    return offset or {}


def _per_row(offset: Any, n: int, name: str) -> FloatArray:
    """One finite number per row."""
    numbers = np.asarray(offset)
    if numbers.dtype.kind not in "biuf" or numbers.shape not in ((), (n,)):
        raise ValueError(f"offset of {name} must be a number, or {n} of them, one per row.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"offset of {name} must be finite.")
    return np.broadcast_to(numbers.astype(float), n)


def _check_same_values(
    models: Mapping[str, TensorRing], values: Mapping[str, Any], added: Mapping[str, Any]
) -> None:
    """Refuse models that see different values, unless an offset says how these are related."""
    plain = [name for name in models if name not in added]
    for name in plain[1:]:
        if values[name] is values[plain[0]]:
            continue
        if not np.array_equal(np.asarray(values[name]), np.asarray(values[plain[0]])):
            raise ValueError(
                f"y of {name} is not that of {plain[0]}, so that their scores are not comparable; "
                "offset= must hold the logarithm of the derivative of one by the other."
            )
