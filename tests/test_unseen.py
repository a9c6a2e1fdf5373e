"""Labels that the fit did not know: counted in a warning, answered by the prior."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from bayesring import TensorRing, load
from bayesring.data.observations import Observations
from bayesring.engine.streams import Streams
from bayesring.engine.threads import ONE_THREAD, one_blas_thread
from bayesring.infer.chain import Chain, collect
from bayesring.infer.chains import Sampling, run_chains
from bayesring.infer.length import Length
from bayesring.infer.problem import make_problem
from bayesring.infer.state import Draws
from bayesring.likelihoods import Gaussian
from bayesring.model.joint import draw_prior, simulate
from bayesring.model.rank import FixedRank
from bayesring.model.ring import flatten, unweighted, weighted
from bayesring.model.spec import Model
from bayesring.model.types import Axis, RingSize
from bayesring.posterior import Posterior, unseen
from bayesring.posterior.unseen import widen
from bayesring.priors import EntryGamma, Fixed, GammaProcess, NormalGamma, NormalWishart, RingPrior
from tests.models import CORE_PRIORS, draw_model, name_of
from tests.sampling.ladder import batch_error

SETTINGS = {"rank": 2, "order": None, "warmup": 60, "draws": 300, "chains": 2, "random_state": 3}
HEIGHTS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 20.0, 9.0, 7.0, 12.0, 5.0])
PLACES = "abcdefghij"
EMPTY = ["p", "q", "r", "s"]
ignore_new_labels = pytest.mark.filterwarnings("ignore:Labels that the fit did not know")


@pytest.fixture(scope="module")
def table():
    """Ten places that differ in height, and four without a value."""
    rng = np.random.default_rng(5)
    cells = np.argwhere(np.ones((10, 5, 4), dtype=bool))
    t = HEIGHTS[cells[:, 0]] + np.sin(cells[:, 1]) + 0.3 * rng.standard_normal(len(cells))
    names = np.array(list(PLACES))[cells[:, 0]]
    known = pd.DataFrame({"place": names, "day": cells[:, 1], "hour": cells[:, 2], "t": t})
    empty = pd.DataFrame({"place": EMPTY, "day": 0, "hour": 0, "t": np.nan})
    return pd.concat([known, empty], ignore_index=True)


def fit(table, **changes):
    ring = TensorRing(**SETTINGS | changes, progress=False)
    return ring.fit(table, modes=["place", "day", "hour"], value="t")


@pytest.fixture(scope="module")
def ring(table):
    return fit(table)


def ask(**columns):
    return pd.DataFrame({"place": ["a", "b"], "day": [1, 2], "hour": [0, 3]} | columns)


def test_new_labels_are_counted(ring):
    message = r"2 of 'place' \(such as X\), 1 of 'day' \(such as 9\); each is predicted from the pr"
    with pytest.warns(UserWarning, match=message):
        found = ring.predict_table(ask(place=["Y", "X"], day=[9, 2]))
    assert found.notna().all(axis=None)


def test_known_labels_do_not_warn(ring):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ring.predict_table(ask())


@ignore_new_labels
def test_new_labels_differ_from_each_other(ring):
    """In every draw, and from mode to mode."""
    posterior, coords = ring._locate(ask(place=["X", "Y"], day=[1, 1], hour=[0, 0]))
    one, two = posterior.entries(coords).T
    assert not np.any(one == two)
    assert np.std(one - two) > 0.1


@ignore_new_labels
def test_a_new_label_is_like_the_known_ones(ring):
    """Mean of the known labels, or somewhat nearer to zero, with about the spread between them.

    The prior's two slices at zero count as much as known ones, of which there are ten.
    """
    new = ring.predict_table(ask(place=["X", "X"]))
    known = [ring.predict_table(ask(place=[name] * 2)) for name in PLACES]
    means = np.stack([each["mean"] for each in known])
    spread = means.std(axis=0)
    assert (np.abs(new["mean"] - means.mean(axis=0)) < 0.5 * spread).all()
    assert (new["std"] > 0.9 * spread).all()
    assert (new["std"] < 2.0 * spread).all()
    assert (new["std"] > 5 * known[0]["std"]).all()


def new_and_empty(ring, n_new=7):
    """F at one cell in every draw, for places without a value and for others that are new."""
    posterior, none = ring.posterior_, np.empty(0, dtype=np.int64)
    new = np.arange(n_new * len(EMPTY)).astype(str)
    wide = widen(posterior, ring.prior_, (new, none, none), ring.seed_)
    places = np.append(
        np.searchsorted(ring.labels_.levels[0], EMPTY), ring.shape_[0] + np.arange(len(new))
    )
    found = wide.entries(
        np.stack([places, np.full_like(places, 2), np.full_like(places, 1)], axis=1)
    )
    return found[:, : len(EMPTY)], found[:, len(EMPTY) :].reshape(-1, len(EMPTY), n_new)


@pytest.mark.parametrize(
    "prior",
    [
        NormalWishart(),
        NormalGamma(),
        Fixed(2.0),
        EntryGamma(),
        RingPrior((NormalWishart(extra_degrees=2.0),), GammaProcess()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_new_label_is_answered_as_a_known_one_without_values(table, prior):
    """The sampler draws the slices of the latter itself: within a draw nobody can tell them apart.

    Random known slices give 1e-28, slices without their weights 1e-55, and hyperparameters that
    have not seen the known slices 1e-14, where slices share any.
    """
    ring = fit(table, prior=prior, draws=600, chains=1, warmup=100)
    assert rank_p_value(ring) > 1e-3


def rank_p_value(ring):
    empty, new = new_and_empty(ring)
    counts = np.bincount((new < empty[:, :, None]).sum(axis=2).ravel(), minlength=8)
    return chisquare(counts).pvalue


def test_the_new_slice_of_a_draw_is_none_of_its_slices(ring):
    """Known slices picked at random would give no other values than those of known labels."""
    _, new = new_and_empty(ring)
    new = new.reshape(len(new), -1)
    cells = np.array([[place, 2, 1] for place in range(ring.shape_[0])])
    known = ring.posterior_.entries(cells)
    gaps = np.abs(known[:, :, None] - new[:, None]).min(axis=1)
    assert np.all(gaps > 1e-9)
    assert len(np.unique(new)) == new.size


@pytest.mark.parametrize("core_prior", CORE_PRIORS, ids=name_of)
def test_new_slices_and_core_are_distributed_as_a_larger_core(core_prior, rng):
    """Slices drawn with the core from the prior, and given the core, agree with it alike.

    Without the update of the hyperparameters |z| is beyond 20 where they are shared.
    """
    shape, together = (6, 2, 1, 2), (8, 2, 1, 2)

    def statistics(core, new):
        core, new = np.arctan(core), np.arctan(new)
        mean = core.mean(axis=0)
        return [
            np.mean(new**2),
            np.mean(new * mean),
            np.mean(new[0] * new[1]),
            np.mean(new[0, 0] * new[0, 1]),
            np.mean((new - mean) ** 2) * np.mean((core - mean) ** 2),
        ]

    joint, given = [], []
    with one_blas_thread:
        for _ in range(1500):
            whole = core_prior.draw_core(rng, together, core_prior.draw_hyper(rng, together))
            joint.append(statistics(whole[:6], whole[6:]))
            core = core_prior.draw_core(rng, shape, core_prior.draw_hyper(rng, shape))
            noise = rng.standard_normal((2, *shape[1:]))
            given.append(statistics(core, core_prior.new_slices(rng, core, noise, Axis(2))))
    gap = np.mean(joint, axis=0) - np.mean(given, axis=0)
    z = gap / np.hypot(batch_error(joint), batch_error(given))
    assert np.all(np.abs(z) < 4.5), z


def test_intervals_of_new_labels_cover(seed):
    """Data of the model, of which twelve slices are never shown: 90 % intervals hold 90 %.

    Random known slices hold 80 to 83 %.
    """
    rng = np.random.default_rng(seed)
    prior, likelihood = RingPrior.of(NormalWishart(extra_degrees=3.0)), Gaussian(20.0, 1.0, 100.0)
    size, none = RingSize(1, (2, 1, 2)), np.empty(0, dtype=np.int64)
    model, length = Model(likelihood, prior, FixedRank(size.bonds)), Length(40, 80, 2**30)
    cells = np.argwhere(np.ones((16, 4, 3), dtype=bool))
    shown = cells[:, 0] < 4
    shares = []
    for simulation in range(20):
        state = draw_prior(rng, (16, 4, 3), size, likelihood, prior)
        values = simulate(rng, state, cells, (16, 4, 3), likelihood).values
        seen = Observations(cells[shown], values[shown], (4, 4, 3))
        with ONE_THREAD:
            outcome = run_chains(seen, model, Sampling(length, simulation, 1), ONE_THREAD)
        posterior = Posterior(seen.shape, likelihood, 0.0, 1.0, (outcome.chains[0][0],))
        bound = prior.for_shape(seen.shape)
        wide = widen(posterior, bound, (np.arange(12), none, none), simulation)
        lower, upper = wide.interval(cells[~shown], 0.9)
        shares.append(np.mean((lower < values[~shown]) & (values[~shown] < upper)))
    assert abs(np.mean(shares) - 0.9) < 0.05, np.mean(shares)


@ignore_new_labels
def test_an_answer_does_not_depend_on_what_else_is_asked(table, monkeypatch):
    ring = fit(table, warmup=20, draws=30)
    places, days = ["X", "b", "Y", "X", "Z", "X"], [9, 8, 1, 2, 9, 8]
    many = pd.DataFrame({"place": places, "day": days, "hour": [0, 3, 1, 0, 0, 0]})
    whole = ring.predict_table(many)
    alone = pd.concat([ring.predict_table(many.iloc[[row]]) for row in range(len(many))])
    pd.testing.assert_frame_equal(whole, alone, rtol=1e-9)
    pd.testing.assert_frame_equal(whole, ring.predict_table(many[::-1])[::-1], rtol=1e-9)
    monkeypatch.setattr(unseen, "PART_BYTES", 1)
    pd.testing.assert_frame_equal(whole, ring.predict_table(many), rtol=1e-9)
    assert whole["mean"].nunique() == len(many)


@ignore_new_labels
def test_known_cells_are_answered_as_before(ring):
    both = ring.predict_table(ask(place=["X", "b"]))
    np.testing.assert_allclose(both["mean"][1], ring.predict_table(ask())["mean"][1], rtol=1e-12)


@ignore_new_labels
def test_samples_of_one_label_belong_together(ring):
    """Cells of one new place rise and fall together, those of two places less."""
    cells = ask(place=["X", "X"])
    cells = pd.concat([cells, cells.assign(place="Y")])
    samples = ring.sample(cells, 600)
    np.testing.assert_array_equal(samples, ring.sample(cells, 600))
    ranks = samples.argsort(axis=0).argsort(axis=0)
    found = np.corrcoef(ranks.T)
    assert found[0, 1] > 0.8
    assert abs(found[0, 2]) < 0.4


@ignore_new_labels
def test_threads_and_files_change_nothing(ring, table, tmp_path):
    cells = ask(place=["X", "Y"], day=[9, 2])
    found = ring.predict_table(cells)
    ring.save(tmp_path / "model.ring")
    pd.testing.assert_frame_equal(
        found, load(tmp_path / "model.ring").predict_table(cells), check_exact=True
    )
    pd.testing.assert_frame_equal(
        found, fit(table, n_jobs=1).predict_table(cells), check_exact=True
    )


def test_weights_of_draws_are_those_of_the_chain(rng):
    """And dividing by them gives its cores; strands and unequal bonds included."""
    size, likelihood, prior = RingSize(2, (1, 2, 3)), Gaussian(), RingPrior.of(Fixed())
    state, data, _ = draw_model(rng, likelihood, Fixed(), rank=size.bonds, strands=size.strands)
    problem = make_problem(data, likelihood, prior)
    chain = Chain(0, Streams.of_chain(1, 0), state)
    draws, _ = collect(chain, problem, Length(2, 3, 2**30))
    posterior = Posterior(data.shape, likelihood, 0.0, 1.0, (draws,))
    for mode, weights in enumerate(chain.state.weights):
        np.testing.assert_array_equal(draws.bond_weights(2, mode), weights)
        core = unweighted(posterior.cores(2)[mode], weights)
        np.testing.assert_allclose(core, chain.state.cores[mode], rtol=1e-6)  # kept in float32


@pytest.mark.parametrize("core_prior", CORE_PRIORS, ids=name_of)
@pytest.mark.parametrize("weight", [0.0, 5e-324, 1e-200])
def test_factors_that_weigh_nothing_do_no_harm(rng, core_prior, weight):
    """Their columns are lost, and what is drawn for them is multiplied by nothing."""
    cores = [rng.standard_normal((4, 1, 2, 2)) for _ in range(3)]
    weights = np.array([[1.5, weight]])
    laid = flatten(weighted(cores, [weights] * 3))
    draws = Draws(
        laid.flat[None],
        laid.starts,
        laid.bonds,
        1,
        np.ones((1, 1)),
        np.ones(1),
        np.tile(weights, 3),
    )
    posterior = Posterior((4, 4, 4), Gaussian(), 0.0, 1.0, (draws,))
    none = np.empty(0, dtype=np.int64)
    prior = RingPrior((core_prior,) * 3, GammaProcess())
    wide = widen(posterior, prior, (np.arange(3), none, none), 0)
    found = wide.entries(np.array([[4, 0, 0], [5, 1, 1], [6, 2, 3]]))
    assert np.all(np.isfinite(found))
    assert np.all(found != 0)


@ignore_new_labels
@pytest.mark.parametrize("prior", ["hierarchical", "paper"])
def test_online_em_answers_too(table, prior, tmp_path):
    ring = fit(table, prior=prior, inference="online-em", epochs=30)
    cells = ask(place=["X", "Y"])
    found, known = ring.predict_table(cells), ring.predict_table(ask())
    assert found.notna().all(axis=None)
    assert (found["std"] > 2 * known["std"]).all()
    ring.save(tmp_path / "model.ring")
    pd.testing.assert_frame_equal(
        found, load(tmp_path / "model.ring").predict_table(cells), check_exact=True
    )
    more = table.iloc[:8].assign(place="X")
    ring.partial_fit(more)
    assert ring.shape_[0] == 15
    assert (ring.predict_table(cells)["std"][0] < found["std"][0]).all()


@ignore_new_labels
def test_new_labels_may_be_suggested(ring):
    """They are what is known least, each for itself, and nothing was observed of them."""
    candidates = ask(place=["X", "Y"]).merge(ask(), how="outer")
    found = ring.suggest(2, candidates)
    assert sorted(found["place"]) == ["X", "Y"]
    assert found["std"].nunique() == 2
