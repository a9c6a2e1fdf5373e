"""Where new coordinates lie: `positions` of `fold_in` and `partial_fit`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, TensorRingClassifier

QUICK = {"warmup": 20, "draws": 10, "chains": 1, "random_state": 0, "progress": False}
DAYS = np.datetime64("2024-01-01") + np.arange(12)


def grid(first, last, others=(5, 4)):
    """Coordinates from `first` to before `last` of mode 0, and values that change gradually."""
    X = np.indices((last, *others)).reshape(3, -1).T
    X = X[X[:, 0] >= first]
    return X, np.sin(X[:, 0] / 3) * (1 + X[:, 1]) + 0.1 * X[:, 2]


@pytest.fixture(scope="module")
def fitted():
    return TensorRing(1, order=[0], **QUICK).fit(*grid(0, 12), positions={0: np.arange(12) / 2})


def test_new_coordinates_lie_where_they_are_said_to(fitted):
    X, y = grid(12, 14)
    near = fitted.fold_in(X, y, positions={0: [6.5, 9.0]})
    assert near.prior_.modes[0].positions[-3:] == (5.5, 6.5, 9.0)
    by_name = fitted.fold_in(X, y, positions={"mode 0": [*np.arange(12) / 2, 6.5, 9.0]})
    np.testing.assert_array_equal(by_name.predict(X), near.predict(X))
    usual = fitted.fold_in(X, y)
    assert usual.prior_.modes[0].positions[-3:] == (5.5, 6.0, 6.5)
    assert np.any(usual.predict(X, return_std=True)[1] != near.predict(X, return_std=True)[1])


def test_those_of_coordinates_that_are_all_known_are_checked_and_change_nothing(fitted):
    X, y = grid(12, 13)
    X = X[:, [1, 0, 2]]
    ring = TensorRing(1, order=[1], **QUICK)
    old, values = grid(0, 12)
    ring.fit(old[:, [1, 0, 2]], values, positions={0: np.arange(5), 1: np.arange(12)})
    plain = ring.fold_in(X, y)
    for own in (np.arange(5), []):
        same = ring.fold_in(X, y, positions={0: own})
        np.testing.assert_array_equal(same.predict(X), plain.predict(X))


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ({0: [6.5]}, "must be 2 numbers or times, one per new coordinate, or 14, one per coord"),
        ({0: [[6.5, 7.5]]}, "must be 2 numbers or times"),
        ({0: ["a", "b"]}, "must be 2 numbers or times"),
        ({0: [6.5, np.nan]}, "must be finite and go on from the last known one, 5.5"),
        ({0: [6.5, 6.0]}, "must be finite and go on from the last known one, 5.5"),
        ({0: [2.25, 6.0]}, "must be finite and go on from the last known one, 5.5"),
        ({0: np.arange(14)}, "coordinate 1 lay at 0.5, and now at 1"),
        ({0: DAYS[:2]}, r"must be of the kind that the fit had, float64, got datetime64\[D\]"),
        ({1: np.arange(5)}, "the mode 'mode 1', whose labels had none in the fit"),
        ({7: [1.0]}, "positions names the mode 7, but the modes are"),
        ({"day": [1.0]}, "positions names the mode 'day', but the modes are"),
    ],
)
def test_wrong_positions(fitted, positions, message):
    with pytest.raises(ValueError, match=message):
        fitted.fold_in(*grid(12, 14), positions=positions)


def test_positions_must_be_a_mapping(fitted):
    with pytest.raises(TypeError, match="positions must map modes to arrays"):
        fitted.fold_in(*grid(12, 14), positions=[6.5, 9.0])


def test_times_go_on_as_times():
    ring = TensorRing(1, **QUICK).fit(*grid(0, 12), positions={0: DAYS})
    X, y = grid(12, 14)
    later = ring.fold_in(X, y, positions={0: np.array(["2024-01-15T12", "2024-01-16"], "M8[h]")})
    days = later.prior_.modes[0].positions
    np.testing.assert_allclose(np.diff(days)[-2:], [3.5, 0.5])


def test_a_table_says_itself_where_labels_lie():
    X, y = grid(0, 12)
    table = pd.DataFrame({"day": DAYS[X[:, 0]], "a": X[:, 1], "b": X[:, 2], "y": y})
    ring = TensorRing(1, **QUICK).fit(table, modes=["day", "a", "b"], value="y")
    more = table[:20].assign(day=np.datetime64("2024-02-01"))
    with pytest.raises(ValueError, match="X is a table, whose column 'day' says where"):
        ring.fold_in(more, positions={"day": [np.datetime64("2024-02-01")]})


def test_places_on_a_map(rng):
    X, y = grid(0, 12)
    places = rng.random((14, 2))
    ring = TensorRing(1, **QUICK).fit(X, y, positions={0: places[:12]})
    X, y = grid(12, 14)
    new = ring.fold_in(X, y, positions={0: places[12:]})
    np.testing.assert_array_equal(new.labels_.sites_of(0).places, places)
    whole = ring.fold_in(X, y, positions={0: places})
    np.testing.assert_array_equal(whole.predict(X), new.predict(X))
    assert np.isnan(ring.fold_in(X, y).labels_.sites_of(0).places[12:]).all()
    for wrong, message in (
        (places[::-1], "must be those of the fit for the 12 labels that it knew"),
        (places[:2], "must all differ, but a new label lies where another one does"),
        (places[:, :1], "must be rows of 2 numbers"),
        (rng.random((2, 3)), "must be rows of 2 numbers"),
        (places[:3], "must be 2 rows of finite numbers"),
        ([1.0, 2.0], "must be rows of 2 numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            ring.fold_in(X, y, positions={0: wrong})


def test_places_of_labels_in_a_table(rng):
    X, y = grid(0, 12)
    names = np.array([f"s{i:02}" for i in range(14)])
    sites = pd.DataFrame({"station": names, "x": rng.random(14), "z": rng.random(14)})
    keys = {"station": names[X[:, 0]], "a": X[:, 1], "b": X[:, 2]}
    ring = TensorRing(1, **QUICK)
    ring.fit(pd.DataFrame(keys | {"y": y}), positions={"station": sites})
    X, y = grid(12, 14)
    more = pd.DataFrame({"station": names[X[:, 0]], "a": X[:, 1], "b": X[:, 2], "y": y})
    for given in (sites, sites[12:], sites.sample(frac=1, random_state=0)):
        new = ring.fold_in(more, positions={"station": given})
        np.testing.assert_array_equal(new.labels_.sites_of(0).places, sites[["x", "z"]])
    with pytest.raises(ValueError, match="have none for 's13'"):
        ring.fold_in(more, positions={"station": sites[12:13]})
    with pytest.raises(ValueError, match="by 'x' and 'z' as in the fit"):
        ring.fold_in(more, positions={"station": sites[12:].rename(columns={"x": "q"})})


def test_online_em_goes_on_at_given_positions():
    stream = TensorRing(1, inference="online-em", epochs=2, order=[0], **QUICK)
    stream.partial_fit(*grid(0, 12), positions={0: np.arange(12) / 2})
    assert stream.prior_.modes[0].positions[:2] == (0.0, 0.5)
    stream.partial_fit(*grid(12, 14), positions={0: [6.5, 9.0]})
    assert stream.prior_.modes[0].positions[-2:] == (6.5, 9.0)
    with pytest.raises(ValueError, match="must be 1 numbers or times"):
        stream.partial_fit(*grid(14, 15), positions={0: [10.0, 11.0]})
    assert stream.shape_ == (14, 5, 4)


def test_a_classifier_takes_the_same():
    X, y = grid(0, 12)
    new, more = grid(12, 14)
    ring = TensorRingClassifier(1, order=[0], **QUICK).fit(X, y > 0, positions={0: np.arange(12)})
    folded = ring.fold_in(new, more > 0, positions={0: [14.0, 15.0]})
    assert folded.prior_.modes[0].positions[-2:] == (14.0, 15.0)
    stream = TensorRingClassifier(1, inference="online-em", epochs=2, order=[0], **QUICK)
    stream.partial_fit(X, y > 0, classes=[False, True], positions={0: np.arange(12)})
    stream.partial_fit(new, more > 0, positions={0: [14.0, 15.0]})
    assert stream.prior_.modes[0].positions[-2:] == (14.0, 15.0)
    for call in (ring.fit, stream.partial_fit, ring.fold_in):
        with pytest.raises(ValueError, match="exposure was given, which the likelihood Bernoulli"):
            call(new, new[:, 1] > 2, exposure=2.0)
    with pytest.raises(ValueError, match="value_error was given, which the likelihood Bernoulli"):
        ring.fit(new, new[:, 1] > 2, value_error=2.0)
