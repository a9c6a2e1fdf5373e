"""Growth of all chains together: which size is taken, and when."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from bayesring.likelihoods import Gaussian
from bayesring.model import ring
from bayesring.model.growth import JointGrowth, beats
from tests.models import CORE_PRIORS, draw_model

GAUSSIAN = Gaussian()


def entries_of(state):
    return ring.dense(ring.weighted(state.cores, state.weights))


def search(losses, policy=None, n=400):
    """Strands after each look at which all chains together had these held-out losses."""
    policy = policy or JointGrowth(fewest=1, density=100.0)  # up to 25 strands
    growth, found = policy.begin((6, 7, 5), n), []
    for loss in losses:
        growth = policy.judge(growth, None if loss is None else np.full(50, loss))
        found.append(growth.strands)
    return found, growth.ended


def test_strands_double_while_held_out_predictions_get_better():
    falling = [1.0, 1.0, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.6]
    assert search(falling) == ([2, 4, 4, 8, 8, 16, 16, 25, 25, 25], True)


def test_of_sizes_that_predict_alike_the_smallest_is_taken():
    alike = [1.0] * 2 + [0.8] * 2 + [0.795] * 4 + [0.796] * 4
    assert search(alike) == ([2, 4, 4, 8, 8, 8, 8, 16, 16, 16, 16, 4], True)
    assert search(alike[:-1])[1] is False
    later = [1.0] * 2 + [0.8] * 2 + [0.795] * 4 + [0.7] * 2
    assert search(later) == ([2, 4, 4, 8, 8, 8, 8, 16, 16, 25], False), "one failure is forgiven"
    between = [1.0] * 2 + [0.995] * 4 + [0.8] * 2 + [0.795] * 4
    places = [2, 4, 4, 4, 4, 8, 8, 16, 16, 16, 16, 25]
    assert search(between) == (places, False), "failures not in a row, too"


def test_a_size_is_taken_when_its_loss_stands_still():
    """By the last look, not by the first after it grew, when new strands have learned nothing."""
    learning = [1.0, 0.9, 0.8, 0.79, 1.0, 0.8, 0.7, 0.695]
    assert search(learning)[0] == [2, 2, 2, 4, 4, 4, 4, 8]
    never = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert search(never)[0] == [2, 2, 2, 4, 4, 4], "or after four looks"


def test_a_size_is_given_up_only_after_all_looks():
    """New strands may take some scans to find what they are for."""
    late = [1.0, 1.0, 1.0, 1.0, 0.95, 0.95]
    assert search(late)[0] == [2, 4, 4, 4, 4, 8]
    assert search([1.0] * 10) == ([2, 4, 4, 4, 4, 8, 8, 8, 8, 2], True)


def test_less_than_a_doubling_has_to_gain_less():
    """From 16 strands to the limit, 25: log2(25 / 16) = 0.64 times the gain of a doubling."""
    up_to_16 = [1.0] * 2 + [0.9] * 2 + [0.8] * 2 + [0.7] * 2
    for share, taken in ((0.007, 25), (0.006, 16)):
        found, ended = search([*up_to_16, *[0.7 * (1 - share)] * 4])
        assert (found[-1], ended) == (taken, True)


def test_where_larger_rings_widen_intervals_ample_data_begin_with_one_strand():
    """And a doubling has to gain 2 %; with few data all is as for others."""
    wide, narrow = JointGrowth(widening=True, sparse=4), JointGrowth(sparse=4)
    few, ample = 60 / 3 * 30 - 1, 60 / 3 * 30
    for policy in (wide, narrow):
        sparse = policy.for_data((10, 10, 10), few)
        assert (sparse.initial, sparse.gain) == (4, 0.01)
    assert narrow.for_data((10, 10, 10), ample) == narrow
    found = wide.for_data((10, 10, 10), ample)
    assert (found.initial, found.gain) == (1, 0.02)
    assert found.for_data((10, 10, 10), ample) == found
    assert found.start(3).strands == 1
    for share, best in ((0.021, 2), (0.019, 1)):
        losses = [1.0] * 2 + [1 - share] * 4 + [1.0] * 8
        allowed = replace(found, fewest=1, density=100.0, trims=False)
        assert search(losses, allowed)[0][-1] == best


def trimmed(losses, gain=0.02):
    """Strands after looks that follow a search which found the second size the best."""
    policy = JointGrowth(initial=1, gain=gain, fewest=1, density=100.0, trims=True)
    begun = [1.0] * 2 + [0.9] * 2 + [0.9] * 8  # one strand, two; four and eight gain nothing
    places, ended = search([*begun, *losses], policy)
    assert places[:12] == [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 2]
    return places[12:], ended


def test_one_strand_that_began_at_random_is_tried_again_as_the_first_of_two():
    """It may have been stuck; losses are compared anew, since those of the search still fell."""
    assert trimmed([]) == ([], False)
    assert trimmed([0.88] * 2) == ([2, 1], False), "two strands that stand still, seen anew"
    assert trimmed([0.88] * 4) == ([2, 1, 1, 1], True)
    falling = [0.90, 0.89, 0.88, 0.87]
    assert trimmed([*falling, 0.87]) == ([2, 2, 2, 1, 1], False), "or after four looks"
    assert trimmed([*falling, 0.90, 0.89, 0.88]) == ([2, 2, 2, 1, 1, 1, 1], False)
    assert trimmed([*falling, 0.90, 0.89, 0.88, 0.879]) == ([2, 2, 2, 1, 1, 1, 1, 1], True)
    assert trimmed([*falling, 0.90, 0.898]) == ([2, 2, 2, 1, 1, 2], True), "two are 3 % better"
    assert trimmed([*falling, 0.90, 0.898], gain=0.05)[0][-1] == 1


def test_only_the_first_size_is_tried_again():
    """All larger ones began with the strands of the next smaller one."""
    policy = JointGrowth(initial=1, gain=0.02, fewest=1, density=100.0, trims=True)
    assert search([1.0] * 2 + [0.9] * 2 + [0.8] * 2 + [0.8] * 8, policy)[0][-1] == 4
    assert search([1.0] * 2 + [0.9] * 2 + [0.8] * 2 + [0.8] * 8, policy)[1]
    assert search([1.0] * 2 + [1.0] * 8, policy) == ([1, 2, 2, 2, 2, 4, 4, 4, 4, 1], True)


def test_a_search_that_ends_at_a_given_scan_takes_the_best_size_not_the_one_on_trial():
    growth = JointGrowth(initial=1, fewest=1, density=100.0, trims=True).begin((6, 7, 5), 400)
    trial = growth._replace(place=0, best=1, trimming=True)
    assert (trial.strands, trial.taken) == (1, 2)
    larger = growth._replace(place=2, best=1, failed=1)
    assert (larger.strands, larger.taken) == (4, 2)
    assert growth._replace(place=2, best=1).taken == 4, "which was not given up"


def test_a_few_values_that_nothing_predicts_do_not_choose_the_size():
    """Three of 400 losses are large, and larger in the ring that predicts all others better."""
    policy = JointGrowth(fewest=1, density=100.0)
    growth = policy.begin((6, 7, 5), 400)
    for size, (usual, worst) in enumerate([(1.0, 50.0), (0.9, 90.0), (0.8, 200.0)]):
        losses = np.append(np.full(397, usual), np.full(3, worst))
        for _ in "ab":
            growth = policy.judge(growth, losses)
        assert growth.best == size
    assert not beats(np.full(400, 0.795), np.full(400, 0.8), 0.01)
    assert beats(np.full(400, 0.79), np.full(400, 0.8), 0.01)


def test_a_million_labels_may_not_have_many_entries_each():
    """Few observations allow 20 entries per slice, but not 5 million in all; many allow more."""
    policy = JointGrowth()
    assert policy.limit((1_000, 30, 20), 1_000) == 5
    assert policy.limit((249_950, 30, 20), 1_000) == 5
    assert policy.limit((400_000, 30, 20), 400_000) == 3
    assert policy.limit((10**6, 30, 20), 10**6) == 1
    assert policy.limit((10**6, 30, 20), 10**7) == 7
    assert [each.strands for each in policy.sizes((10**6, 30, 20), 10**6)] == [2], "the smallest"
    assert [each.strands for each in policy.sizes((400_000, 30, 20), 400_000)] == [2, 3]


def test_few_data_take_no_strands_from_a_ring_that_begins_with_more():
    assert JointGrowth(initial=8).for_data((9, 9, 9), 5).initial == 8
    assert JointGrowth(initial=2, sparse=4).for_data((9, 9, 9), 5).initial == 4


def test_small_tensors_have_small_rings():
    """With few observations, half as many entries as there are cells, and no more."""
    policy = JointGrowth()
    assert policy.limit((8, 7, 6), 50) == 2, "168 entries in 21 slices"
    assert policy.limit((10, 9, 8), 100) == 3
    assert policy.limit((15, 12, 10), 50) == 5
    assert policy.limit((8, 7, 6), 336) == 12, "many observations allow more"


def test_without_held_out_values_strands_grow_to_the_limit():
    """At most 3 x 400 / 18 = 66 entries per slice, or a quarter of it for binary values."""
    assert search([None] * 5, JointGrowth()) == ([4, 8, 16, 16, 16], True)
    assert search([None] * 5, JointGrowth(density=4.0)) == ([4, 8, 16, 22, 22], True)
    assert search([None] * 3, JointGrowth(), n=100) == ([4, 4, 4], True)


def test_resized_rings_keep_their_first_strands(rng):
    state, _, prior = draw_model(rng, GAUSSIAN, CORE_PRIORS[0], (6, 7, 5), (2, 2, 2), strands=2)
    policy, source = JointGrowth(), partial(np.random.default_rng, 3)
    larger = policy.resized(source, state, 5, prior)
    assert larger.size.strands == 5
    for strands in (5, 2):
        back = policy.resized(source, larger, strands, prior)
        expected = entries_of(larger if strands == 5 else state)
        np.testing.assert_array_equal(entries_of(back), expected)
