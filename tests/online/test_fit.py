"""Online EM through the estimator: recovery, size, end, intervals, threads, order, reports."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bayesring import settings
from bayesring.engine.streams import Purpose, Streams
from bayesring.engine.threads import Threads
from bayesring.infer import members, online
from bayesring.infer.estimate import curvatures, deviations, draw_gaps
from bayesring.infer.schedule import LATE
from bayesring.likelihoods import Bernoulli
from bayesring.model.rank import StrandGrowth
from tests.online.planted import SHAPE, make, planted, rms


@pytest.fixture(scope="module")
def real():
    """Planted values, 3,000 to learn from and 2,000 to judge by, and a model of them."""
    X, y, f = planted(np.random.default_rng(7), 5_000)
    return X, y, f, make(shape=SHAPE).fit(X[:3_000], y[:3_000])


def test_real_values_are_found(real):
    """Errors well below the noise of 1.6, and the noise itself.

    Seen to fail: a step down instead of up; noise at its start.
    """
    X, _, f, model = real
    assert rms(model.predict(X[3_000:]) - f[3_000:]) < 0.6 * 1.6
    noise = model.trace_[0].described["noise"][-1]  # in the units of the data
    assert 0.8 * 1.6 < noise < 1.2 * 1.6
    assert model.held_out_ is not None
    assert rms(model.held_out_.values - model.held_out_.mean) < 1.25 * 1.6


def test_intervals_cover(real):
    """90 % intervals of new observations hold 85 to 95 % of them.

    Seen to fail: noise left out of the quantile; draws ten times too wide.
    """
    X, y, _, model = real
    lower, upper = model.predict_interval(X[3_000:])
    inside = np.mean((lower <= y[3_000:]) & (y[3_000:] <= upper))
    assert 0.85 <= inside <= 0.95


def test_draws_stand_in_pairs_around_the_estimate(real):
    """Equation (23): antithetic pairs whose middle is the estimate, slices of that precision."""
    _, _, _, model = real
    learning = members.Learning(3, 2, draws=40, max_bytes=2**20, batch_size=512, epochs=1)
    for number, estimate in enumerate(model.estimates_):
        draws = online.draw(estimate, Streams.of_chain(3, number), learning)
        middle = (draws.flat[0].astype(float) + draws.flat[1]) / 2
        np.testing.assert_allclose(middle, estimate.flat.flat, rtol=1e-6, atol=1e-6)
    rng, estimate = np.random.default_rng(0), model.estimates_[0]
    gaps = deviations(estimate, 1, rng, 4_000).reshape(4_000, SHAPE[1], -1)
    prior = estimate.slice_priors[1]
    for i in (0, 5):
        diagonal = prior.diagonal[0] + curvatures(estimate, 1)[i]
        expected = np.linalg.inv(prior.precision + np.diag(diagonal))
        found = np.cov(gaps[:, i].T)
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        np.testing.assert_allclose(found / scale, expected / scale, atol=0.12)


def test_held_out_rows_are_learned_from_in_the_end(real):
    _, _, _, model = real
    assert 250 <= len(model.held_out_.values) <= 350
    assert [each.n_observations for each in model.estimates_] == [3_000] * 2


def test_settling_leaves_the_calibration_alone(real, monkeypatch):
    """Rows that were held out are learned from then, and can judge no more."""
    X, y, _, _ = real
    seen, look = [], members.look

    def watched(member, feed, schedule, course, judges=True):
        seen.append((schedule.phase, member.estimate.n_observations, judges))
        return look(member, feed, schedule, course, judges)

    monkeypatch.setattr(members, "look", watched)
    model = make(2, shape=SHAPE, chains=1, epochs=12).fit(X[:600], y[:600])
    settled = [judges for _, n, judges in seen if n == 600]
    assert settled
    assert not any(settled)
    assert all(judges for _, n, judges in seen if n == 540)
    assert model.posterior_.likelihood.max_precision is not None


def test_the_width_that_was_chosen_is_that_of_the_draws(real, monkeypatch):
    """Those kept, not only those by which it was chosen."""
    X, y, _, _ = real
    monkeypatch.setattr(online, "WIDTHS", (0.25,))
    monkeypatch.setattr(online, "MOST_SAMPLED", 0)
    model = make(2, shape=SHAPE, epochs=1).fit(X[:600], y[:600])
    for number, estimate in enumerate(model.estimates_):
        assert estimate.width == 0.25
        rng = Streams.of_chain(model.seed_, number).rng(1, Purpose.SPREAD)
        expected = estimate.flat.flat + 0.25 * draw_gaps(estimate, rng, 40)
        np.testing.assert_allclose(model.posterior_.chains[number].flat, expected)


def test_binary_values_are_found():
    """Log score close to that of the true probabilities, far from that of the average."""
    X, y, p = planted(np.random.default_rng(8), 6_000, steep=3.0)
    model = make(likelihood="bernoulli", shape=SHAPE).fit(X[:4_000], y[:4_000])
    y, p = y[4_000:], p[4_000:]
    best = np.mean(np.log(np.where(y > 0.5, p, 1 - p)))
    base = np.mean(y) * np.log(np.mean(y)) + np.mean(1 - y) * np.log(np.mean(1 - y))
    assert model.score(X[4_000:], y) > best - 0.35 * (best - base)
    assert np.all((model.predict(X) > 0) & (model.predict(X) < 1))


def test_rank_grows_if_data_need_it():
    """Few strands for a planted ring of rank one with noise, many for one of rank four without."""
    policy = StrandGrowth(width=1, initial=1)
    X, few, _ = planted(np.random.default_rng(9), 2_000, rank=1, noise=1.0)
    X_many, many, _ = planted(np.random.default_rng(9), 4_000, rank=4, noise=0.05)
    small = make(policy, chains=1, epochs=20).fit(X, few)
    large = make(policy, chains=1, epochs=20).fit(X_many, many)
    assert max(small.rank_) <= 4
    assert min(large.rank_) >= 8


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_the_size_that_predicts_best_is_chosen(n_jobs):
    """Until one is worse; what lies beyond does not count. Seen to fail: the last size tried."""
    losses = {1: 1.0, 2: 0.5, 4: 0.504, 8: 0.9, 16: 0.506, 32: 0.51, 64: 0.1}

    def trained(strands):
        return SimpleNamespace(strands=strands, loss=losses[strands])

    with Threads(n_jobs) as engine:
        assert online.choose(list(losses), trained, engine).strands == 4
        assert online.choose(list(losses), trained, engine, worse=-0.01).strands == 2
        better = {1: 1.0, 2: 0.995, 4: 0.985, 8: 0.98}.items()
        sizes = [SimpleNamespace(strands=strands, loss=loss) for strands, loss in better]
        assert online.choose(sizes, lambda size: size, engine, worse=-0.01).strands == 4


@pytest.mark.parametrize(("likelihood", "worse"), [("gaussian", 0.01), ("bernoulli", -0.01)])
def test_a_larger_ring_of_binary_values_must_predict_better(real, monkeypatch, likelihood, worse):
    """Its intervals are wider for nothing otherwise."""
    X, y, _, _ = real
    choose, asked = online.choose, []

    def watched(sizes, trained, engine, own):
        asked.append(own)
        return choose(sizes[:1], trained, engine, own)

    monkeypatch.setattr(online, "choose", watched)
    values = y[:200] if likelihood == "gaussian" else np.arange(200) % 2
    make(likelihood=likelihood, rank="auto", shape=SHAPE, epochs=1).fit(X[:200], values)
    assert asked == [worse]


def test_draws_that_memory_has_no_room_for_are_thinned(real, monkeypatch):
    """No fewer scans than draws were asked for. Seen to fail: as few scans as draws are kept."""
    X, y, _, _ = real
    asked, sampled = [], online.run_chains

    def watched(data, model, sampling, *rest, **named):
        asked.append(sampling.length)
        return sampled(data, model, sampling, *rest, **named)

    monkeypatch.setattr(online, "run_chains", watched)
    quick = {"shape": SHAPE, "chains": 1, "epochs": 1, "draws": 40, "max_memory": 2**11}
    model = make(1, **quick).fit(X[:300], y[:300])
    [length] = asked
    fitting = length.max_bytes // (online.DRAW_BYTES * model.estimates_[0].cores.size)
    assert 1 < fitting < 40
    assert length.draws == fitting * -(-40 // fitting)


def test_it_stops_by_itself(real):
    """Long before the limit of passes; and at the limit if that is lower."""
    X, y, _, _ = real
    limit = 10_000
    model = make(shape=SHAPE, chains=1, epochs=limit).fit(X[:600], y[:600])
    looks = len(model.trace_[0].log_likelihood)
    assert looks < 200
    short = make(shape=SHAPE, chains=1, epochs=12).fit(X[:600], y[:600])
    assert len(short.trace_[0].log_likelihood) == 12 + 1  # and an eighth more with all rows


@pytest.mark.filterwarnings("ignore::bayesring.data.traps.DataWarning")
@pytest.mark.parametrize(("order", "n"), [(3, 4), (3, 300), (4, 300)])
def test_constant_values_stay_in_bounds(order, n):
    """Where data say nothing of the entries, the prior holds them.

    Seen to fail: Omega at the bare mode, which falls with every E-step; intervals were thousands
    wide.
    """
    X = np.random.default_rng(1).integers(0, 4, (n, order))
    model = make(shape=(4,) * order, epochs=60).fit(X, np.full(n, 7.0))
    lower, upper = model.predict_interval(X)
    assert np.all((lower <= 7.0) & (upper >= 7.0))
    assert np.all(upper - lower < 70.0)
    np.testing.assert_allclose(model.predict(X), 7.0, atol=7.0)


def test_adam_goes_back_with_the_ring(real, monkeypatch):
    """After a standstill ring and moments are those of one look; none when the prior comes in.

    Gradients have another size from then on. Seen to fail: moments of the last look; moments kept
    when the prior comes in; a ring of before, long after.
    """
    X, y, _, _ = real
    seen, look = [], members.look

    def state(member):
        return member.estimate.cores.copy(), member.estimate.adam.second.copy()

    def watched(member, feed, schedule, course, judges=True):
        after = look(member, feed, schedule, course, judges)
        seen.append((schedule.rate, schedule.expects, state(member), state(after)))
        return after

    monkeypatch.setattr(members, "look", watched)
    make(shape=SHAPE, chains=1, epochs=200).fit(X[:3_000], y[:3_000])
    halved = woken = 0
    for place in range(1, len(seen) - 2 * LATE):
        (old_rate, old_expects, *_), (rate, expects, (flat, second), _) = seen[
            place - 1 : place + 1
        ]
        if expects != old_expects:
            woken += 1
            assert not second.any()
        elif rate != old_rate:
            halved += 1
            (then,) = (
                after
                for _, expects, _, after in seen[:place]
                if expects and np.array_equal(after[0], flat)
            )
            np.testing.assert_array_equal(then[1], second)
    assert woken == 1
    assert halved >= 3


def test_short_fits_forget_too(real, monkeypatch):
    """The prior comes in without a standstill when passes run short.

    Seen to fail: Adam with the moments of before.
    """
    X, y, _, _ = real
    first, look = [], members.look

    def watched(member, feed, schedule, course, judges=True):
        if schedule.expects and not first:
            first.append(member.estimate.adam.second.copy())
            assert member.seen.losses
        return look(member, feed, schedule, course, judges)

    monkeypatch.setattr(members, "look", watched)
    make(shape=SHAPE, chains=1, epochs=4).fit(X[:3_000], y[:3_000])
    assert not first[0].any()


def test_seeds_threads_and_order(real):
    """One seed, one result, on any number of threads and in any order of arrival.

    Seen to fail: rows not sorted before they are shuffled.
    """
    X, y, _, _ = real
    X, y = X[:600], y[:600]
    quick = {"shape": SHAPE, "epochs": 1, "chains": 2}
    policy = StrandGrowth(initial=1, fewest=4, most=8)
    one = make(policy, **quick).fit(X, y)
    again = make(policy, n_jobs=2, **quick).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    turned = make(policy, **quick).fit(X[order], y[order])
    for a, b, c in zip(*(each.posterior_.chains for each in (one, again, turned)), strict=True):
        np.testing.assert_array_equal(a.flat, b.flat)
        np.testing.assert_array_equal(a.flat, c.flat)
    first, second = one.posterior_.chains
    assert not np.allclose(first.flat, second.flat)
    assert one.rank_ == again.rank_ == turned.rank_


def test_what_is_said_of_a_fit(real, tmp_path):
    """Diagnostics, the page, the summary in notebooks, the tree: no word of chains' agreement."""
    _, _, _, model = real
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.diagnostics()
    assert not any("R-hat" in problem or "effective" in problem for problem in found.problems)
    html = model._repr_html_()
    assert "R-hat" not in html.split("<style>")[0]
    tree = model.to_datatree()
    assert dict(tree["posterior"].sizes) == {"chain": 2, "draw": 40, "cell": 49}  # one twice
    path = tmp_path / "report.html"
    model.report(path)
    text = path.read_text()
    assert "online EM" in text
    assert "R-hat" not in text
    model.plot_trace()


