"""scikit-learn's own estimator checks, each expected failure with its reason.

The checks feed tables of measurements, where `TensorRing` wants integer coordinates. So they run
twice: on `TensorRing` itself, where every check that fits measurements is expected to fail for
that reason; and behind an adapter that turns measurements into coordinates, where only the
failures listed below are expected.
"""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_array

from bayesring import TensorRing, TensorRingClassifier, load
from bayesring.growing import OnlyOnline
from bayesring.infer import chains

pytestmark = pytest.mark.filterwarnings("ignore:.*normal noise is fitted")
SETTINGS = {"warmup": 5, "draws": 5, "chains": 1, "random_state": 0, "progress": False}
ONLINE = SETTINGS | {"inference": "online-em", "epochs": 1}


def classes_of(X):
    """Measurements cut into five classes each."""
    return np.clip(np.rint(check_array(X)) + 2, 0, 4).astype(int)


class OnMeasurements(TensorRing):
    """A ring over measurements cut into five classes each."""

    def fit(self, X, y=None, sample_weight=None):
        classes = classes_of(X)
        return super().fit(classes, y, sample_weight, shape=(5,) * classes.shape[1])

    @OnlyOnline
    def partial_fit(self, X, y=None):
        if not hasattr(self, "posterior_"):
            return self.fit(X, y)
        return super().partial_fit(classes_of(X), y)

    def _coords(self, X):
        return super()._coords(classes_of(X))


class ClassifierOnMeasurements(TensorRingClassifier):
    """The same for labels."""

    def fit(self, X, y=None, sample_weight=None):
        classes = classes_of(X)
        return super().fit(classes, y, sample_weight, shape=(5,) * classes.shape[1])

    @OnlyOnline
    def partial_fit(self, X, y=None, classes=None):
        cells = classes_of(X)
        if not hasattr(self, "posterior_"):
            return super().partial_fit(cells, y, classes, shape=(5,) * cells.shape[1])
        return super().partial_fit(cells, y, classes)

    def _coords(self, X):
        return super()._coords(classes_of(X))


BEHIND_ADAPTER: dict[str, str] = {}
REGRESSOR = {
    "check_regressors_train": "five scans on five coarse classes; accuracy has tests of its own",
}
CLASSIFIER = {
    "check_classifiers_train": "five scans on five coarse classes; accuracy has tests of its own",
    "check_classifier_not_supporting_multiclass": "the check fits nine columns of measurements",
}
MEASUREMENTS = "the check fits measurements, X must be integer coordinates"
DIRECT = BEHIND_ADAPTER | {
    name: MEASUREMENTS
    for name in (
        "check_fit_score_takes_y",
        "check_n_features_in_after_fitting",
        "check_dtype_object",
        "check_supervised_y_2d",
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
        "check_sample_weights_pandas_series",
        "check_sample_weights_list",
        "check_all_zero_sample_weights_error",
        "check_sample_weight_equivalence_on_dense_data",
    )
}


def expected_behind_adapter(estimator):
    return BEHIND_ADAPTER | (CLASSIFIER if is_classifier(estimator) else REGRESSOR)


@parametrize_with_checks(
    [kind(2, **SETTINGS) for kind in (OnMeasurements, ClassifierOnMeasurements)],
    expected_failed_checks=expected_behind_adapter,
)
def test_behind_an_adapter(estimator, check):
    check(estimator)


@pytest.mark.ci
@parametrize_with_checks(
    [kind(2, **ONLINE) for kind in (OnMeasurements, ClassifierOnMeasurements)],
    expected_failed_checks=expected_behind_adapter,
)
def test_online_em_behind_an_adapter(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [TensorRing(2, **SETTINGS)], expected_failed_checks=lambda estimator: DIRECT
)
def test_directly(estimator, check):
    check(estimator)


KEYS = pd.DataFrame(
    {
        "station": pd.Categorical(np.repeat(["a", "b", "c"], 40)),
        "day": pd.date_range("2024-01-01", periods=8).to_numpy()[np.arange(120) % 8],
        "depth": np.arange(120) % 5 * 10,
    }
)
EFFECT = KEYS["depth"].to_numpy() / 10 + (KEYS["station"] == "b").to_numpy() * 2.0
LONGER = SETTINGS | {"warmup": 30, "draws": 20}


@pytest.mark.filterwarnings("ignore:Labels that the fit did not know")
def test_cross_validation_on_tables_of_keys(rng):
    """Text, dates and integers as they stand in a table, values apart."""
    y = EFFECT + 0.1 * rng.standard_normal(120)
    folds = KFold(3, shuffle=True, random_state=0)
    for scoring, least in (("neg_root_mean_squared_error", -0.8), ("r2", 0.7)):
        found = cross_val_score(TensorRing(2, **LONGER), KEYS, y, scoring=scoring, cv=folds)
        assert np.all(found > least), found


@pytest.mark.parametrize("labels", [("no", "yes"), (3, 7), (False, True)])
def test_scores_of_a_classifier(rng, labels):
    y = np.array(labels)[(EFFECT > 2.5).astype(int)]
    for scoring in ("accuracy", "roc_auc"):
        found = cross_val_score(TensorRingClassifier(2, **LONGER), KEYS, y, scoring=scoring)
        assert np.mean(found) > 0.85, (scoring, found)
    ring = TensorRingClassifier(2, **LONGER).fit(KEYS, y)
    np.testing.assert_array_equal(ring.classes_, np.sort(labels))
    assert set(ring.predict(KEYS)) <= set(labels)
    proba = ring.predict_proba(KEYS)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(ring.predict(KEYS) == labels[1], proba[:, 1] > 0.5)
    assert ring.score(KEYS, y) == np.mean(ring.predict(KEYS) == y)


