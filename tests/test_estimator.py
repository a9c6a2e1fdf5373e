"""The estimator: scikit-learn's rules, planted tensors, messages."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from bayesring import TensorRing, TensorRingClassifier, metrics, progress
from bayesring.datasets import load_ushcn, random_split
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model import ring
from bayesring.model.rank import Adaption, Truncation
from bayesring.priors import Fixed, GammaProcess, NormalGamma, RingPrior
from tests.models import random_coords

QUICK = {"warmup": 20, "draws": 20, "chains": 1, "random_state": 0, "progress": False}
SHAPE = (8, 9, 10)


def planted(seed, n=400, noise=0.1, shape=SHAPE, rank=2):
    """Noisy entries of a random ring: training and test coordinates and values."""
    rng = np.random.default_rng(seed)
    order = len(shape)
    cores = [rng.standard_normal((size, 1, rank, rank)) for size in shape]
    coords = random_coords(rng, shape, 2 * n)
    f = ring.entries(cores, coords) / np.sqrt(rank) ** order
    y = 50 + 4 * (f + noise * rng.standard_normal(2 * n))
    return coords[:n], y[:n], coords[n:], y[n:]


@pytest.fixture(scope="module")
def fitted():
    X, y, *_ = planted(1)
    return TensorRing(2, shape=SHAPE, **QUICK).fit(X, y)


@pytest.fixture(scope="module")
def fitted_binary():
    X, y, *_ = planted(1)
    return TensorRing(2, likelihood="bernoulli", shape=SHAPE, **QUICK).fit(X, (y > 50) * 1)


def test_fit_returns_self_and_sets_what_it_learned(fitted):
    assert fitted.rank_ == (2, 2, 2)
    assert fitted.shape_ == SHAPE
    assert fitted.seed_ == 0
    assert fitted.posterior_.n_draws == 20
    assert fitted.trace_[0].rank.shape == (40, 3)
    assert set(fitted.trace_[0].described) == {"noise", "rmse"}


def test_parameters_are_stored_and_cloned_untouched():
    likelihood, prior = Gaussian(beta0=2.0), RingPrior(NormalGamma(), GammaProcess(3.0))
    ring_ = TensorRing((2, 3, 4), likelihood=likelihood, prior=prior, shape=[4, 5, 6])
    assert ring_.get_params()["prior"] is prior
    copy = clone(ring_)
    assert copy.get_params() == ring_.get_params()


def test_shape_defaults_to_the_largest_coordinates():
    X = np.array([[0, 4, 1], [3, 0, 0]])
    assert TensorRing(1, **QUICK).fit(X, [1.0, 2.0]).shape_ == (4, 5, 2)
    assert TensorRing(1, **QUICK).fit(X, [1.0, 2.0], shape=(9, 9, 9)).shape_ == (9, 9, 9)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_every_order_recovers_a_planted_ring(order):
    """Held-out error close to the noise, in the data's own units. One rank more than planted:
    what is left of the mean after centring is one more factor.
    """
    shape = {2: (20, 20), 3: (8, 9, 10), 4: (5, 6, 5, 6), 5: (4, 4, 4, 4, 4), 6: (3,) * 6}[order]
    rank = 1 if order == 2 else 2
    X, y, X_test, y_test = planted(order, 600, 0.1, shape, rank)
    model = TensorRing(rank + 1, shape=shape, **QUICK | {"warmup": 150, "draws": 100, "chains": 2})
    model.fit(X, y)
    assert metrics.rmse(y_test, model.predict(X_test)) < 1.35 * 4 * 0.1
    lower, upper = model.predict_interval(X_test)
    assert 0.82 < metrics.coverage(y_test, lower, upper) < 0.97
    assert model.score(X_test, y_test) > 0.97


@pytest.mark.parametrize("prior", ["paper", "hierarchical", NormalGamma()], ids=str)
def test_automatic_rank_recovers_a_planted_ring(prior):
    X, y, X_test, y_test = planted(5, 600, 0.1)
    model = TensorRing(
        "auto", prior=prior, shape=SHAPE, **QUICK | {"warmup": 200, "draws": 50}
    ).fit(X, y)
    assert metrics.rmse(y_test, model.predict(X_test)) < 1.6 * 4 * 0.1
    assert min(model.rank_) >= 2


def test_binary_data_are_ranked_and_calibrated():
    X, y, X_test, y_test = planted(3, 700)
    model = TensorRing(
        2, likelihood="bernoulli", shape=SHAPE, **QUICK | {"warmup": 100, "draws": 100}
    ).fit(X, y > 50)
    probability = model.predict(X_test)
    assert metrics.auc(y_test > 50, probability) > 0.9
    assert abs(probability.mean() - np.mean(y_test > 50)) < 0.05


def test_scikit_learn_tools_work():
    X, y, *_ = planted(1)
    model = TensorRing(2, shape=SHAPE, **QUICK)
    assert is_regressor(model)
    assert cross_val_score(model, X, y, cv=3).shape == (3,)
    search = GridSearchCV(model, {"rank": [1, 2], "prior": ["paper", Fixed(2.0)]}, cv=2)
    search.fit(X, y)
    assert search.best_params_["rank"] == 2
    assert is_regressor(clone(model).set_params(likelihood=Bernoulli()))
    binary = TensorRingClassifier(2, shape=SHAPE, **QUICK | {"warmup": 100})
    assert is_classifier(binary)
    scores = cross_val_score(binary, X, y > 50, cv=3, scoring="roc_auc")
    assert scores.min() > 0.6
    losses = cross_val_score(binary, X, y > 50, cv=2, scoring="neg_log_loss")
    assert np.all((losses > -1.5) & (losses < 0))
    accuracy = cross_val_score(binary, X, y > 50, cv=2, scoring="accuracy")
    np.testing.assert_array_equal(accuracy, cross_val_score(binary, X, y > 50, cv=2))


def test_one_seed_one_result_and_other_seeds_others(fitted):
    X, y, X_test, _ = planted(1)
    again = TensorRing(2, shape=SHAPE, **QUICK).fit(X, y)
    np.testing.assert_array_equal(again.predict(X_test), fitted.predict(X_test))
    other = TensorRing(2, shape=SHAPE, **QUICK | {"random_state": 1}).fit(X, y)
    assert not np.allclose(other.predict(X_test), fitted.predict(X_test))
    by_generator = [
        TensorRing(2, shape=SHAPE, **QUICK | {"random_state": np.random.default_rng(4)}).fit(X, y)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*(each.predict(X_test) for each in by_generator))


def test_units_of_the_data_do_not_matter(fitted):
    X, y, X_test, _ = planted(1)
    scaled = TensorRing(2, shape=SHAPE, **QUICK).fit(X, 1e6 * y - 3e8)
    mean, deviation = fitted.predict(X_test, return_std=True)
    scaled_mean, scaled_deviation = scaled.predict(X_test, return_std=True)
    np.testing.assert_allclose(scaled_mean, 1e6 * mean - 3e8, rtol=1e-5)
    np.testing.assert_allclose(scaled_deviation, 1e6 * deviation, rtol=1e-4)


def test_products_in_float32_change_little(fitted):
    X, y, test, _ = planted(1)
    single = TensorRing(2, shape=SHAPE, dtype="float32", **QUICK).fit(X, y)
    one, two = fitted.predict(test), single.predict(test)
    assert not np.array_equal(one, two)
    assert metrics.rmse(one, two) < 0.1 * np.std(two)
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'float16'"):
        TensorRing(2, dtype="float16").fit(X, y)


def test_products_in_float32_give_the_same_error_on_real_data(data_folder):
    """To three digits; with one seed, both chains see the same random numbers and stay close."""
    tensor = load_ushcn().tensor
    split = random_split(tensor.shape, 0.1, 0)
    known, hidden = (tensor[tuple(part.T)] for part in split)
    errors = [
        metrics.rmse(
            hidden,
            TensorRing(5, shape=tensor.shape, dtype=dtype, **QUICK)
            .fit(split.train, known)
            .predict(split.test),
        )
        for dtype in ("float64", "float32")
    ]
    assert errors[1] == pytest.approx(errors[0], rel=5e-4)


def test_kept_draws_stay_within_the_memory_budget():
    X, y, *_ = planted(1)
    one_draw = sum(SHAPE) * 4 * 4
    model = TensorRing(2, shape=SHAPE, **QUICK | {"max_memory": 14 * one_draw, "chains": 2}).fit(
        X, y
    )
    kept = [draws.flat.nbytes for draws in model.posterior_.chains]
    assert sum(kept) <= 14 * one_draw
    assert model.posterior_.n_draws == 2 * (20 // 3)


def test_kept_draws_are_spread_over_all_scans():
    """Every third, the last one of each three; and each is that of its scan."""
    X, y, *_ = planted(1)
    all_kept = TensorRing(2, shape=SHAPE, **QUICK).fit(X, y).posterior_.chains[0]
    budget = 7 * all_kept.flat[0].nbytes
    thinned = TensorRing(2, shape=SHAPE, **QUICK | {"max_memory": budget}).fit(X, y)
    kept = thinned.posterior_.chains[0]
    np.testing.assert_array_equal(kept.scans, 20 + np.arange(3, 19, 3))
    np.testing.assert_array_equal(kept.flat, all_kept.flat[2:18:3])
    np.testing.assert_array_equal(kept.nuisance, all_kept.nuisance[2:18:3])


def test_samples_are_those_of_their_seed(fitted):
    X = planted(1)[0][:6]
    samples = [fitted.sample(X, 5, random_state=seed) for seed in (1, 1, 2, None, None)]
    np.testing.assert_array_equal(samples[0], samples[1])
    np.testing.assert_array_equal(samples[3], samples[4])
    assert not np.any(samples[0] == samples[2])
    assert not np.any(samples[0] == samples[3])
    again = fitted.sample(X, 5, random_state=np.random.default_rng(1))
    np.testing.assert_array_equal(again, samples[0])


@pytest.mark.parametrize("policy", [Truncation(4, every=5), Adaption((1, 2, 3), every=5)], ids=str)
def test_rank_policies_of_your_own(policy):
    X, y, *_ = planted(1)
    model = TensorRing(policy, shape=SHAPE, **QUICK).fit(X, y)
    assert tuple(model.trace_[0].rank[0]) == policy.start(3).bonds


def test_save_and_load_give_the_same_model(fitted, fitted_binary, tmp_path):
    from bayesring import load

    *_, X, _ = planted(1)
    for model in (fitted, fitted_binary):
        model.save(tmp_path / "model.ring")
        loaded = load(tmp_path / "model.ring")
        for one, two in zip(model.predict_interval(X), loaded.predict_interval(X), strict=True):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(model.sample(X, 3), loaded.sample(X, 3))
        np.testing.assert_array_equal(model.trace_[0].rank, loaded.trace_[0].rank)
        assert loaded.rank_ == model.rank_
        assert loaded.shape_ == model.shape_
        assert (tmp_path / "model.ring").read_bytes() == saved_again(loaded, tmp_path)
        X_train, y, *_ = planted(1)
        y = y if model is fitted else y > 50
        np.testing.assert_array_equal(loaded.fit(X_train, y).predict(X), model.predict(X))


def saved_again(model, folder):
    model.save(folder / "again.ring")
    return (folder / "again.ring").read_bytes()


def test_every_parameter_survives_saving(tmp_path):
    from bayesring import load

    X, y, *_ = planted(1)
    prior = RingPrior((NormalGamma(k0=3.0),), GammaProcess(2.5))
    model = TensorRing(
        Adaption(initial=(1, 2, 1), maximum=3),
        prior=prior,
        likelihood=Gaussian(2.0, 0.5, 7.0),
        **QUICK | {"chains": 2},
    ).fit(X, y, shape=SHAPE)
    model.save(tmp_path / "model.ring")
    loaded = load(tmp_path / "model.ring")
    assert loaded.get_params() == model.get_params()
    assert loaded.prior_ == model.prior_ == prior.for_shape(SHAPE)
    four = np.argwhere(np.ones((2, 2, 2, 2), dtype=bool))
    loaded.set_params(rank=1).fit(four, np.arange(16.0))  # one prior stands for all modes again
    assert len(loaded.prior_.modes) == 4


def test_a_tensor_larger_than_memory_is_refused(fitted, monkeypatch):
    from bayesring import checks

    monkeypatch.setattr(checks, "free_memory", lambda: 2**10)
    message = r"the whole tensor of shape \(8, 9, 10\) .* are free; predict the cells that you need"
    with pytest.raises(ValueError, match=message):
        fitted.predict_tensor()


@pytest.mark.parametrize("method", ["predict", "predict_interval", "sample", "predict_proba"])
def test_predicting_before_fit(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(TensorRingClassifier(), method)(np.zeros((1, 3), dtype=int))


def test_progress_bars_show_rank_noise_and_error(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    X, y, *_ = planted(1)
    TensorRing(2, shape=SHAPE, **QUICK | {"progress": True, "chains": 2}).fit(X, y)
    shown = capsys.readouterr().err
    for text in ("chain 1 draws", "chain 2 draws", "rank 2", "noise"):
        assert text in shown


def test_compiling_is_announced(capsys, monkeypatch):
    monkeypatch.setattr(progress, "compiled", lambda: False)
    X, y, *_ = planted(1)
    TensorRing(2, shape=SHAPE, **QUICK | {"progress": True}).fit(X, y)
    assert "Compiling kernels" in capsys.readouterr().err
    monkeypatch.undo()
    assert progress.compiled()


def test_interrupting_stops_all_chains(monkeypatch):
    class Interrupting:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            return False

        def __call__(self, report):
            if report.scan == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(progress, "chain_progress", lambda *arguments: Interrupting())
    X, y, *_ = planted(1)
    endless = QUICK | {"draws": 10**9, "chains": 3}
    with pytest.raises(KeyboardInterrupt):
        TensorRing(2, shape=SHAPE, **endless).fit(X, y)