def test_few_observations_and_constant_values():
    """Nothing held out, slices without data, one value only."""
    X = np.array([[0, 1, 2], [1, 0, 1], [2, 2, 0], [0, 0, 0]])
    model = make(shape=(4, 3, 3), epochs=1).fit(X, [1.0, 2.0, 3.0, 4.0])
    assert model.held_out_ is None
    mean, deviation = model.predict(np.array([[3, 1, 1]]), return_std=True)
    assert np.isfinite(mean[0])
    assert deviation[0] > 0
    with pytest.warns(UserWarning, match="All 4 values of y are 1"):
        binary = make(likelihood=Bernoulli(), epochs=1).fit(X, np.ones(4))
    assert np.all(binary.predict(X) > 0.4)


@pytest.mark.parametrize(
    ("name", "value"), [("batch_size", 0), ("batch_size", "large"), ("epochs", 0), ("epochs", 2.5)]
)
def test_settings_are_checked(name, value):
    with pytest.raises(ValueError, match=name):
        make(**{name: value}).fit(np.array([[0, 0], [1, 1]]), [1.0, 2.0])


def resolved(**changes):
    return settings.resolve(make(**changes).get_params(deep=False))


def test_rings_are_more_on_small_data():
    few, many = settings.FEW, settings.FEW + 1
    assert resolved(chains="auto").count_chains(few) == 8
    assert resolved(chains="auto").count_chains(many) == 4
    assert resolved(chains="auto", inference="gibbs", epochs=200).count_chains(few) == 4
    assert resolved(chains=3).count_chains(few) == 3


