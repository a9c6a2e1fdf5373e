"""Weights, exposures, errors and ends as users give them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesring
from bayesring import TensorRing, TensorRingClassifier
from bayesring.data.extras import between
from bayesring.data.observations import Observations, in_order, joined, merged
from bayesring.likelihoods import Gaussian, NegativeBinomial, Ordinal, Poisson
from bayesring.model.types import Given

QUICK = {"rank": 2, "chains": 1, "warmup": 15, "draws": 10, "random_state": 0, "progress": False}
SHAPE = (5, 6, 4)


@pytest.fixture
def coords(rng):
    return np.stack([rng.integers(0, n, 200) for n in SHAPE], axis=1)


def same_model(one, two, cells):
    np.testing.assert_array_equal(one.predict(cells), two.predict(cells))
    np.testing.assert_array_equal(one.posterior_.nuisance, two.posterior_.nuisance)


@pytest.mark.parametrize(
    ("likelihood", "draw"),
    [
        ("gaussian", lambda rng: rng.standard_normal(200).round(1)),
        ("student-t", lambda rng: rng.standard_normal(200).round(1)),
        ("bernoulli", lambda rng: rng.integers(0, 2, 200)),
        ("negative-binomial", lambda rng: rng.poisson(3.0, 200)),
        ("poisson", lambda rng: rng.poisson(3.0, 200)),
        ("ordinal", lambda rng: rng.integers(1, 6, 200)),
    ],
)
@pytest.mark.parametrize("inference", ["gibbs", pytest.param("online-em", marks=pytest.mark.ci)])
def test_a_weight_counts_as_so_many_equal_rows(coords, rng, likelihood, draw, inference):
    """To the last bit, and a weight of zero as no row at all."""
    y, weight = draw(rng).astype(float), rng.integers(0, 4, 200)
    rows = rng.permutation(np.repeat(np.arange(200), weight))
    settings = QUICK | {"likelihood": likelihood, "inference": inference}
    settings |= {"epochs": 3} if inference == "online-em" else {}
    one = TensorRing(**settings).fit(coords, y, sample_weight=weight)
    two = TensorRing(**settings).fit(coords[rows], y[rows])
    same_model(one, two, coords)


@pytest.mark.parametrize("likelihood", [Gaussian(), Poisson()])
def test_scores_are_weighted(coords, rng, likelihood):
    """A row of weight zero counts for nothing, of discrete values, too."""
    y, weight = rng.poisson(1.0 + coords[:, 0]).astype(float), rng.integers(0, 2, 200)
    ring = TensorRing(**QUICK | {"likelihood": likelihood}).fit(coords, y)
    kept = weight > 0
    weighted = ring.score(coords, y, sample_weight=weight)
    assert weighted == pytest.approx(ring.score(coords[kept], y[kept]), rel=1e-9)
    assert weighted != pytest.approx(ring.score(coords, y), rel=1e-9)


def test_weights_matter(coords, rng):
    y = rng.standard_normal(200)
    plain = TensorRing(**QUICK).fit(coords, y)
    heavy = TensorRing(**QUICK).fit(coords, y, sample_weight=np.where(y > 0, 5.0, 1.0))
    assert heavy.predict(coords).mean() > plain.predict(coords).mean() + 0.1


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_are_as_good_as_arrays(library, rng):
    n = 200
    table = {
        "a": [f"a{i}" for i in rng.integers(0, 5, n)],
        "b": rng.integers(0, 6, n),
        "c": [f"c{i}" for i in rng.integers(0, 4, n)],
        "y": rng.poisson(4.0, n).astype(float),
        "hours": rng.integers(1, 9, n).astype(float),
    }
    frame = library(table)
    settings = QUICK | {"likelihood": "negative-binomial"}
    named = TensorRing(**settings).fit(frame, value="y", exposure="hours")
    given = TensorRing(**settings).fit(
        frame, modes=["a", "b", "c"], value="y", exposure=np.array(table["hours"])
    )
    assert named.labels_.names == ("a", "b", "c")
    same_model(named, given, frame)


def test_exposure_divides_rates(coords, rng):
    """Counts over ten hours at three per hour: three are expected in an hour."""
    y = rng.poisson(30.0, 200).astype(float)
    ring = TensorRing(**QUICK | {"likelihood": "poisson"}).fit(coords, y, exposure=10.0)
    assert ring.predict(coords).mean() == pytest.approx(3.0, rel=0.1)


def test_values_below_a_limit(rng):
    """Knowing that values lie below a limit beats leaving them out."""
    n = 900
    coords = np.stack([rng.integers(0, size, n) for size in (8, 9, 7)], axis=1)
    truth = np.sin(coords[:, 0]) + np.cos(2.0 * coords[:, 1]) + 0.3 * coords[:, 2]
    y = truth + 0.2 * rng.standard_normal(n)
    hidden = y < 0.5
    settings = QUICK | {"warmup": 60, "draws": 40, "shape": (8, 9, 7)}
    without = TensorRing(**settings).fit(coords[~hidden], y[~hidden])
    limit = np.where(hidden, 0.5, np.nan)
    known = TensorRing(**settings).fit(coords, np.where(hidden, np.nan, y), value_upper=limit)
    errors = [
        np.sqrt(np.mean((ring.predict(coords[hidden]) - truth[hidden]) ** 2))
        for ring in (without, known)
    ]
    assert errors[1] < 0.8 * errors[0]
    lower, upper = known.predict_interval(coords[~hidden])
    assert np.mean((lower < y[~hidden]) & (y[~hidden] < upper)) > 0.8


def test_noisy_instruments_count_less(rng):
    n = 800
    coords = np.stack([rng.integers(0, size, n) for size in SHAPE], axis=1)
    truth = coords[:, 0] * 0.5 + np.sin(coords[:, 1]) * coords[:, 2]
    error = np.where(rng.random(n) < 0.5, 0.05, 3.0)
    y = truth + (0.1 + error) * rng.standard_normal(n)
    settings = QUICK | {"warmup": 60, "draws": 40}
    plain = TensorRing(**settings).fit(coords, y)
    known = TensorRing(**settings).fit(coords, y, value_error=error)
    errors = [np.std(ring.predict(coords) - truth) for ring in (plain, known)]
    assert errors[1] < 0.7 * errors[0]
    noise = known.posterior_.scale / np.sqrt(known.posterior_.nuisance[:, 0].mean())
    assert noise < 0.5


def test_what_stands_between():
    nan, inf = np.nan, np.inf
    values = np.array([1.0, nan, nan, nan, nan, nan])
    lower = np.array([0.0, nan, 2.0, 3.0, nan, -inf])
    upper = np.array([2.0, 5.0, nan, 3.0, nan, inf])
    found, given = between(values, {"value_lower": lower, "value_upper": upper})
    np.testing.assert_array_equal(found, [1.0, 5.0, 2.0, 3.0, nan, nan])
    np.testing.assert_array_equal(given.lower, [nan, -inf, 2.0, nan, nan, nan])
    np.testing.assert_array_equal(given.upper, [nan, 5.0, inf, nan, nan, nan])


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({"sample_weight": -1.0}, r"sample_weight must be zero or more, got -1 in row 0"),
        ({"sample_weight": np.zeros(200)}, "sample_weight is zero in every row"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 values, but X has 200 rows"),
        ({"exposure": np.zeros(200)}, "exposure must be positive, got 0 in row 0"),
        ({"exposure": 2.0}, "exposure was given, which the likelihood Gaussian cannot use"),
        ({"value_error": np.full(200, np.nan)}, "value_error must be finite, got NaN in row 0"),
        ({"value_error": "sigma"}, "value_error names 'sigma', which is not a column"),
        ({"value_lower": np.full(200, 9.0)}, "not between value_lower and value_upper in row 0"),
        ({"value_lower": 1.0}, "value_lower must be 200 numbers, one per row"),
        (
            {"value_lower": np.full(200, 2.0), "value_upper": np.full(200, 1.0)},
            "value_lower is above value_upper in row 0",
        ),
    ],
)
def test_one_clear_sentence(coords, known, text):
    with pytest.raises(ValueError, match=text):
        TensorRing(**QUICK).fit(coords, np.linspace(0, 1, 200), **known)


@pytest.mark.parametrize(
    ("likelihood", "y", "text"),
    [
        ("negative-binomial", [0.5], r"must hold counts, 0, 1, 2, \.\.\., .* got 0.5 in row 7"),
        ("poisson", [-1.0], "got -1 in row 7"),
        ("ordinal", [1.5], "must hold integers for the Ordinal likelihood"),
        ("ordinal", [90.0], "at most 30 consecutive integers"),
    ],
)
def test_values_that_a_likelihood_cannot_have(coords, likelihood, y, text):
    values = np.ones(200)
    values[7] = y[0]
    with pytest.raises(ValueError, match=text):
        TensorRing(**QUICK | {"likelihood": likelihood}).fit(coords, values)


def test_settings_that_a_likelihood_cannot_have():
    for make in (
        lambda: NegativeBinomial(spread=0.0),
        lambda: NegativeBinomial(size=-1.0),
        lambda: Poisson(excess=0.0),
        lambda: Ordinal(levels=1),
        lambda: Ordinal(spread=-1.0),
        lambda: Gaussian(caps=(1.0,)),
    ):
        with pytest.raises(ValueError, match="must be"):
            make()


def test_ratings_of_halves_are_refused(coords):
    with pytest.raises(ValueError, match="sample_weight must be whole numbers"):
        TensorRing(**QUICK | {"likelihood": "ordinal"}).fit(
            coords, np.arange(200) % 3, sample_weight=0.5
        )


def test_noise_by_a_mode_that_is_not_there(coords):
    with pytest.raises(ValueError, match="noise_by of Gaussian names 'station', but the modes are"):
        TensorRing(**QUICK | {"likelihood": Gaussian(noise_by="station")}).fit(
            coords, np.arange(200.0)
        )


def test_noise_by_a_mode(rng):
    n = 1_500
    coords = np.stack([rng.integers(0, size, n) for size in SHAPE], axis=1)
    truth = (1 + coords[:, 0]) * np.cos(coords[:, 1]) * (1 + coords[:, 2])
    noise = np.array([0.05, 0.1, 0.3, 1.0, 2.0, 0.1])
    y = truth + noise[coords[:, 1]] * rng.standard_normal(n)
    likelihood = Gaussian(noise_by=1)
    ring = TensorRing(**QUICK | {"likelihood": likelihood, "warmup": 80, "draws": 60}).fit(
        coords, y
    )
    own = ring.posterior_.scale / np.sqrt(ring.posterior_.nuisance[:, 2:].mean(axis=0))
    np.testing.assert_allclose(own, noise, rtol=0.4)
    cells = np.stack(np.unravel_index(np.arange(120), SHAPE), axis=1)
    lower, upper = ring.predict_interval(cells)
    deviation = ring.predict(cells, return_std=True)[1]
    quiet, loud = cells[:, 1] == 0, cells[:, 1] == 4
    assert np.median((upper - lower)[loud]) > 5 * np.median((upper - lower)[quiet])
    assert np.median(deviation[loud]) > 5 * np.median(deviation[quiet])
    np.testing.assert_allclose(ring.predict_tensor(return_std=True)[1].ravel(), deviation)
    spread = ring.sample(cells, 200).std(axis=0)
    assert np.corrcoef(np.log(spread), np.log(deviation))[0, 1] > 0.9


def test_equal_observations_are_merged_and_joined(rng):
    coords = np.array([[1, 0], [0, 0], [1, 0], [0, 0], [0, 1]])
    data = Observations(coords, np.array([2.0, 1.0, 2.0, 3.0, 1.0]), (2, 2))
    found = merged(in_order(data))
    np.testing.assert_array_equal(found.values, [1.0, 3.0, 1.0, 2.0])
    np.testing.assert_array_equal(found.given.weight, [1.0, 1.0, 1.0, 2.0])
    assert merged(in_order(data._replace(values=np.arange(5.0)))).given.weight is None
    apart = data._replace(given=Given(error=np.array([0.1, 0.0, 0.2, 0.0, 0.0])))
    assert merged(in_order(apart)).given.weight is None
    both = joined(found, data)
    assert both is not None
    assert both.given.weight.sum() == 10.0


@pytest.mark.parametrize("likelihood", ["student-t", "negative-binomial", "poisson", "ordinal"])
@pytest.mark.parametrize("inference", ["gibbs", pytest.param("online-em", marks=pytest.mark.ci)])
def test_a_saved_model_answers_the_same(coords, rng, tmp_path, likelihood, inference):
    y = rng.integers(1, 5, 200).astype(float)
    settings = QUICK | {"likelihood": likelihood, "inference": inference}
    settings |= {"epochs": 3} if inference == "online-em" else {}
    ring = TensorRing(**settings).fit(coords, y, sample_weight=rng.integers(1, 3, 200))
    ring.save(tmp_path / "model.ring")
    again = bayesring.load(tmp_path / "model.ring")
    np.testing.assert_array_equal(ring.predict(coords), again.predict(coords))
    for own, other in zip(
        ring.predict_interval(coords), again.predict_interval(coords), strict=True
    ):
        np.testing.assert_array_equal(own, other)
    np.testing.assert_array_equal(ring.observed_.given.weight, again.observed_.given.weight)
    np.testing.assert_array_equal(ring.sample(coords, 5), again.sample(coords, 5))


def test_a_category_that_came_later_is_refused(coords):
    settings = QUICK | {"likelihood": "ordinal", "inference": "online-em", "epochs": 3}
    ring = TensorRing(**settings).fit(coords, np.arange(200) % 3 + 1)
    with pytest.raises(ValueError, match="a category in row 0 outside of the 3"):
        ring.partial_fit(coords[:1], [9.0])


def test_new_observations_have_weights(coords, rng):
    """One new row of weight four is four rows, and one of weight zero none; in a table, too."""
    y = rng.standard_normal(200)
    settings = QUICK | {"inference": "online-em", "epochs": 3}
    rings = [TensorRing(**settings).fit(coords[:150], y[:150]) for _ in range(3)]
    weight = np.where(np.arange(50) < 25, 4.0, 0.0)
    rings[0].partial_fit(coords[150:], y[150:], sample_weight=weight)
    rings[1].partial_fit(coords[150:175], y[150:175], sample_weight=weight[:25])
    rings[2].partial_fit(coords[150:175], y[150:175])
    assert rings[0].n_observations_ == 175
    assert rings[0].observed_.given.weight.sum() == 150 + 100
    found = [ring.predict(coords) for ring in rings]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-3
    table = pd.DataFrame(coords, columns=list("abc")).assign(y=y, w=1.0)
    table.loc[199, "w"] = 0.0
    named = TensorRing(**settings).fit(table[:150], modes=list("abc"), value="y")
    assert named.partial_fit(table[150:], sample_weight="w").n_observations_ == 199
    with pytest.raises(ValueError, match="sample_weight"):
        named.partial_fit(table[150:], sample_weight=[1.0])
    first = TensorRingClassifier(**settings)
    first.partial_fit(coords, y > 0, sample_weight=np.arange(200) % 2)
    first.partial_fit(coords[:9], y[:9] > 0, sample_weight=[1] * 8 + [0])
    assert first.n_observations_ == 108


def test_counts_have_ends_that_are_counts(coords, rng):
    y = rng.poisson(rng.gamma(0.5, 6.0, 200)).astype(float)
    ring = TensorRing(**QUICK | {"likelihood": "negative-binomial"}).fit(coords, y)
    lower, upper = ring.predict_interval(coords, 0.9)
    assert np.all(lower >= 0)
    assert np.all(lower == np.floor(lower))
    assert np.all(upper == np.floor(upper))
    assert np.mean((lower <= y) & (y <= upper)) >= 0.87
