"""What `likelihood="auto"` takes, and that it is right."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayesring
from bayesring import TensorRing, TensorRingClassifier
from bayesring.choosing import FEWEST, choose_likelihood
from bayesring.data.kinds import choose_by_moments, choose_by_values
from bayesring.data.moments import moments_of
from bayesring.data.observations import Observations
from bayesring.fitting import fit_memory
from bayesring.likelihoods import Bernoulli, Gaussian, NegativeBinomial, StudentT

SHAPE = (8, 9, 7)


def observations(rng, n, values):
    coords = np.stack([rng.integers(0, size, n) for size in SHAPE], axis=1)
    truth = np.sin(coords[:, 0]) + 0.4 * coords[:, 1] * np.cos(coords[:, 2])
    return Observations(coords, np.asarray(values(truth), dtype=float), SHAPE)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1, 1, 0], "bernoulli"),
        ([0, 0, 0, 0], "gaussian"),
        ([1, 1, 2, 1], "gaussian"),
        ([1, 2, 3, 4, 5, 5], "ordinal"),
        ([1, 9, 1, 9], "negative-binomial"),
        ([0, 2, 7, 40], "negative-binomial"),
        ([9, 11, 12, 10, 9, 12], "poisson"),
        ([0, 2, -7, 40], "gaussian"),
        ([0, 2, 7.5, 40], "gaussian"),
    ],
)
def test_by_values_and_by_moments(values, kind):
    values = np.array(values, dtype=float)
    found, notes = choose_by_values(values)
    assert found == kind
    assert len(notes) == 1
    assert "likelihood='" in notes[0]
    assert choose_by_moments(moments_of(values), len(values), len(set(values)))[0] == kind


def test_heavy_tails_are_found_and_normal_ones_are_not(rng):
    heavy = observations(rng, 1_500, lambda f: f + 0.3 * rng.standard_t(2.2, f.size))
    chosen, notes = choose_likelihood("auto", heavy)
    assert chosen == "student-t"
    assert "likelihood='gaussian'" in notes[0]
    normal = observations(rng, 1_500, lambda f: f + 0.3 * rng.standard_normal(f.size))
    chosen, notes = choose_likelihood("auto", normal)
    assert chosen == "gaussian"
    assert "no heavy tails" in notes[0]


def test_counts_and_what_only_looks_like_them(rng):
    counts = observations(rng, 1_000, lambda f: rng.poisson(rng.gamma(3.0, np.exp(0.4 * f))))
    assert choose_likelihood("auto", counts).likelihood == "negative-binomial"
    pixels = observations(
        rng,
        1_500,
        lambda f: np.clip(np.round(128 + 20 * f + 2 * rng.standard_normal(f.size)), 0, 255),
    )
    chosen, notes = choose_likelihood("auto", pixels)
    assert isinstance(chosen, Gaussian)
    assert "negative-binomial" in notes[0]


def test_few_values_are_not_fitted_for(rng, monkeypatch):
    monkeypatch.setattr("bayesring.choosing.contest", None)
    few = observations(rng, FEWEST - 1, lambda f: f)
    assert choose_likelihood("auto", few).likelihood == "gaussian"
    assert choose_likelihood(StudentT(), few) == (StudentT(), [])


def test_complete_says_what_it_took(rng):
    values = rng.poisson(3.0, (5, 6, 4)).astype(float)
    values[rng.random(values.shape) < 0.3] = np.nan
    found = bayesring.complete(
        values, rank=2, chains=1, warmup=15, draws=10, progress=False, random_state=0
    )
    assert "counts" in found.notes[0]
    assert np.all(found.lower >= 0)


def test_the_estimator_warns_of_counts_but_not_those_who_know(rng):
    data = observations(rng, 150, lambda f: rng.poisson(2.0, f.size) + 0.0)
    quick = {"rank": 1, "chains": 1, "warmup": 5, "draws": 5, "random_state": 0, "progress": False}
    with pytest.warns(UserWarning, match="likelihood='negative-binomial' models counts|poisson"):
        TensorRing(**quick).fit(data.coords, data.values)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TensorRing(likelihood=Gaussian(), **quick).fit(data.coords, data.values)
    assert not any("counts" in str(each.message) for each in caught)


def test_the_estimator_chooses_by_the_values_too(rng, tmp_path, capsys):
    data = observations(rng, 300, lambda f: rng.poisson(rng.gamma(3.0, np.exp(0.4 * f))))
    quick = {"rank": 1, "chains": 1, "warmup": 5, "draws": 5, "random_state": 0}
    ring = TensorRing(likelihood="auto", **quick).fit(data.coords, data.values)
    assert "counts" in capsys.readouterr().err
    assert isinstance(ring.posterior_.likelihood, NegativeBinomial)
    named = TensorRing(likelihood="negative-binomial", progress=False, **quick)
    assert np.array_equal(
        named.fit(data.coords, data.values).predict(data.coords), ring.predict(data.coords)
    )
    assert clone(ring).likelihood == "auto"
    ring.fit(data.coords, data.values - 3.5)  # chosen anew
    assert isinstance(ring.posterior_.likelihood, Gaussian)
    assert np.array_equal(_saved(ring, tmp_path).predict(data.coords), ring.predict(data.coords))


def test_it_goes_on_with_what_was_chosen(rng):
    data = observations(rng, 300, lambda f: rng.integers(0, 2, f.size))
    ring = TensorRing(
        1, likelihood="auto", inference="online-em", chains=1, epochs=2, draws=5, progress=False
    )
    ring.partial_fit(data.coords[:200], data.values[:200], shape=SHAPE)
    ring.partial_fit(data.coords[200:], data.values[200:])
    assert isinstance(ring.posterior_.likelihood, Bernoulli)
    assert ring.n_observations_ == 300


def test_files_are_chosen_for_by_their_moments(rng, tmp_path):
    data = observations(rng, 300, lambda f: rng.poisson(rng.gamma(3.0, np.exp(0.4 * f))))
    table = pd.DataFrame(data.coords, columns=["a", "b", "c"]).assign(count=data.values)
    table.to_parquet(tmp_path / "counts.parquet")
    ring = TensorRing(
        1, likelihood="auto", inference="online-em", chains=1, epochs=1, draws=5, progress=False
    )
    ring.fit(tmp_path / "counts.parquet", modes=["a", "b", "c"], value="count")
    assert isinstance(ring.posterior_.likelihood, NegativeBinomial)


def _saved(ring, folder):
    ring.save(folder / "model.ring")
    return bayesring.load(folder / "model.ring")


def test_short_fits_leave_warnings_to_the_user(rng):
    """Fits in threads would restore each other's filters; nothing may be changed at all."""
    data = observations(rng, FEWEST, lambda f: f + rng.standard_normal(f.size))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda _: choose_likelihood("auto", data), range(6)))
        assert list(warnings.filters) == before
    assert not caught
    assert len({choice.likelihood for choice in found}) == 1