@pytest.mark.parametrize("how", [{}, {"inference": "gibbs", "epochs": 200, "batch_size": "auto"}])
@pytest.mark.parametrize("warmup", ["auto", 100])
def test_rings_of_few_binary_values_begin_with_more_strands(how, warmup):
    """Fewer would say that log odds are near each other, and intervals would be too narrow."""
    for likelihood, n, strands in (
        ("gaussian", 20, 2),
        ("bernoulli", 20, 4),
        ("bernoulli", 2_159, 4),
        ("bernoulli", 2_160, 2),
    ):
        asked = resolved(likelihood=likelihood, rank="auto", warmup=warmup, **how)
        policy = asked.sized((9, 9, 9), n).model.policy
        together = how and warmup == "auto"
        if n == 2_160 and together:
            strands = 1  # see `JointGrowth`
        assert getattr(policy, "gain", 0.01) == (0.02 if n == 2_160 and together else 0.01)
        assert policy.sizes((9, 9, 9), n / 4)[0].strands == strands
        assert policy.start(3).strands == strands
        assert policy.for_data((9, 9, 9), n / 4) == policy


@pytest.mark.parametrize("from_files", [False, True])
def test_fits_to_few_binary_values_begin_with_more_strands(real, monkeypatch, tmp_path, from_files):
    """From memory and from files, each of which knows its own number of observations."""
    X, _, _, _ = real
    choose, asked = online.choose, []

    def watched(sizes, *others):
        asked.append(sizes[0].strands)
        return choose(sizes[:1], *others)

    monkeypatch.setattr(online, "choose", watched)
    model, ones = make(likelihood="bernoulli", rank="auto", epochs=1), np.arange(200) % 2
    if from_files:
        table = pd.DataFrame(X[:200], columns=["a", "b", "c"]).assign(seen=ones)
        table.to_parquet(tmp_path / "few.parquet")
        model.fit(tmp_path / "few.parquet", modes=["a", "b", "c"], value="seen")
    else:
        model.fit(X[:200], ones)
    assert asked == [4]


