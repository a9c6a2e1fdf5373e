"""Bad input is answered in one clear sentence: the message is what is tested."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, load
from bayesring.likelihoods import Gaussian
from bayesring.priors import EntryGamma, Fixed, GammaProcess, NormalGamma, NormalWishart

X = np.array([[0, 0, 0], [1, 1, 1], [2, 0, 1], [0, 1, 0]])
Y = np.array([1.0, 2.0, 3.0, 0.5])
QUICK = {"warmup": 2, "draws": 2, "chains": 1, "random_state": 0, "progress": False}


def bad(change):
    """X with some entries replaced."""
    array = X.copy()
    for place, value in change.items():
        array[place] = value
    return array


@pytest.mark.parametrize(
    ("coords", "values", "message"),
    [
        (X[0], Y, "one row per observation and one column per mode, got an array of 1 dimension."),
        (
            X[:, :1],
            Y,
            "X must have at least 2 columns, one per mode, got 1 feature(s) (shape=(4, 1)).",
        ),
        (
            X[:0],
            Y[:0],
            "X is empty: found array with 0 sample(s) (shape=(0, 3)) while a minimum of 1",
        ),
        (X, Y[:3], "y has 3 values, but X has 4 rows."),
        (
            X,
            np.stack([Y, Y], 1),
            "y must have one value per row of X and 1 dimension, got shape (4, 2)",
        ),
        (X, None, "y is required: one value per row of X."),
        (X + 0.5, Y, "X must hold integer coordinates that count from 0, got float64"),
        (X > 0, Y, "X must hold integer coordinates that count from 0, got bool"),
        (bad({(2, 1): -4}), Y, "coordinates count from 0, got -4 in row 2, column 1."),
        (bad({(1, 2): 2**31}), Y, "X must be below 2^31, got 2147483648 in row 1, column 2."),
        (X, [1.0, np.nan, 2.0, 3.0], "y must be finite, got NaN in row 1; leave missing cells out"),
        (X, [1.0, 2.0, -np.inf, 3.0], "y must be finite, got infinity in row 2"),
        (X, ["a", "b", "c", "d"], "y must hold real numbers, got values of type <U1."),
        (X, Y + 1j, "y holds complex numbers."),
        (X, np.ma.masked_array(Y, Y > 1), "y is a masked array, whose mask would be lost"),
        (
            np.array([[0, "a"], [1, None]], dtype=object),
            Y[:2],
            "X holds 'a' in row 0, but the argument must be an array of integers",
        ),
        ([[0, 1], [1]], Y[:2], "X has rows of unequal length."),
    ],
)
def test_data(coords, values, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        TensorRing(1, **QUICK).fit(coords, values)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"shape": (3, 2, 1)}, "X has coordinate 1 in row 1, column 2, but mode 2 has size 1"),
        (
            {"shape": (3, 2)},
            "X has 3 features, but TensorRing is expecting 2 features as input: one co",
        ),
        ({"shape": (3, 2, 0)}, "shape must be one positive integer per mode, got (3, 2, 0)."),
        ({"shape": (3, 2.5, 2)}, "shape must be one positive integer per mode"),
        ({"shape": 5}, "shape must be one positive integer per mode, got 5."),
        ({"shape": (2**40, 2**30, 2**30)}, "shape must be at most 2^31 in every mode, got"),
        ({"shape": (2**30, 2**30, 2**30)}, "takes 24.00 GiB, but max_memory leaves"),
        ({"shape": (3, 2, 10**9)}, "One draw of a ring of shape (3, 2, 1000000000) and rank (1, 1"),
        ({"rank": 2.0}, "rank must be made of integers of at least 1, got 2.0."),
        ({"rank": None}, "rank must be made of integers of at least 1, got None."),
        ({"n_jobs": "2"}, "n_jobs must be a positive number, -1 for all cores, or None; got '2'."),
        ({"update": ["slice"]}, "update must be 'entry' or 'slice', got ['slice']."),
        ({"rank": 0}, "rank must be made of integers of at least 1, got 0."),
        ({"rank": (2, 2)}, "rank has 2 numbers, but the data have 3 modes and so 3 bonds"),
        ({"rank": "autp"}, "got 'autp'. Did you mean 'auto'?"),
        ({"likelihood": "gausian"}, "got 'gausian'. Did you mean 'gaussian'?"),
        ({"likelihood": Gaussian}, "or an object of bayesring.likelihoods, got <class"),
        ({"prior": "papr"}, "got 'papr'. Did you mean 'paper'?"),
        ({"prior": 3}, "prior must be 'hierarchical', 'paper' or an object of bayesring.priors"),
        ({"inference": "gibs"}, "got 'gibs'. Did you mean 'gibbs'?"),
        ({"update": "slices"}, "got 'slices'. Did you mean 'slice'?"),
        ({"warmup": -1}, "warmup must be an integer of at least 0, got -1."),
        ({"draws": 0}, "draws must be an integer of at least 1, got 0."),
        ({"chains": 1.5}, "chains must be an integer of at least 1, got 1.5."),
        ({"chains": "many"}, "chains must be 'auto' or an integer, got 'many'."),
        ({"n_jobs": 0}, "n_jobs must be a positive number, -1 for all cores, or None; got 0."),
        ({"random_state": -3}, "random_state must be an integer of at least 0, got -3."),
        ({"max_memory": 0}, "max_memory must be an integer of at least 1, got 0."),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TensorRing(**{"rank": 1, **QUICK, **parameters}).fit(X, Y)


def test_only_zeros_and_ones_for_bernoulli():
    message = "y must be 0 or 1 for the Bernoulli likelihood, got 2 in row 1."
    with pytest.raises(ValueError, match=message):
        TensorRing(1, likelihood="bernoulli", **QUICK).fit(X, [0, 2, 1, 3])


@pytest.mark.parametrize(
    ("coords", "message"),
    [
        ([[0, 0, 2]], "X has coordinate 2 in row 0, column 2, but mode 2 has size 2"),
        ([[0, 0]], "X has 2 features, but TensorRing is expecting 3 features as input"),
        ([[0, 0, -1]], "got -1 in row 0, column 2"),
        ([[0.0, 0.5, 0.0]], "X must hold integer coordinates"),
    ],
)
def test_predicting_elsewhere(coords, message):
    ring = TensorRing(1, **QUICK).fit(X, Y)
    with pytest.raises(ValueError, match=re.escape(message)):
        ring.predict(coords)


@pytest.mark.parametrize("level", [0, 1, -0.1, 90, "0.9", None])
def test_levels(level):
    ring = TensorRing(1, **QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        ring.predict_interval(X, level=level)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(beta0=0), "alpha0, beta0 and max_precision of Gaussian must be positive"),
        (lambda: Fixed(-1), "precision of Fixed must be positive, got -1."),
        (lambda: EntryGamma(c0=0), "c0 and d0 of EntryGamma must be positive, got 0 and 1.0."),
        (lambda: NormalGamma(k0=0), "k0, c0 and d0 of NormalGamma must be positive"),
        (lambda: NormalWishart(extra_degrees=-1), "extra_degrees above -1"),
        (lambda: GammaProcess(1.0), "a0 of GammaProcess must be above 1, got 1.0."),
    ],
)
def test_settings_of_priors_and_likelihoods(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_a_scan_that_breaks_names_chain_scan_mode_and_slice(monkeypatch):
    """Values of any size are standardised first; here the prior's numbers break in scan 3."""
    right = Fixed.slice_prior

    def slice_prior(self, shape, hyper, calls=[]):  # noqa: B006
        calls.append(1)
        prior = right(self, shape, hyper)
        return prior if len(calls) <= 7 else prior._replace(diagonal=prior.diagonal * np.nan)

    monkeypatch.setattr(Fixed, "slice_prior", slice_prior)
    message = (
        r"broke down in chain 0, scan 3: slice 0 of mode 1 could not be drawn\. Numbers became"
    )
    with pytest.raises(FloatingPointError, match=message):
        TensorRing(2, prior="paper", **QUICK).fit(X, Y)


