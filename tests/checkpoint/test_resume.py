"""A fit that goes on from its checkpoint ends with the bits of one that nobody disturbed."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesring import TensorRing, TensorRingClassifier, complete, load
from bayesring.checkpoint.keeping import Checkpoint
from bayesring.checkpoint.trees import take_apart
from bayesring.data.observations import Observations, in_order
from bayesring.data.splitting import hold_out
from bayesring.engine.streams import Streams
from bayesring.infer import em, folds, gibbs
from bayesring.infer.chain import Chain, explore
from bayesring.infer.length import Length
from bayesring.infer.problem import Problem, make_problem
from bayesring.likelihoods import Gaussian
from bayesring.model.growth import JointGrowth
from bayesring.model.rank import StrandGrowth
from bayesring.priors import NormalGamma, RingPrior
from tests.checkpoint.fits import FITS, SHAPE, data, fingerprint, run, write_parquet
from tests.checkpoint.kills import kill_all_kinds


class PowerCut(BaseException):
    """Ends a fit where it is."""


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of writes after which a fit ends, once; and a count of writes."""
    state = [-1, 0]
    keep = Checkpoint.keep

    def keep_and_end(self: Checkpoint, *arguments: object, **named: object) -> None:
        keep(self, *arguments, **named)  # type: ignore[arg-type]
        state[1] += self.folder is not None  # short fits to choose a likelihood keep nothing
        if self.folder is not None and state[1] == state[0]:
            raise PowerCut

    monkeypatch.setattr(Checkpoint, "keep", keep_and_end)
    return state


QUICK = ("gibbs",)
"""Kinds of fits that `make test` stops and resumes; `make test-ci` does so with all."""


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.ci) for n in FITS]
)
def test_same_bits_wherever_it_ended(name: str, tmp_path: Path, cut: list[int]) -> None:
    source = write_parquet(tmp_path)
    expected = fingerprint(run(name, None, source=source))
    cut[1] = 0
    assert fingerprint(run(name, tmp_path / "whole", source=source)) == expected
    writes = cut[1]
    assert writes > 20
    for number, share in enumerate((0.3, 0.6, 0.97)):
        folder = tmp_path / str(number)
        cut[:] = [max(1, int(share * writes)), 0]
        with pytest.raises(PowerCut):
            run(name, folder, source=source, n_jobs=1 + number % 2)
        cut[:] = [-1, 0]
        resumed = run(name, folder, source=source, n_jobs=2 - number % 2)
        assert fingerprint(resumed) == expected
        assert cut[1] <= writes - int(share * writes) + 8, "what was done is not done again"


@pytest.mark.parametrize("policy", [StrandGrowth(), JointGrowth()], ids=["alone", "together"])
def test_all_of_a_chain_that_changes_is_found_again(tmp_path: Path, policy: StrandGrowth) -> None:
    """Whatever a scan of exploration alters: the next scan may need it."""
    coords, values = data("gibbs")
    whole = in_order(Observations(coords, (values - values.mean()) / values.std(), SHAPE))
    explored, held = hold_out(whole, 3)
    assert held is not None
    likelihood = Gaussian()
    problem = make_problem(explored, likelihood, RingPrior.of(NormalGamma()))

    def new() -> Chain:
        streams = Streams.of_chain(3, 0)
        state = gibbs.init(streams, problem, policy.start(3))
        checkpoint = Checkpoint(tmp_path, 0.0)
        return Chain(0, streams, state, checkpoint=checkpoint, likelihood=likelihood)

    chain, again, untouched = new(), new(), new()
    length = Length(80, 5, 2**30)
    explore(chain, problem, policy, length, held.data, until=33)
    again.resume()
    assert len(chain.looks) == isinstance(policy, JointGrowth)
    changed = 0
    for each in fields(Chain):
        if each.name == "checkpoint":
            continue
        found, expected, before = (
            take_apart(getattr(one, each.name)) if each.name != "report" else (None, [])
            for one in (again, chain, untouched)
        )
        assert found[0] == expected[0], each.name
        for one, two in zip(found[1], expected[1], strict=True):
            np.testing.assert_array_equal(one, two, err_msg=each.name)
        changed += found[0] != before[0]
    assert changed >= 6


