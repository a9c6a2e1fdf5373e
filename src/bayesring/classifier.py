"""`TensorRingClassifier`: any two labels, following scikit-learn's contract for classifiers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import ClassifierTags, Tags

from bayesring.checks import one_column
from bayesring.data.extras import given_arguments
from bayesring.data.inputs import take_column
from bayesring.data.opentables import is_table, open_table
from bayesring.data.unpadded import learn_labels, unpadded
from bayesring.estimator import TensorRing
from bayesring.growing import OnlyOnline
from bayesring.likelihoods import Likelihood
from bayesring.model.rank import RankPolicy
from bayesring.model.types import FloatArray
from bayesring.priors import ModePrior, RingPrior
from bayesring.wording import shown


class TensorRingClassifier(ClassifierMixin, TensorRing):  # type: ignore[misc]
    """Bayesian tensor ring for two classes, such as the presence or absence of a link.

    The parameters are those of `TensorRing`, with a Bernoulli likelihood. Labels may be numbers,
    text or booleans. They are coded in sorted order, so `predict_table`, `predict_interval` and
    `predict_tensor` describe the probability of the second of `classes_`.

    Attributes
    ----------
    classes_ : the two labels, sorted; the other attributes are those of `TensorRing`

    Examples
    --------
    >>> import numpy as np
    >>> from bayesring import TensorRingClassifier
    >>> X = np.argwhere(np.random.default_rng(0).random((9, 8, 7)) < 0.5)    # known cells
    >>> y = np.where(np.sin(X[:, 0]) + 0.3 * X[:, 1] > 1, "yes", "no")       # their labels
    >>> settings = {"warmup": 30, "draws": 20, "chains": 2, "progress": False}    # a short fit
    >>> links = TensorRingClassifier(random_state=0, **settings).fit(X, y)
    >>> links.classes_.tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        rank: str | int | tuple[int, ...] | RankPolicy = "auto",
        *,
        likelihood: str | Likelihood = "bernoulli",
        inference: str = "gibbs",
        prior: str | ModePrior | RingPrior | Mapping[str | int, str | ModePrior] = "hierarchical",
        order: str | Sequence[str | int] | Mapping[str | int, bool | float] | None = "auto",
        share: Sequence[Sequence[str | int]] | None = None,
        update: str = "slice",
        shape: tuple[int, ...] | None = None,
        warmup: str | int = "auto",
        draws: str | int = "auto",
        chains: str | int = "auto",
        max_time: float | None = None,
        max_memory: int = 2**30,
        dtype: str = "float64",
        batch_size: str | int = "auto",
        epochs: int = 200,
        n_jobs: int | None = None,
        random_state: int | Generator | RandomState | None = None,
        progress: bool = True,
    ) -> None:
        super().__init__(
            rank,
            likelihood=likelihood,
            inference=inference,
            prior=prior,
            order=order,
            share=share,
            update=update,
            shape=shape,
            warmup=warmup,
            draws=draws,
            chains=chains,
            max_time=max_time,
            max_memory=max_memory,
            dtype=dtype,
            batch_size=batch_size,
            epochs=epochs,
            n_jobs=n_jobs,
            random_state=random_state,
            progress=progress,
        )

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        shape: tuple[int, ...] | None = None,
        modes: Sequence[str] | None = None,
        value: str | None = None,
        positions: Mapping[str | int, Any] | None = None,
        features: Mapping[str | int, Any] | None = None,
        exposure: Any = None,
        value_error: Any = None,
        value_lower: Any = None,
        value_upper: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        client: Any = None,
    ) -> Self:
        """Sample the posterior given the labels `y` (n,) at the rows of `X`; see `TensorRing`.

        `exposure` and what may be known of real values are for likelihoods that can use them, and
        refused by "bernoulli".

        Returns
        -------
        self
            The estimator, fitted.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame(X, columns=["user", "item", "week"]).assign(bought=y)
        >>> fitted = TensorRingClassifier(2, **settings).fit(table, value="bought")
        >>> fitted.predict(table.head(3)).shape
        (3,)
        """
        self._refuse_other_likelihoods()
        if y is not None and value is not None:
            raise ValueError(f"values are given twice: as y and as the column {value!r}.")
        if y is None and value is not None and is_table(X):
            X, y = _take_labels(X, value)
        others: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
        others |= given_arguments(
            exposure=exposure,
            value_error=value_error,
            value_lower=value_lower,
            value_upper=value_upper,
            client=client,
        )
        classes, codes = (np.array([0, 1]), None) if y is None else _codes(y)
        if codes is not None and sample_weight is not None:
            weighed = np.asarray(sample_weight) != 0
            if weighed.shape in ((), codes.shape):  # else it is refused below
                weighed = np.broadcast_to(weighed, codes.shape)
                _check_two(classes[np.unique(codes[weighed]).astype(int)])
        named, before = value if y is None else None, getattr(self, "posterior_", None)
        try:
            super().fit(
                X,
                codes,
                sample_weight,
                shape=shape,
                modes=modes,
                value=named,
                positions=positions,
                features=features,
                **others,
            )
        finally:
            if getattr(self, "posterior_", None) is not before:  # an interrupted fit, perhaps
                self.classes_ = classes
                if y is not None:
                    self.labels_ = self.labels_._replace(value=value)
        return self

    @OnlyOnline
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        shape: tuple[int, ...] | None = None,
        exposure: Any = None,
        sample_weight: Any = None,
        positions: Mapping[str | int, Any] | None = None,
        features: Mapping[str | int, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> Self:
        """Continue with new observations; `classes` lists both labels if one is still missing.

        For the other arguments see `TensorRing`.

        Returns
        -------
        self
            The estimator, which has learned from the new observations.

        Examples
        --------
        >>> stream = TensorRingClassifier(2, inference="online-em", epochs=5, **settings)
        >>> stream = stream.partial_fit(X[:150], y[:150], classes=["no", "yes"])
        >>> stream.partial_fit(X[150:], y[150:]).n_observations_ == len(y)
        True
        """
        given: Any = {
            "shape": shape,
            "exposure": exposure,
            "sample_weight": sample_weight,
            "positions": positions,
            "features": features,
            "checkpoint": checkpoint,
            "checkpoint_every": checkpoint_every,
        }
        if not hasattr(self, "posterior_"):
            if classes is None:
                return self.fit(X, y, **given)
            self._refuse_other_likelihoods()
            self.classes_ = learn_labels(unpadded(classes).ravel(), "classes")[0]
            coded = _codes(y, self.classes_)[1]
            return super().fit(X, coded, **given)
        if y is None and self.labels_.value is not None and is_table(X):
            X, y = _take_labels(X, self.labels_.value)
        codes = None if y is None else _codes(y, self.classes_)[1]
        super().partial_fit(X, codes, **given)
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
        """A new model that also knows the labels of new observations; see `TensorRing`.

        Returns
        -------
        TensorRingClassifier
            A new model; this one stays as it is.

        Examples
        --------
        >>> links.fold_in([[9, 0, 0], [9, 1, 0]], ["yes", "no"]).shape_
        (10, 8, 7)
        """
        self._posterior()
        if y is None and self.labels_.value is not None and is_table(X):
            X, y = _take_labels(X, self.labels_.value)
        codes = None if y is None else _codes(y, self.classes_)[1]
        given: Any = {"exposure": exposure, "positions": positions, "features": features}
        return super().fold_in(X, codes, shape=shape, **given)

    def predict(self, X: Any) -> NDArray[Any]:  # type: ignore[override]
        """The more probable label at each row of `X`, (n,).

        Returns
        -------
        array (n,)
            Labels.

        Examples
        --------
        >>> set(links.predict(X).tolist()) <= {"no", "yes"}
        True
        """
        likely = self.predict_proba(X)[:, 1] > 0.5
        return np.asarray(self.classes_[likely.astype(int)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two labels, (n, 2), in the order of `classes_`.

        Returns
        -------
        array (n, 2)
            Probabilities, which add up to one.

        Examples
        --------
        >>> links.predict_proba(X[:4]).sum(axis=1).round(6).tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        posterior, coords = self._locate(X)
        with self._shown(posterior, len(coords)) as shown:
            one, _ = shown.moments(coords)
        return np.column_stack([1.0 - one, one])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predicted labels.

        Returns
        -------
        float
            Share of rows whose label is predicted.

        Examples
        --------
        >>> links.score(X, y) > 0.8
        True
        """
        from sklearn.metrics import accuracy_score  # slow to load

        if y is None and self.labels_.value is not None and is_table(X):
            X, y = _take_labels(X, self.labels_.value)
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def _refuse_other_likelihoods(self) -> None:
        own = self.likelihood
        binary = own == "bernoulli" if isinstance(own, str) else getattr(own, "binary", False)
        if not binary:
            raise ValueError(
                "likelihood must be 'bernoulli', or an object for binary values, got "
                f"{shown(own)}; for other values use TensorRing."
            )

    def _values_in(self, frame: Any) -> Any:
        return unpadded(frame[self.labels_.value])

    def _coded(self, y: Any) -> Any:
        return _codes(y, self.classes_)[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "classifier", None
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


def _take_labels(X: Any, name: str) -> tuple[Any, NDArray[Any]]:
    """A table without the column of labels, and that column."""
    frame = open_table(X, "X")
    if name not in frame.columns:
        take_column(X, name)  # says what the columns are
    return frame.drop(name).to_native(), unpadded(frame[name])


def _codes(y: Any, known: NDArray[Any] | None = None) -> tuple[NDArray[Any], FloatArray]:
    """The two sorted labels, and 0 or 1 for every row; raises an error if `y` is not valid."""
    labels = unpadded(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = one_column(labels, "y")
    if labels.ndim != 1:
        raise ValueError(f"y must have one label per row and 1 dimension, got {labels.shape}.")
    if not labels.size:
        raise ValueError("y holds no labels, but a classifier needs two of them.")
    if labels.dtype == object:
        missing = np.array([_is_nothing(each) for each in labels], dtype=bool)
    else:
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), bool)
    if missing.any():
        raise ValueError(
            f"y contains NaN or nothing in row {int(np.argmax(missing))}, but every row needs a "
            "label; leave rows without one out."
        )
    found, places = learn_labels(labels, "y")
    classes = found if known is None else known
    if labels.dtype.kind == "f" and np.any(found != np.round(found)):
        raise ValueError(
            f"y holds {found[found != np.round(found)][0]:g}: Unknown label type: continuous. "
            "A classifier needs labels; for real values use TensorRing."
        )
    if len(classes) > 2:
        raise ValueError(
            f"y holds {len(classes)} classes such as {classes[0]!s}, {classes[1]!s} and "
            f"{classes[2]!s}. Only binary classification is supported."
        )
    unknown = ~np.isin(found, classes)
    if unknown.any():
        row = int(np.argmax(unknown[places]))
        raise ValueError(
            f"y holds {labels[row]!s} in row {row}, but the classes are {classes.tolist()}."
        )
    _check_two(classes)
    return classes, (found == classes[1])[places].astype(float)


def _is_nothing(label: Any) -> bool:
    """None, NaN and the missing value of pandas."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def _check_two(classes: NDArray[Any]) -> None:
    """Two labels are needed, of rows that count."""
    if len(classes) == 1:
        raise ValueError(
            f"y holds one class only, {classes[0]!s}: the classifier can't train when only one "
            "class is present; it needs two."
        )