def test_entry_wise_updates_need_independent_entries():
    message = "update='entry' needs a prior whose entries are independent, but NormalWishart"
    with pytest.raises(ValueError, match=message):
        TensorRing(1, update="entry", **QUICK).fit(X, Y)
    TensorRing(1, update="entry", prior="paper", **QUICK).fit(X, Y)


@pytest.mark.parametrize("value", [0, 1])
def test_one_binary_value_alone_works_and_is_warned_of(value):
    ring = TensorRing(1, likelihood="bernoulli", **QUICK | {"warmup": 60, "draws": 60})
    with pytest.warns(UserWarning, match=f"All 4 values of y are {value}: how likely the other"):
        ring.fit(X, np.full(4, value))
    assert np.all((ring.predict(X) > 0.5) == value)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.filterwarnings("ignore:All 1 values of y")
def test_one_observation_is_enough(likelihood):
    ring = TensorRing(2, likelihood=likelihood, shape=(2, 2, 2), **QUICK).fit([[0, 0, 0]], [1])
    assert np.all(np.isfinite(ring.predict_tensor()))


def test_modes_of_size_one_and_empty_ranges():
    """One place only in mode 1; slices 3 to 99 of mode 0 have no observation."""
    coords = np.array([[0, 0, 0], [1, 0, 1], [2, 0, 2], [0, 0, 1]])
    ring = TensorRing(2, shape=(100, 1, 3), **QUICK).fit(coords, Y)
    assert ring.predict_tensor().shape == (100, 1, 3)


