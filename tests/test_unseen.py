"""Labels that the fit did not know: counted in a warning, answered like one of the known."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing
from bayesring.unseen import cover

SETTINGS = {"rank": 2, "warmup": 60, "draws": 300, "chains": 2, "random_state": 3}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    cells = np.argwhere(np.ones((6, 5, 4), dtype=bool))
    heights = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 20.0])
    t = heights[cells[:, 0]] + np.sin(cells[:, 1]) + 0.3 * rng.standard_normal(len(cells))
    names = np.array(list("abcdef"))[cells[:, 0]]
    return pd.DataFrame({"place": names, "day": cells[:, 1], "hour": cells[:, 2], "t": t})


@pytest.fixture(scope="module")
def ring(table):
    return TensorRing(**SETTINGS, progress=False).fit(
        table, modes=["place", "day", "hour"], value="t"
    )


def ask(**columns):
    return pd.DataFrame({"place": ["a", "b"], "day": [1, 2], "hour": [0, 3]} | columns)


def test_new_labels_are_counted(ring):
    message = r"2 of 'place' \(such as X\), 1 of 'day' \(such as 9\); each is predicted as one of"
    with pytest.warns(UserWarning, match=message):
        found = ring.predict(ask(place=["Y", "X"], day=[9, 2]))
    assert found.notna().all(axis=None)


def test_known_labels_do_not_warn(ring):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ring.predict(ask())


def test_a_new_label_is_like_the_known_ones(ring, table):
    """Mean over the known labels, with the spread between them: the places' heights differ by 6.9
    (standard deviation), so 600 picks miss their mean by about 0.3.
    """
    with pytest.warns(UserWarning, match="1 of 'place'"):
        new = ring.predict(ask(place=["X", "X"]))
    known = [ring.predict(ask(place=[name] * 2)) for name in "abcdef"]
    means = np.stack([each["mean"] for each in known])
    spread = means.std(axis=0)
    np.testing.assert_allclose(new["mean"], means.mean(axis=0), atol=4 * spread.max() / 24)
    noise = np.mean([each["std"] ** 2 for each in known], axis=0)
    np.testing.assert_allclose(new["std"], np.sqrt(spread**2 + noise), rtol=0.1)
    assert (new["std"] > 5 * known[0]["std"]).all()
    assert np.all(new["lower"] < means.min(axis=0) + 1)
    assert np.all(new["upper"] > means.max(axis=0) - 1)


@pytest.mark.filterwarnings("ignore:Labels that the fit did not know")
def test_an_answer_does_not_depend_on_what_else_is_asked(ring):
    both = ring.predict(ask(place=["X", "b"]))
    alone = ring.predict(ask(place=["X", "b"]).head(1))
    pd.testing.assert_frame_equal(both.head(1), alone, rtol=1e-12)
    plain = ring.predict(ask())
    np.testing.assert_allclose(both["mean"][1], plain["mean"][1], rtol=1e-12)
    assert ring.sample(ask(place=["X", "b"]), 7).shape == (7, 2)


def test_covering_changes_nothing_that_is_known(ring):
    coords = np.array([[5, 4, 3], [0, 0, 0], [6, 1, 1]])
    posterior, places = cover(ring.posterior_, coords, 0)
    np.testing.assert_array_equal(
        posterior.entries(places[:2]), ring.posterior_.entries(coords[:2])
    )
    assert cover(ring.posterior_, coords[:2], 0)[0] is ring.posterior_


def test_the_new_slice_of_a_draw_is_one_of_its_slices(ring):
    coords = np.array([[6, 1, 1]])
    posterior, places = cover(ring.posterior_, coords, 0)
    new = posterior.entries(places)[:, 0]
    known = ring.posterior_.entries(np.array([[place, 1, 1] for place in range(6)]))
    gaps = np.abs(known - new[:, None]).min(axis=1)
    np.testing.assert_allclose(gaps, 0.0, atol=1e-12)
