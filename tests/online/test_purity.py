"""Functions of online EM leave the estimates that they are given alone, now and later."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from bayesring.data.batches import ArrayRows, Feed
from bayesring.data.observations import Observations
from bayesring.engine.streams import Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer import em, members, online
from bayesring.infer import estimate as reading
from bayesring.infer.schedule import Phase, Schedule
from tests.online.estimates import LIKELIHOODS, PRIORS, learned, make_scene, name_of

SHAPE, BONDS = (5, 4, 3), (2, 3, 2)
STREAMS = Streams.of_chain(3, 1)
LEARNING = online.Learning(3, 1, 5, 2**20, 8, 4)
RATES = (0.01, 0.005)


def arrays_of(value):
    """All arrays in tuples within tuples."""
    if isinstance(value, np.ndarray):
        return [value]
    inner = value if isinstance(value, (tuple, list)) else ()
    return [array for each in inner for array in arrays_of(each)]


def plain(value):
    """The same as tuples of types, bytes and numbers, which can be compared bit for bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return tuple(plain(each) for each in value)
    return value


def frozen(estimate):
    """A copy whose arrays cannot be written to."""
    own = copy.deepcopy(estimate)
    for array in arrays_of(own):
        array.flags.writeable = False
    return own


def verbs(scene):
    """Everything that makes a new estimate of an old one, or reads from it."""
    setting, shape = scene.setting, scene.estimate.shape
    coords = scene.columns[: len(shape)].T
    data = Observations(coords, scene.values, shape)
    rows = ArrayRows(data)
    more = Observations(coords[:12] + np.array([2, 0, 0]), scene.values[:12], (7, *shape[1:]))
    parts = np.array_split(np.arange(len(scene.values)), 36)
    course = members.Course(data, LEARNING, setting.prior, ONE_THREAD)

    def add(estimate):
        return em.add(estimate, rows, STREAMS, 8, RATES, setting)

    def look(estimate):
        member = members.Member(0, estimate, setting.likelihood)
        feed = Feed(rows, STREAMS, 8)
        schedule = Schedule(40, Phase.LEARN, 0.05)
        return members.look(member, feed, schedule, course).estimate

    def follow(estimate):
        member = members.Member(0, estimate, setting.likelihood)
        return members.train(member, rows, course, "ring-0").estimate

    def learn_more(estimate):
        wider = course._replace(judged=more)
        (new,), _ = online.learn_more([estimate], wider, setting.likelihood)
        return new

    return {
        "learn": lambda each: learned(scene._replace(estimate=each), 0.05, True, parts),
        "expect": lambda each: em.expect(each, setting),
        "measure": lambda each: em.measure(each, rows, STREAMS, 8, setting),
        "add": add,
        "grown": lambda each: reading.grown(each, (7, 4, 4)),
        "restarted": lambda each: reading.restarted(each, each.core_list),
        "forgotten": reading.forgotten,
        "gone_back": lambda each: reading.gone_back(each, each),
        "averaged": lambda each: reading.averaged(each, [each, each]),
        "look": look,
        "train": follow,
        "learn_more": learn_more,
        "draw": lambda each: online.draw(each, STREAMS, LEARNING),
    }


@pytest.fixture
def _few_rates(monkeypatch):
    monkeypatch.setattr(online, "MORE_RATES", RATES)
    monkeypatch.setattr(online, "FEWEST_BATCHES", 8)


@pytest.mark.usefixtures("_few_rates")
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
@pytest.mark.parametrize("prior", [PRIORS[1], PRIORS[3], PRIORS[4]], ids=name_of)
def test_estimates_are_never_written_to(rng, likelihood, prior):
    """Read-only arrays keep their bits, the same comes out twice, and nothing done with what came
    out changes it or what it came from.

    Seen to fail: a workspace on the arrays of the estimate itself: cores, weights, curvature,
    moments of Adam or gradient of the weights, each on its own.
    """
    scene = make_scene(rng, likelihood, prior, SHAPE, BONDS, 2)
    given = frozen(learned(scene, 0.05, parts=[np.arange(20), np.arange(20, 40)]))
    bits, every = plain(given), verbs(scene)
    for name, verb in every.items():
        one = verb(given)
        assert plain(given) == bits, name
        assert plain(verb(given)) == plain(one), name
        if name != "draw" and one.shape == given.shape:
            found = plain(one)
            for later, other in every.items():
                other(one)
                assert plain(one) == found, f"{later} changes what {name} gave"
                assert plain(given) == bits, f"{later} changes what {name} was given"


@pytest.mark.usefixtures("_few_rates")
def test_the_verbs_do_something(rng):
    """Or nothing above would mean anything."""
    scene = make_scene(rng, LIKELIHOODS[0], PRIORS[4], SHAPE, BONDS, 2)
    given = learned(scene, 0.05)
    for name, verb in verbs(scene).items():
        if name not in ("gone_back", "averaged"):
            assert plain(verb(given)) != plain(given), name
    after = verbs(scene)["learn"](given)
    assert after.e_steps == 1
    for one, two in zip(after.weights, given.weights, strict=True):
        assert np.all(one != two)
