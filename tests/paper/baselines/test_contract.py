"""What every baseline promises, over all that the package lists."""

from __future__ import annotations

import inspect
import pickle
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from paper import baselines
from paper.baselines.baseline import Baseline, to_unit_interval
from tests.paper.baselines.reference_models import planted, train_entries

CLASSES = [
    found
    for found in (getattr(baselines, name) for name in baselines.__all__)
    if issubclass(found, Baseline)
]
QUICK = {"Smurff": {"warmup": 40, "draws": 40, "n_jobs": 1}}
WITH_DEVIATION = {"BayesianCP", "BayesianRingVI"}


def make(cls, **settings):
    return cls(3, random_state=0, progress=False, **QUICK.get(cls.__name__, {}), **settings)


def longer(cls):
    """SMURFF starts a process for every fit: in `make test-ci`."""
    return pytest.param(cls, marks=pytest.mark.ci) if cls is baselines.Smurff else cls


@pytest.fixture(params=map(longer, CLASSES), ids=lambda cls: cls.__name__)
def cls(request):
    if request.param is baselines.Smurff and find_spec("smurff") is None:
        pytest.skip("smurff is not installed")
    return request.param


@pytest.fixture
def data(seed):
    return planted(seed, (9, 10, 11), 600, train_entries)


def test_four_methods_are_listed():
    names = {cls.__name__ for cls in CLASSES}
    assert names == {"BayesianCP", "BayesianRingVI", "Smurff", "TensorTrainWOPT"}


def test_parameters_are_only_stored_and_documented(cls):
    model = cls()
    for name, parameter in inspect.signature(cls).parameters.items():
        assert getattr(model, name) is parameter.default
        assert name in cls.__doc__
    assert clone(model).get_params() == model.get_params()


def test_fits_predicts_and_replays(cls, data):
    (coords, values), (cells, truth) = data
    coords.setflags(write=False)
    values.setflags(write=False)
    model = make(cls)
    before = model.get_params()
    assert model.fit(coords, values, shape=(9, 10, 12)) is model
    assert model.shape_ == (9, 10, 12)
    assert model.get_params() == before
    predicted = model.predict(cells)
    assert predicted.shape == truth.shape
    assert model.score(cells, truth) > 0.5
    again = make(cls).fit(coords, values, shape=(9, 10, 12)).predict(cells)
    np.testing.assert_array_equal(again, predicted)
    order = np.random.default_rng(0).permutation(len(values))
    mixed = make(cls).fit(coords[order], values[order], shape=(9, 10, 12)).predict(cells)
    np.testing.assert_array_equal(mixed, predicted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(cells), predicted)
    np.testing.assert_allclose(model.predict(cells[:7]), predicted[:7], rtol=1e-12)


def test_units_do_not_matter(cls, data):
    """Few iterations, or a long descent along a flat valley would make rounding errors large."""
    (coords, values), (cells, _) = data
    few = {"draws": 5, "warmup": 2} if cls is baselines.Smurff else {"max_iter": 10}
    plain = make(cls).set_params(**few).fit(coords, values).predict(cells)
    moved = make(cls).set_params(**few).fit(coords, 1000.0 + 8.0 * values).predict(cells)
    np.testing.assert_allclose(moved, 1000.0 + 8.0 * plain, rtol=0, atol=1e-4)


@pytest.mark.parametrize("shape", [(20, 21), (5, 6, 5, 6)], ids=str)
def test_any_number_of_modes(cls, shape, seed):
    rng = np.random.default_rng(seed)
    coords = np.stack([rng.integers(0, size, 400) for size in shape], axis=1)
    values = np.prod(
        [(1.0 + np.arange(size) / size)[i] for size, i in zip(shape, coords.T, strict=True)], axis=0
    )
    model = make(cls).set_params(rank=5).fit(coords, values)
    assert model.score(coords, values) > 0.5


def test_a_huge_shape_costs_only_its_slices(cls, rng):
    """A dense array of 10^12 cells would not fit."""
    shape = (10_000,) * 3
    coords, values = rng.integers(0, 50, (300, 3)), rng.standard_normal(300)
    settings = {"draws": 2} if cls is baselines.Smurff else {"max_iter": 2}
    model = make(cls).set_params(**settings).fit(coords, values, shape=shape)
    assert np.isfinite(model.predict([[9_999, 9_999, 9_999]])).all()