def test_cells_never_observed_are_answered_from_the_prior(rng):
    """A slice without data falls back on the mean slice, with a wider error bar."""
    coords = np.stack([rng.integers(0, n, 300) for n in (6, 7, 8)], axis=1)
    y = 5 + 0.1 * rng.standard_normal(300)
    ring = TensorRing(1, shape=(7, 7, 8), **QUICK | {"warmup": 100, "draws": 200}).fit(coords, y)
    seen, unseen = ring.predict([[0, 0, 0]], True), ring.predict([[6, 0, 0]], True)
    assert abs(unseen[0] - 5) < 1
    assert unseen[1] >= 0.9 * seen[1]


def test_duplicate_cells_count_as_repeated_measurements():
    coords = np.array([[0, 0, 0]] * 50 + [[1, 1, 1]])
    y = np.append(np.tile([1.0, 3.0], 25), 0.0)
    ring = TensorRing(1, **QUICK | {"warmup": 100, "draws": 200}).fit(coords, y)
    mean, of_mean = ring.predict([[0, 0, 0]], return_std=True, noise=False)
    assert abs(mean[0] - 2) < 0.6
    assert of_mean[0] < 0.6


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_values_of_extreme_size_are_no_trouble(size):
    ring = TensorRing(1, **QUICK).fit(X, Y * size)
    assert np.all(np.isfinite(ring.predict(X) / size))


def test_constant_values_are_no_trouble():
    with pytest.warns(UserWarning, match="All 4 values are 7: there is nothing to learn"):
        ring = TensorRing(1, **QUICK | {"warmup": 50, "draws": 50}).fit(X, np.full(4, 7.0))
    mean, deviation = ring.predict(X, return_std=True)
    assert np.all(np.abs(mean - 7.0) < 4 * deviation)


def test_a_ring_prior_of_one_prior_and_of_nonsense():
    from bayesring.priors import GammaProcess, NormalGamma, RingPrior

    assert RingPrior(NormalGamma(), GammaProcess()) == RingPrior((NormalGamma(),), GammaProcess())
    with pytest.raises(TypeError, match="modes of RingPrior must be priors of modes, got 'paper'"):
        RingPrior(("paper",), GammaProcess())
    with pytest.raises(TypeError, match="modes of RingPrior must be priors of modes"):
        RingPrior((), GammaProcess())
    with pytest.raises(TypeError, match="weights of RingPrior must be a prior of bond weights"):
        RingPrior((NormalGamma(),), 3.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"modes": 5}, "modes must be a list of column names, got 5."),
        ({"modes": {"a", "b"}}, "modes must be a list of column names, got {"),
        (
            {"modes": np.zeros((2, 2))},
            "modes must be a list of column names, got array([[0., 0.], ",
        ),
        ({"modes": [["a"], "b"]}, "modes must be a list of column names, got [['a'], 'b']."),
        ({"value": ["v"]}, "value must be the name of a column, got ['v']."),
        ({"modes": ["a", lambda x: x]}, "modes names <function"),
    ],
)
def test_what_cannot_name_columns(given, message):
    table = pd.DataFrame({"a": [1, 2], "b": [1, 2], "v": [0.5, 1.5]})
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        TensorRing(**QUICK).fit(table, **({"modes": ["a", "b"], "value": "v"} | given))
    assert "\n" not in str(caught.value)


def test_columns_of_one_name():
    table = pd.DataFrame([[1, 2, 0.5]] * 3, columns=["a", "a", "v"])
    with pytest.raises(ValueError, match=r"X has several columns of one name: .*'a'"):
        TensorRing(**QUICK).fit(table, modes=["a", "b"], value="v")


@pytest.mark.parametrize(
    "name", ["draws", "rank", "inference", "likelihood", "prior", "n_jobs", "progress", "chains"]
)
@pytest.mark.parametrize("value", [np.zeros((2, 2, 2)), np.ma.masked_array([[1, 2]]), 10**400])
def test_settings_of_the_wrong_kind_are_shown_on_one_line(name, value):
    if value is not None and np.ndim(value) == 0 and name in ("draws", "n_jobs", "chains"):
        pytest.skip("a large number, but a number")
    with pytest.raises(ValueError, match=r"\.$") as caught:
        TensorRing(**QUICK | {name: value}).fit(X, Y)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_path_that_is_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.ring does not exist\."):
        load(tmp_path / "absent.ring")
    with pytest.raises(TypeError, match=r"path must be a str or a pathlib\.Path, got \[1\]\."):
        load([1])


@pytest.mark.parametrize("key", ["two\nlines", "\u2028", "\x1b[31m", "x" * 5000])
def test_keys_are_shown_on_one_line(key):
    table = pd.DataFrame({"a": [1, 2, 1], "b": ["x", "y", "y"], "v": Y[:3]})
    ring = TensorRing(1, **QUICK).fit(table, modes=["a", "b"], value="v")
    with pytest.raises(ValueError, match="'a' holds text such as") as caught:
        ring.predict(pd.DataFrame({"a": [key], "b": ["x"]}))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    with pytest.warns(UserWarning, match="Labels that the fit did not know: 1 of 'b'") as warned:
        ring.predict(pd.DataFrame({"a": [1], "b": [key]}))
    assert str(warned[0].message).isprintable()