def test_batches_grow_with_the_data():
    assert resolved(batch_size="auto").learning(33_150).batch_size == 512
    assert resolved(batch_size="auto").learning(10**8).batch_size == 2048
    assert resolved(batch_size=100).learning(10**8).batch_size == 100


def test_a_generator_moves_on_once_per_fit(real, tmp_path):
    """From memory and from files alike, and not in `partial_fit`, which goes on with the seed.

    Seen to fail: the seed drawn whenever settings are looked at.
    """
    X, y, _, _ = real
    once = np.random.default_rng(4)
    seed = int(once.integers(2**32))
    table = pd.DataFrame({"a": X[:60, 0], "b": X[:60, 1], "c": X[:60, 2], "y": y[:60]})
    table.to_parquet(tmp_path / "some.parquet")
    for given in ((X[:60], y[:60]), (tmp_path,)):
        rng = np.random.default_rng(4)
        names = {"modes": ["a", "b", "c"], "value": "y"} if len(given) == 1 else {}
        model = make(2, chains=1, epochs=1, random_state=rng).fit(*given, **names)
        assert model.seed_ == seed
        assert rng.bit_generator.state == once.bit_generator.state
    model = make(2, chains=1, epochs=1, random_state=rng).fit(X[:60], y[:60])
    before = rng.bit_generator.state
    model.partial_fit(X[:9], y[:9])
    assert rng.bit_generator.state == before