def test_standard_deviations(cls, data):
    (coords, values), (cells, _) = data
    model = make(cls).fit(coords, values)
    if cls.__name__ in WITH_DEVIATION:
        mean, std = model.predict(cells, return_std=True)
        np.testing.assert_array_equal(mean, model.predict(cells))
        assert std.shape == mean.shape
        assert np.all(std > 0)
    else:
        with pytest.raises(ValueError, match=f"{cls.__name__} gives no standard deviations"):
            model.predict(cells, return_std=True)


def test_binary_scores(cls, data):
    (coords, values), (cells, truth) = data
    model = make(cls, likelihood="bernoulli").fit(coords, values > 0)
    scores = model.predict(cells)
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert roc_auc_score(truth > 0, scores) > 0.85
    assert np.mean((scores > 0.5) == (truth > 0)) > 0.75
    np.testing.assert_array_equal(model.predict_proba(cells), np.stack([1 - scores, scores], 1))
    assert is_classifier(model)
    assert model.classes_.tolist() == [0, 1]
    assert -1 < model.score(cells, (truth > 0).astype(float)) < 0
    model.set_params(shape=(9, 10, 11))
    aucs = cross_val_score(model, coords, (values > 0).astype(int), scoring="roc_auc", cv=2)
    assert np.all((aucs >= 0) & (aucs <= 1))


def test_probabilities_are_for_binary_data(cls):
    with pytest.raises(AttributeError) as refused:
        make(cls).predict_proba  # noqa: B018
    assert "fit with likelihood='bernoulli'" in str(refused.value.__cause__)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.5, 1.0]], [1.0], "X must hold integer coordinates"),
        ([[0, -1]], [1.0], "X must not be negative"),
        ([[0, 1]], [np.nan], "y must be finite, got NaN in row 0"),
        ([[0, 1]], [1.0, 2.0], "y has 2 values, but X has 1 rows"),
        ([[0, 1]], None, "y is required"),
    ],
)
def test_bad_input_is_refused_as_the_estimator_does(cls, X, y, message):
    with pytest.raises(ValueError, match=message):
        make(cls).fit(X, y)


def test_bad_settings_are_refused(cls):
    X, y = [[0, 1], [1, 0]], [0.0, 2.0]
    with pytest.raises(ValueError, match=r"likelihood must be .* Did you mean 'bernoulli'"):
        make(cls, likelihood="bernouli").fit(X, y)
    with pytest.raises(ValueError, match="y must be 0 or 1 for the Bernoulli likelihood, got 2"):
        make(cls, likelihood="bernoulli").fit(X, y)
    with pytest.raises(ValueError, match="rank"):
        make(cls).set_params(rank=0).fit(X, y)
    with pytest.raises(ValueError, match="but mode 0 has size 1"):
        make(cls).fit(X, y, shape=(1, 2))
    with pytest.raises(NotFittedError):
        make(cls).predict(X)
    with pytest.raises(ValueError, match="but mode 1 has size 2"):
        make(cls).fit(X, y).predict([[0, 2]])


@pytest.mark.parametrize("name", ["initial_precision", "c0", "d0", "alpha0", "beta0"])
@pytest.mark.parametrize("variational", [baselines.BayesianCP, baselines.BayesianRingVI])
def test_priors_and_thresholds_must_make_sense(variational, name):
    with pytest.raises(ValueError, match=f"{name} must be positive, got 0"):
        variational(**{name: 0}).fit([[0, 1], [1, 0]], [0.0, 2.0])
    with pytest.raises(ValueError, match="threshold must be at least 0 and below 1, got 2"):
        variational(threshold=2).fit([[0, 1], [1, 0]], [0.0, 2.0])


def test_rescaling_keeps_order_and_one_half():
    estimates = np.concatenate([np.linspace(-40, 40, 4001), [1e6, -1e6, 0.5]])
    scores = to_unit_interval(estimates)
    assert scores.min() > 0
    assert scores.max() < 1
    order = np.argsort(estimates)
    assert np.all(np.diff(scores[order][np.diff(estimates[order], prepend=-np.inf) > 0]) > 0)
    np.testing.assert_array_equal(scores > 0.5, estimates > 0.5)
    inside = np.abs(estimates - 0.5) <= 0.45
    np.testing.assert_allclose(scores[inside], estimates[inside], rtol=1e-12)
    np.testing.assert_allclose(to_unit_interval(1 - estimates), 1 - scores, atol=1e-12)


def test_smurff_is_asked_for_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "smurff", None)
    with pytest.raises(ImportError, match="install it with pip install --group paper"):
        baselines.Smurff(progress=False).fit([[0, 1], [1, 0]], [0.0, 2.0])