def test_a_chain_goes_on_with_the_likelihood_that_it_had(
    tmp_path: Path, cut: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calibrated some scans ago, it bounds the noise until it is calibrated again."""
    used: dict[tuple[object, int], object] = {}
    step, short = gibbs.step, {"chains": 1, "draws": 2}

    def noted(streams: Streams, scan: int, state: object, problem: Problem, *engine: object) -> Any:
        used[streams.key, scan] = problem.likelihood
        return step(streams, scan, state, problem, *engine)  # type: ignore[arg-type]

    monkeypatch.setattr(gibbs, "step", noted)
    monkeypatch.setattr(folds, "MOST", 0)  # not what is tested here
    run("gibbs", None, **short)
    expected = dict(used)
    assert len(set(map(repr, expected.values()))) > 3
    used.clear()
    cut[:] = [33, 0]
    with pytest.raises(PowerCut):
        run("gibbs", tmp_path, **short)
    cut[:] = [-1, 0]
    run("gibbs", tmp_path, **short)
    assert used == expected


def test_a_finished_fit_is_not_run_again(tmp_path: Path, cut: list[int]) -> None:
    first = run("gibbs", tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    cut[1] = 0
    again = run("gibbs", tmp_path, n_jobs=2)
    assert cut[1] == 0
    assert fingerprint(again) == fingerprint(first)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    assert not again.interrupted_


def test_the_seed_of_the_checkpoint_is_taken_if_none_is_given(
    tmp_path: Path, cut: list[int]
) -> None:
    cut[0] = 30
    with pytest.raises(PowerCut):
        run("gibbs", tmp_path, random_state=None)
    first = run("gibbs", tmp_path, random_state=None)
    again = run("gibbs", tmp_path, random_state=None)
    assert again.seed_ == first.seed_
    assert fingerprint(again) == fingerprint(first)
    assert fingerprint(run("gibbs", None, random_state=first.seed_)) == fingerprint(first)


def test_complete_goes_on(tmp_path: Path, cut: list[int]) -> None:
    table = np.full(SHAPE, np.nan)
    coords, values = data("gibbs")
    table[tuple(coords.T)] = values
    settings = {"rank": 2, "warmup": 20, "draws": 20, "chains": 2, "progress": False}
    expected = complete(table, random_state=1, **settings)
    cut[:] = [30, 0]
    with pytest.raises(PowerCut):
        complete(table, random_state=1, checkpoint=tmp_path, checkpoint_every=0, **settings)
    found = complete(table, random_state=1, checkpoint=tmp_path, checkpoint_every=0, **settings)
    for name in ("mean", "std", "lower", "upper"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_classifier_goes_on(tmp_path: Path, cut: list[int]) -> None:
    coords, values = data("gibbs, binary")
    labels = np.where(values > 0, "yes", "no")
    ring = TensorRingClassifier(2, warmup=20, draws=20, chains=2, random_state=1, progress=False)
    expected = ring.fit(coords, labels).predict_proba(coords)
    cut[:] = [30, 0]
    with pytest.raises(PowerCut):
        ring.fit(coords, labels, checkpoint=tmp_path, checkpoint_every=0)
    ring.fit(coords, labels, checkpoint=tmp_path, checkpoint_every=0)
    np.testing.assert_array_equal(ring.predict_proba(coords), expected)
    assert list(ring.classes_) == ["no", "yes"]


def test_a_checkpoint_is_written_as_often_as_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayesring.checkpoint import generations, keeping

    now, written = [0.0], []
    monkeypatch.setattr(keeping.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(generations, "write", lambda *arguments: written.append(now[0]))
    checkpoint = Checkpoint(tmp_path, 10.0)
    for second in range(35):
        now[0] = float(second)
        checkpoint.keep("chain-0", second)
        checkpoint.keep("chain-1", second, always=second == 7)
    assert written == [7.0, 10.0, 17.0, 20.0, 27.0, 30.0]


def test_writing_takes_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayesring.checkpoint import generations, keeping

    now, written = [0.0], []

    def slow(*arguments: object) -> None:
        written.append(now[0])
        now[0] += 5.0

    monkeypatch.setattr(keeping.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(generations, "write", slow)
    checkpoint = Checkpoint(tmp_path, 1.0)
    for _ in range(1000):
        now[0] += 0.5
        checkpoint.keep("chain-0", 1)
    assert len(written) * 5.0 < 0.06 * now[0]


ONLINE: dict[str, Any] = {
    "rank": 2,
    "inference": "online-em",
    "epochs": 8,
    "draws": 40,
    "chains": 1,
    "random_state": 0,
    "n_jobs": 1,
    "progress": False,
}


def test_interrupted_with_draws_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bayesring.infer import chains

    step = chains.Chain.step

    def interrupted(self: chains.Chain, *arguments: object) -> object:
        if self.scan == 60:
            raise KeyboardInterrupt
        return step(self, *arguments)  # type: ignore[arg-type]

    ring = TensorRing(2, warmup=50, draws=40, chains=1, random_state=0, n_jobs=1, progress=False)
    coords, values = data("gibbs")
    whole = ring.fit(coords, values).posterior_.chains[0]
    assert not ring.interrupted_
    monkeypatch.setattr(chains.Chain, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ring.fit(coords, values, checkpoint=tmp_path, checkpoint_every=0)
    assert ring.interrupted_
    kept = ring.posterior_.chains[0]
    np.testing.assert_array_equal(kept.flat, whole.flat[:10])
    assert ring.predict(coords).shape == values.shape
    ring.save(tmp_path / "partial.ring")
    assert load(tmp_path / "partial.ring").interrupted_
    monkeypatch.undo()
    ring.fit(coords, values, checkpoint=tmp_path, checkpoint_every=0)
    np.testing.assert_array_equal(ring.posterior_.chains[0].flat, whole.flat)
    assert not ring.interrupted_


def test_interrupted_online_em_keeps_the_draws_of_its_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: nothing was kept, though every chain around the rings had draws."""
    from bayesring.infer import chains

    step = chains.Chain.step

    def interrupted(self: chains.Chain, *arguments: object) -> object:
        if len(self.log_likelihood) and self.scan == last:
            raise KeyboardInterrupt
        return step(self, *arguments)  # type: ignore[arg-type]

    ring, (coords, values) = TensorRing(**ONLINE), data("online EM")
    whole = ring.fit(coords, values).posterior_.chains[0]
    last = int(whole.scans[-1]) - 3
    monkeypatch.setattr(chains.Chain, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ring.fit(coords, values, checkpoint=tmp_path, checkpoint_every=0)
    assert ring.interrupted_
    kept = ring.posterior_.chains[0]
    assert 0 < len(kept.flat) < len(whole.flat)
    np.testing.assert_array_equal(kept.flat, whole.flat[: len(kept.flat)])
    assert np.isfinite(ring.predict(coords)).all()
    ring.save(tmp_path.parent / f"{tmp_path.name}.ring")
    monkeypatch.undo()
    ring.fit(coords, values, checkpoint=tmp_path, checkpoint_every=0)
    np.testing.assert_array_equal(ring.posterior_.chains[0].flat, whole.flat)
    assert not ring.interrupted_


def test_an_interrupt_in_the_chains_of_partial_fit_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though all of them have draws by then."""
    from bayesring.infer import chains

    coords, values = data("online EM")
    ring = TensorRing(**ONLINE).fit(coords[:500], values[:500])
    last = int(ring.posterior_.chains[0].scans[-1]) - 3
    before, known = ring.posterior_.chains[0].flat.copy(), ring.n_observations_
    step = chains.Chain.step

    def interrupted(self: chains.Chain, *arguments: object) -> object:
        if self.scan == last:
            raise KeyboardInterrupt
        return step(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(chains.Chain, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ring.partial_fit(coords[500:], values[500:])
    np.testing.assert_array_equal(ring.posterior_.chains[0].flat, before)
    assert (ring.n_observations_, ring.interrupted_) == (known, False)


def test_interrupted_without_draws_in_every_chain_sets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bayesring.infer import chains

    step = chains.Chain.step

    def interrupted(self: chains.Chain, *arguments: object) -> object:
        if self.number == 1 and self.scan == 50:
            raise KeyboardInterrupt
        return step(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(chains.Chain, "step", interrupted)
    ring = TensorRing(2, warmup=50, draws=40, chains=2, random_state=0, n_jobs=1, progress=False)
    with pytest.raises(KeyboardInterrupt):
        ring.fit(*data("gibbs"))
    assert not hasattr(ring, "posterior_")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_moments() -> None:
    counts = kill_all_kinds(5, seed=1, names=["gibbs", "online EM"])
    assert sum(killed for killed, _ in counts.values()) >= 5
    assert sum(ended for _, ended in counts.values()) >= 2


def test_chains_of_unequal_length_can_be_judged_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayesring.infer import chains

    step = chains.Chain.step

    def interrupted(self: chains.Chain, *arguments: object) -> object:
        if self.number == 1 and self.scan == 62:
            raise KeyboardInterrupt
        return step(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(chains.Chain, "step", interrupted)
    ring = TensorRing(2, warmup=50, draws=40, chains=2, random_state=0, n_jobs=1, progress=False)
    with pytest.raises(KeyboardInterrupt):
        ring.fit(*data("gibbs"))
    assert [len(each.flat) for each in ring.posterior_.chains] == [40, 12]
    found = ring.diagnostics()
    assert found.error > 0
    assert np.isfinite(found.summary.mean).all()
    tree = ring.to_datatree()
    assert dict(tree["posterior"].sizes)["draw"] == 12
    ring.report(tmp_path / "report.html", progress=False)
    ring.save(tmp_path / "model.ring")


def test_a_model_that_goes_on_keeps_one_call_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call keeps its fit, a later one what it learns; the same call is done at once."""
    X, y = data("")
    quick: dict[str, Any] = {"epochs": 2, "warmup": 5, "draws": 4, "chains": 1, "rank": 1}
    folders = [tmp_path / str(each) for each in range(3)]

    def stream() -> TensorRing:
        ring = TensorRing(inference="online-em", progress=False, **quick)
        ring.partial_fit(X[:300], y[:300], checkpoint=folders[0])
        return ring.partial_fit(X[300:], y[300:], checkpoint=folders[1])

    whole = stream()
    monkeypatch.setattr(em, "add", None)  # nothing is learned again
    monkeypatch.setattr(gibbs, "step", None)
    again = stream()
    assert again.seed_ == whole.seed_
    assert fingerprint(again) == fingerprint(whole)
    with pytest.raises(ValueError, match="belongs to a fit with other data"):
        again.partial_fit(X[300:], y[300:], checkpoint=folders[1])
    with pytest.raises(ValueError, match="checkpoint_every must be a number of seconds"):
        again.partial_fit(X[:9], y[:9], checkpoint=folders[2], checkpoint_every=-1)


def test_a_classifier_that_goes_on_keeps_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data("binary")
    quick: dict[str, Any] = {"epochs": 2, "warmup": 5, "draws": 4, "chains": 1, "rank": 1}

    def stream() -> TensorRing:
        ring = TensorRingClassifier(inference="online-em", progress=False, **quick)
        ring.partial_fit(X[:300], y[:300], classes=[0, 1], checkpoint=tmp_path / "1")
        return ring.partial_fit(X[300:], y[300:], checkpoint=tmp_path / "2")

    whole = stream()
    monkeypatch.setattr(em, "add", None)
    monkeypatch.setattr(gibbs, "step", None)
    assert fingerprint(stream()) == fingerprint(whole)