def test_labels_without_observations_cost_nothing(rng, monkeypatch):
    data = observations(rng, FEWEST, lambda f: f + rng.standard_normal(f.size))
    far = data._replace(coords=data.coords * 1000, shape=tuple(1000 * size for size in SHAPE))
    shapes = []

    def fit(data, settings):
        shapes.append(data.shape)
        return fit_memory(data, settings)

    monkeypatch.setattr("bayesring.choosing.fit_memory", fit)
    assert choose_likelihood("auto", far) == choose_likelihood("auto", data)
    assert {*shapes} == {SHAPE}


def test_a_misspelt_name_is_told_that_auto_is_one(rng):
    data = observations(rng, 60, lambda f: f)
    with pytest.raises(ValueError, match=r"likelihood must be 'auto', 'bernoulli', .* got 'AUTO'"):
        TensorRing(likelihood="AUTO", progress=False).fit(data.coords, data.values)


def test_classifiers_are_for_two_classes_however_they_begin(rng):
    data = observations(rng, 60, lambda f: np.zeros(f.size))
    ring = TensorRingClassifier(1, likelihood="auto", inference="online-em", progress=False)
    with pytest.raises(ValueError, match="likelihood must be 'bernoulli'"):
        ring.partial_fit(data.coords, data.values, classes=[0, 1], shape=SHAPE)


def test_without_values_there_is_nothing_to_choose_by():
    """What is wrong is said by who looks for values."""
    assert choose_by_values(np.zeros(0)) == ("gaussian", [])
    with pytest.raises(ValueError, match="no value at all"):
        bayesring.complete(np.full((3, 4, 2), np.nan), progress=False)