def test_partial_fit_of_a_classifier_knows_its_labels():
    y = np.where(EFFECT > 2.5, "yes", "no")
    ring = TensorRingClassifier(2, **ONLINE).partial_fit(KEYS, y)
    ring.partial_fit(KEYS[:5], np.full(5, "yes"))
    assert ring.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match=r"y holds maybe in row 1, but the classes are \['no'"):
        ring.partial_fit(KEYS[:2], ["no", "maybe"])
    named = TensorRingClassifier(2, **ONLINE).partial_fit(KEYS, y, classes=["yes", "no"])
    np.testing.assert_array_equal(named.classes_, ["no", "yes"])


def test_an_interrupted_classifier_has_the_labels_of_its_draws(monkeypatch):
    """Not those of the fit before."""
    step = chains.Chain.step

    def interrupted(self, *arguments):
        if self.scan == 40:
            raise KeyboardInterrupt
        return step(self, *arguments)

    ring = TensorRingClassifier(2, **LONGER | {"chains": 1}).fit(KEYS, EFFECT > 2.5)
    assert ring.classes_.tolist() == [False, True]
    monkeypatch.setattr(chains.Chain, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ring.fit(KEYS, np.where(EFFECT > 2.5, "high", "low"))
    assert ring.interrupted_
    assert ring.classes_.tolist() == ["high", "low"]


def test_a_classifier_from_a_column_saved_and_loaded(tmp_path):
    table = KEYS.assign(kind=np.where(EFFECT > 2.5, "high", "low"))
    ring = TensorRingClassifier(2, **LONGER).fit(table, modes=list(KEYS), value="kind")
    ring.save(tmp_path / "model.ring")
    again = load(tmp_path / "model.ring")
    assert type(again) is TensorRingClassifier
    assert again.classes_.tolist() == ["high", "low"]
    np.testing.assert_array_equal(again.predict(KEYS), ring.predict(KEYS))
    assert again.score(table) == ring.score(table)
    found = again.predict_table(KEYS)
    np.testing.assert_allclose(found["mean"], ring.predict_proba(KEYS)[:, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(120) % 3, "3 classes such as 0, 1 and 2. Only binary"),
        (EFFECT + 0.5, "Unknown label type"),
        (np.ones(120), "one class only"),
        (np.where(np.arange(120) == 7, None, "a"), "in row 7"),
    ],
)
def test_labels_that_are_no_two_classes(y, message):
    with pytest.raises(ValueError, match=message):
        TensorRingClassifier(2, **SETTINGS).fit(KEYS, y)


def test_predictions_are_arrays_whatever_was_given(rng):
    y = EFFECT + 0.1 * rng.standard_normal(120)
    ring = TensorRing(2, **LONGER).fit(KEYS, y)
    mean, std = ring.predict(KEYS, return_std=True)
    lower, upper = ring.predict_interval(KEYS, 0.8)
    assert all(isinstance(each, np.ndarray) and each.shape == (120,) for each in (mean, std, lower))
    table = ring.predict_table(KEYS, 0.8)
    assert list(table.columns) == [*KEYS.columns, "mean", "std", "lower", "upper"]
    for name, own in (("mean", mean), ("std", std), ("lower", lower), ("upper", upper)):
        np.testing.assert_allclose(table[name], own, rtol=1e-7)
    of_means = ring.predict_table(KEYS, 0.8, noise=False)
    ends = ring.predict_interval(KEYS, 0.8, noise=False)
    np.testing.assert_allclose(of_means["lower"], ends[0], rtol=1e-7)
    np.testing.assert_allclose(of_means["upper"], ends[1], rtol=1e-7)
    assert np.all(of_means["std"] < table["std"])
    medians = ring.predict_table(KEYS, 0.8, point="median")
    assert list(medians.columns) == [*KEYS.columns, "median", "std", "lower", "upper"]
    np.testing.assert_allclose(medians["median"], ring.predict(KEYS, point="median"), rtol=1e-7)
    with pytest.raises(ValueError, match="point must be 'mean' or 'median'"):
        ring.predict_table(KEYS, point="mode")
    with pytest.raises(TypeError, match="cells must be a table with the key columns"):
        ring.predict_table(np.zeros((2, 3), int))


def test_a_regressor_for_every_likelihood():
    for likelihood in ("gaussian", "bernoulli"):
        ring = TensorRing(2, likelihood=likelihood)
        assert is_regressor(ring)
        assert not is_classifier(ring)
        assert not hasattr(ring, "predict_proba")
    assert is_classifier(TensorRingClassifier(2))


def test_integral_floats_are_coordinates_others_are_refused(rng):
    X = OrdinalEncoder().fit_transform(KEYS.astype(str))
    assert X.dtype.kind == "f"
    ring = TensorRing(2, **SETTINGS).fit(X, EFFECT)
    np.testing.assert_array_equal(ring.predict(X), ring.predict(X.astype(int)))
    X[5, 1] = 0.5
    with pytest.raises(ValueError, match=r"such as 0\.5 in row 5, column 1"):
        ring.predict(X)


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
