"""What hurried or hostile users do with weights, exposures, errors and ends."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring import TensorRing, TensorRingClassifier
from bayesring.likelihoods import Gaussian, Poisson, StudentT
from bayesring.model.latent import mean_normal_between
from bayesring.model.types import Given

QUICK = {"rank": 2, "chains": 1, "warmup": 15, "draws": 10, "random_state": 0, "progress": False}


@pytest.fixture
def coords(rng):
    return np.stack([rng.integers(0, n, 200) for n in (5, 6, 4)], axis=1)


@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT()])
def test_one_draw_per_copy_of_a_value_known_by_its_ends(rng, likelihood):
    """An observation of weight 4 is drawn as four are, not as one four times."""
    nuisance = np.tile([1.5, 5.0], 7) if isinstance(likelihood, StudentT) else np.array([1.5])
    n = 20_000
    ends = {"lower": np.full(4 * n, 0.4), "upper": np.full(4 * n, np.inf)}
    apart = Given(**ends)
    together = Given(weight=np.full(n, 4.0), **{k: each[:n] for k, each in ends.items()})
    one = likelihood.augment(rng, np.zeros(4 * n), np.full(4 * n, 0.4), nuisance, apart)
    all_four = likelihood.augment(rng, np.zeros(n), np.full(n, 0.4), nuisance, together)
    for four, each in zip(all_four, one, strict=True):
        sums = each.reshape(n, 4).sum(axis=1)
        assert np.mean(four) == pytest.approx(np.mean(sums), rel=0.02)
        assert np.std(four) == pytest.approx(np.std(sums), rel=0.05, abs=1e-12)


def test_squares_of_copies_without_their_errors(rng):
    """Residuals without errors of measurement: as many draws as the weight says."""
    nuisance, values = np.array([2.0]), np.array([0.7])
    apart = Given(error=np.full(3, 0.8))
    together = Given(error=np.full(1, 0.8), weight=np.full(1, 3.0))
    likelihood = Gaussian()
    three = [
        likelihood.statistics(np.zeros(3), np.full(3, 0.7), nuisance, apart, rng)[1]
        for _ in range(8000)
    ]
    one = [
        likelihood.statistics(np.zeros(1), values, nuisance, together, rng)[1] for _ in range(8000)
    ]
    assert np.mean(one) == pytest.approx(np.mean(three), rel=0.03)
    assert np.std(one) == pytest.approx(np.std(three), rel=0.06)
    assert np.isfinite(
        likelihood.statistics(
            np.zeros(2), np.ones(2), nuisance, Given(np.ones(2), error=np.array([0.0, 1e9])), rng
        )
    ).all()


@pytest.mark.parametrize("weight", [1e-300, 1e-3])
def test_tiny_weights_with_heavy_tails_come_to_an_end(coords, rng, weight):
    y = rng.standard_normal(200)
    ring = TensorRing(likelihood="student-t", **QUICK).fit(coords, y, np.full(200, weight))
    assert np.isfinite(ring.predict(coords)).all()


class Endless(StudentT):
    """Its sums are not numbers."""

    def statistics(self, *args, **kwargs):
        return np.nan * super().statistics(*args, **kwargs)


def test_a_chain_of_no_numbers_breaks_down_rather_than_never_end(coords, rng):
    with pytest.raises(FloatingPointError, match="parameters of the likelihood"):
        TensorRing(likelihood=Endless(), **QUICK).fit(coords, rng.standard_normal(200))


def test_weights_too_large_to_draw_for_are_refused(coords):
    with pytest.raises(ValueError, match="at most 10,000"):
        TensorRing(likelihood="ordinal", **QUICK).fit(
            coords, coords.sum(axis=1) % 4, np.full(200, 1e6)
        )
    lower = np.zeros(200)
    with pytest.raises(ValueError, match="at most 10,000"):
        TensorRing(**QUICK).fit(coords, None, np.full(200, 1e6), value_lower=lower)


def test_units_of_exposure_do_not_matter(coords, rng):
    counts, exposure = rng.poisson(3.0, 200), rng.uniform(0.5, 2.0, 200)
    one, other = (
        TensorRing(likelihood="negative-binomial", **QUICK).fit(coords, counts, exposure=each)
        for each in (exposure, 2.0**20 * exposure)
    )
    np.testing.assert_allclose(one.predict(coords), 2.0**20 * other.predict(coords), rtol=1e-6)


@pytest.mark.parametrize("noise_by", [None, 0])
def test_partial_fit_with_less_known_and_new_slices(coords, rng, noise_by):
    ring = TensorRing(likelihood=Gaussian(noise_by=noise_by), inference="online-em", **QUICK)
    ring.fit(coords, rng.standard_normal(200), value_error=np.full(200, 0.1))
    new = np.array([[5, 0, 0], [5, 1, 1], [0, 0, 0]])
    ring.partial_fit(new, np.ones(3))
    assert np.isfinite(ring.predict(new)).all()


@pytest.mark.parametrize("likelihood", ["gaussian", "student-t"])
@pytest.mark.parametrize("inference", ["gibbs", pytest.param("online-em", marks=pytest.mark.ci)])
def test_all_values_or_almost_censored(coords, rng, likelihood, inference):
    """None are left to be held out, and none are asked for."""
    ring = TensorRing(likelihood=likelihood, inference=inference, **QUICK | {"warmup": 100})
    lower = rng.standard_normal(200)
    for values in (np.full(200, np.nan), np.where(np.arange(200) < 3, lower, np.nan)):
        ring.fit(coords, values, value_lower=lower)
        assert np.isfinite(ring.predict_interval(coords)).all()


@pytest.mark.parametrize(
    ("y", "more", "message"),
    [
        (["a"] * 200, {"value_lower": np.zeros(200)}, "real numbers"),
        (np.ones(5), {"value_lower": np.zeros(200)}, "one value per row"),
        (np.ones((200, 1)), {"value_lower": np.zeros(200)}, "one value per row"),
        (np.ma.masked_array(np.ones(200), np.arange(200) < 9), {"value_lower": 0}, "masked"),
        (None, {"sample_weight": np.arange(200)}, "y is required"),
        (np.ones(5), {"sample_weight": np.arange(200)}, "one value per row"),
        (np.ma.masked_array(np.ones(200)), {"sample_weight": np.arange(200)}, "masked"),
        (np.ones(200), {"sample_weight": np.ma.masked_array(np.ones(200))}, "masked"),
        (np.ones(200), {"value_lower": np.ma.masked_array(np.ones(200))}, "masked"),
        (np.ones(200), {"sample_weight": [[1], [1, 2]] * 100}, "unequal length"),
    ],
)
def test_one_sentence_for_odd_values_and_extras(coords, y, more, message):
    if more.get("value_lower") is not None and np.ndim(more["value_lower"]) == 0:
        more = {"value_lower": np.zeros(200)}
    with pytest.raises(ValueError, match=message):
        TensorRing(**QUICK).fit(coords, y, **more)


def test_classifier_refuses_too_few_weights(coords):
    with pytest.raises(ValueError, match="sample_weight has 3 values"):
        TensorRingClassifier(**QUICK).fit(coords, coords[:, 0] % 2, np.ones(3))


def test_a_checkpoint_knows_which_argument_an_array_was(coords, rng, tmp_path):
    counts, numbers = rng.poisson(3.0, 200), rng.uniform(0.5, 2.0, 200)
    ring = TensorRing(likelihood="poisson", **QUICK)
    ring.set_params(likelihood=Poisson(centre=1.0, r=50.0))
    ring.fit(coords, counts, sample_weight=numbers, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint"):
        ring.fit(coords, counts, exposure=numbers, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("low", "high", "mean", "variance"),
    [
        (5.0, 5.0 + 1e-12, 5.0, 1e-24 / 12),
        (-1e-15, 0.0, -5e-16, 1e-30 / 12),
        (1e8, np.inf, 1e8, 1e-16),
        (-np.inf, -1e5, -1e5, 1e-10),
        (1e5, 1e5 + 1e-7, 1e5, 1e-14 / 12),
        (25.0, 26.0, 25.03987326, 0.00158492),
    ],
)
def test_moments_of_a_normal_far_out_or_in_a_narrow_interval(low, high, mean, variance):
    found = mean_normal_between(np.array([low]), np.array([high]))
    assert found[0][0] == pytest.approx(mean, rel=1e-7)
    assert found[1][0] == pytest.approx(variance, rel=1e-3)
