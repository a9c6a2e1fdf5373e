"""scikit-learn's own estimator checks, each expected failure with its reason.

The checks feed tables of measurements, where `TensorRing` wants integer coordinates. So they run
twice: on `TensorRing` itself, where every check that fits measurements is expected to fail for
that reason; and behind an adapter that turns measurements into coordinates, where only the
failures listed below are expected.
"""

from __future__ import annotations

import pickle

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array

from bayesring import TensorRing

SETTINGS = {"warmup": 5, "draws": 5, "chains": 1, "random_state": 0, "progress": False}
ONLINE = SETTINGS | {"inference": "online-em", "epochs": 1}


class OnMeasurements(TensorRing):
    """A ring over measurements cut into five classes each."""

    def fit(self, X, y=None):
        classes = self._classes(X)
        return super().fit(classes, y, shape=(5,) * classes.shape[1])

    @available_if(lambda self: self._learns_on())
    def partial_fit(self, X, y=None):
        if not hasattr(self, "posterior_"):
            return self.fit(X, y)
        return super().partial_fit(self._classes(X), y)

    def _coords(self, X):
        return super()._coords(self._classes(X))

    @staticmethod
    def _classes(X):
        measured = check_array(X)
        return np.clip(np.rint(measured) + 2, 0, 4).astype(int)


PROBABILITIES = "predict gives probabilities of a one, not labels"
REFUSED = "refused in a sentence of our own, with the row"
BEHIND_ADAPTER = {
    "check_n_features_in_after_fitting": "columns are modes; our message says how many there are",
    "check_dtype_object": "object arrays are refused, whatever they hold",
    "check_supervised_y_2d": "a column vector for y is refused, not flattened with a warning",
}
REGRESSOR = {
    "check_regressors_train": "five scans on five coarse classes; accuracy has tests of its own",
}
CLASSIFIER = {
    "check_estimators_dtypes": f"values other than 0 and 1 are {REFUSED}",
    "check_classifier_data_not_an_array": f"values other than 0 and 1 are {REFUSED}",
    "check_estimators_partial_fit_n_features": "classes are 0 and 1, and not an argument",
    "check_classifiers_one_label": PROBABILITIES,
    "check_classifiers_classes": f"labels other than 0 and 1 are {REFUSED}",
    "check_classifiers_train": PROBABILITIES,
    "check_classifiers_regression_target": f"values other than 0 and 1 are {REFUSED}",
}
MEASUREMENTS = "the check fits measurements, X must be integer coordinates"
DIRECT = BEHIND_ADAPTER | {
    name: MEASUREMENTS
    for name in (
        "check_fit_score_takes_y",
        "check_estimators_overwrite_params",
        "check_dont_overwrite_parameters",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
        "check_positive_only_tag_during_fit",
        "check_estimators_dtypes",
        "check_estimators_empty_data_messages",
        "check_pipeline_consistency",
        "check_estimators_nan_inf",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_regressors_train",
        "check_regressor_data_not_an_array",
        "check_regressors_no_decision_function",
        "check_regressors_int",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit2d_1sample",
        "check_dict_unchanged",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
        "check_fit2d_predict1d",
    )
}


def expected_behind_adapter(estimator):
    return BEHIND_ADAPTER | (CLASSIFIER if is_classifier(estimator) else REGRESSOR)


@parametrize_with_checks(
    [
        OnMeasurements(2, **settings, likelihood=likelihood)
        for settings in (SETTINGS, ONLINE)
        for likelihood in ("gaussian", "bernoulli")
    ],
    expected_failed_checks=expected_behind_adapter,
)
def test_behind_an_adapter(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [TensorRing(2, **SETTINGS)], expected_failed_checks=lambda estimator: DIRECT
)
def test_directly(estimator, check):
    check(estimator)


def test_checks_that_refuse_measurements_pass_on_coordinates():
    """What the direct checks cannot see: copies, order and refits on real coordinates."""
    X = np.array([[0, 1, 2], [1, 0, 1], [2, 2, 0], [0, 0, 0]], order="F")
    y = np.arange(4.0)
    X.setflags(write=False)
    y.setflags(write=False)
    ring = TensorRing(2, **SETTINGS).fit(X, y)
    copy = pickle.loads(pickle.dumps(ring))
    np.testing.assert_array_equal(copy.predict(X), ring.predict(X))
    np.testing.assert_array_equal(ring.predict(X[::-1])[::-1], ring.predict(X))
    before = ring.predict(X)
    parameters = ring.get_params()
    np.testing.assert_array_equal(ring.fit(X, y).predict(X), before)
    assert ring.get_params() == parameters
