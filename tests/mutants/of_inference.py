"""Bugs in the engine, in chains, in rings of online EM, and in the model that they are about."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STREAMS = "tests/sampling/test_streams.py::"
HOLDOUT = "tests/test_holdout.py::"
SCHEDULE = "tests/online/test_schedule.py::"
FIT = "tests/online/test_fit.py::"
PARTIAL = "tests/online/test_partial_fit.py::"
CONDITIONALS = "tests/sampling/test_conditionals.py"

ENGINE = [
    Mutant(
        "seed s with chain 1 is seed s + 1 with chain 0",
        "engine/streams.py",
        "SeedSequence([seed, chain])",
        "SeedSequence([seed + chain])",
        (STREAMS + "test_all_that_names_a_stream_tells_it_apart",),
    ),
    Mutant(
        "chains of one seed share their streams",
        "engine/streams.py",
        "SeedSequence([seed, chain])",
        "SeedSequence([seed])",
        (STREAMS + "test_all_that_names_a_stream_tells_it_apart",),
    ),
    Mutant(
        "streams ignore the mode",
        "engine/streams.py",
        "[0, block, mode * PURPOSES + purpose, scan]",
        "[0, block, purpose, scan]",
        (STREAMS + "test_all_that_names_a_stream_tells_it_apart",),
    ),
    Mutant(
        "streams ignore the scan",
        "engine/streams.py",
        "[0, block, mode * PURPOSES + purpose, scan]",
        "[0, block, mode * PURPOSES + purpose, 0]",
        (STREAMS + "test_all_that_names_a_stream_tells_it_apart",),
    ),
    Mutant(
        "modes and purposes overlap in the number of a stream",
        "engine/streams.py",
        "PURPOSES = 16",
        "PURPOSES = 8",
        (STREAMS + "test_all_that_names_a_stream_tells_it_apart",),
    ),
    Mutant(
        "all blocks of a mode share the noise of their slices",
        "engine/operations.py",
        "task.streams.rng(task.scan, Purpose.SLICES, block.mode, block.number)",
        "task.streams.rng(task.scan, Purpose.SLICES, block.mode)",
        (STREAMS + "test_chains_use_every_stream_once",),
    ),
    Mutant(
        "Polya-Gamma variables share the stream of the slices",
        "engine/operations.py",
        "Purpose.AUGMENT",
        "Purpose.SLICES",
        (STREAMS + "test_chains_use_every_stream_once",),
    ),
    Mutant(
        "offsets are left out of the working response",
        "engine/operations.py",
        "shift if offset is None else shift - weight * offset",
        "shift",
        ("tests/sampling/test_offsets.py",),
    ),
    Mutant(
        "BLAS stays at one thread after a fit",
        "engine/threads.py",
        "                self._limit.restore_original_limits()\n",
        "",
        ("tests/test_blas_threads.py::test_predictions_put_blas_back_too",),
    ),
    Mutant(
        "BLAS is let go while another fit needs it",
        "engine/threads.py",
        "            self._users -= 1\n            if self._users == 0:",
        "            self._users -= 1\n            if True:",
        ("tests/test_blas_threads.py::test_users_that_overlap_share_the_limit",),
    ),
    Mutant(
        "results come in the order in which threads finish",
        "engine/threads.py",
        "yield finished.pop(number)",
        "yield finished.pop(next(iter(finished)))",
        ("tests/sampling/test_threads.py::test_a_block_that_fails_ends_the_map_and_leaves_the_threads_usable",),
    ),
    Mutant(
        "the error of a chain that was stopped hides the one that failed",
        "engine/threads.py",
        "if error and not isinstance(error, Stopped))",
        "if error)",
        ("tests/sampling/test_threads.py::test_the_first_failure_stops_all_chains",),
    ),
]

INFER = [
    Mutant(
        "held-out rows never rejoin the training data",
        "infer/chains.py",
        "handed = [rejoin(explored, held)]",
        "handed = [explored]",
        (HOLDOUT + "test_held_out_values_are_left_out_of_exploration_and_rejoin_for_the_rest",),
    ),
    Mutant(
        "held-out rows are explored with",
        "infer/chains.py",
        "explored, held = hold_out(data, seed)",
        "explored, held = data, hold_out(data, seed)[1]",
        (HOLDOUT + "test_held_out_values_are_left_out_of_exploration_and_rejoin_for_the_rest",),
    ),
    Mutant(
        "the noise is bounded by one chain instead of all",
        "infer/chains.py",
        "[chain.moments[-1] for chain in chains]",
        "[chain.moments[-1] for chain in chains[:1]]",
        (HOLDOUT + "test_the_noise_is_bounded_by_all_chains_since_the_rank_rests",),
    ),
    Mutant(
        "moments of earlier ranks are kept",
        "infer/chains.py",
        "                watch.settle()\n",
        "                pass\n",
        (HOLDOUT + "test_the_noise_is_bounded_by_all_chains_since_the_rank_rests",),
    ),
    Mutant(
        "the variance between chains is left out",
        "infer/holdout.py",
        "within + means.var(axis=0)",
        "within",
        (HOLDOUT + "test_chains_are_pooled_with_the_variance_between_them",),
    ),
    Mutant(
        "thinning keeps the first draws instead of every k-th",
        "infer/chains.py",
        "if place % thinning == 0 or",
        "if len(chain.kept) < length.draws // thinning or",
        ("tests/test_estimator.py::test_kept_draws_are_spread_over_all_scans",),
    ),
    Mutant(
        "the rank may change to the end of the warm-up",
        "infer/chains.py",
        "return int(ADAPT * self.warmup)",
        "return int(EXPLORE * self.warmup)",
        ("tests/test_rank.py::test_the_rank_rests_before_the_first_kept_draw",),
    ),
    Mutant(
        "a chain that goes on has forgotten its calibrated likelihood",
        "infer/chains.py",
        "    if chain.likelihood is not None:\n        problem = problem._replace(",
        "    if False:\n        problem = problem._replace(",
        ("tests/checkpoint/test_resume.py::test_same_bits_wherever_it_ended[gibbs]",),
    ),
    Mutant(
        "losses are left out of what a checkpoint holds of a chain",
        "infer/chains.py",
        '    "losses",\n',
        "",
        ("tests/checkpoint/test_resume.py::test_same_bits_wherever_it_ended[gibbs]",),
    ),
    Mutant(
        "weights share the stream of the slices",
        "infer/gibbs.py",
        "Purpose.WEIGHTS",
        "Purpose.SLICES",
        (STREAMS + "test_chains_use_every_stream_once",),
    ),
    Mutant(
        "the last part of a slice that was cut is lost",
        "infer/gibbs.py",
        "sum(parts[1:], parts[0])",
        "sum(parts[1:-1], parts[0])",
        ("tests/sampling/test_threads.py::test_same_bits_on_one_and_two_threads",),
    ),
    Mutant(
        "runs of a chain of slices all end at the same places in every scan",
        "infer/gibbs.py",
        "RUN // 2 if scan % 2 else 0",
        "0",
        ("tests/sampling/test_extensions.py::test_every_slice_is_in_one_run_of_one_pass",),
    ),
    Mutant(
        "the best loss is that of the first look",
        "infer/schedule.py",
        "best=loss if keep else self.best,",
        "best=min(self.best, loss) if self.best == inf else self.best,",
        (SCHEDULE + "test_any_losses",),
    ),
    Mutant(
        "the prior comes in without beginning the best anew",
        "infer/schedule.py",
        "phase=Phase.LEARN, best=inf, waited=0",
        "phase=Phase.LEARN, waited=0",
        (SCHEDULE + "test_the_prior_comes_in_at_the_first_standstill",),
    ),
    Mutant(
        "fading never ends at the least rate",
        "infer/schedule.py",
        "** (1 / self._fading)",
        "** (1 / (1 + self._fading))",
        (SCHEDULE + "test_with_hardly_a_look_it_fades_at_once",),
    ),
    Mutant(
        "a schedule that settles has one look too few",
        "infer/schedule.py",
        "Phase.SETTLE, SETTLING, left=cls(most)._late)",
        "Phase.SETTLE, SETTLING, left=max(1, cls(most)._late - 1))",
        (SCHEDULE + "test_settling",),
    ),
    Mutant(
        "a larger ring is compared with the first instead of the best",
        "infer/online.py",
        "min(each.loss, least), 0",
        "min(least, each.loss if best is None else least), 0",
        (FIT + "test_the_size_that_predicts_best_is_chosen",),
    ),
    Mutant(
        "the chosen width is not applied to kept draws",
        "infer/online.py",
        "    flat *= estimate.width\n",
        "",
        (FIT + "test_the_width_that_was_chosen_is_that_of_the_draws",),
    ),
    Mutant(
        "rings of online EM never learn from held-out rows",
        "infer/online.py",
        "if sources.whole is not sources.part:",
        "if False:",
        (FIT + "test_held_out_rows_are_learned_from_in_the_end",),
    ),
    Mutant(
        "going back keeps Adam's memory of the ring that was left",
        "infer/estimate.py",
        "weights=kept.weights, adam=kept.adam)",
        "weights=kept.weights)",
        (FIT + "test_adam_goes_back_with_the_ring",),
    ),
    Mutant(
        "draws of a pair stand on one side of the estimate",
        "infer/estimate.py",
        "own[1::2] = -own[::2]",
        "own[1::2] = own[::2]",
        (FIT + "test_draws_stand_in_pairs_around_the_estimate",),
    ),
    Mutant(
        "grown slices begin at zero instead of the prior mean",
        "infer/estimate.py",
        "np.concatenate([core, prior_means(estimate, mode, new)])",
        "np.concatenate([core, 0.0 * prior_means(estimate, mode, new)])",
        (PARTIAL + "test_a_grown_slice_is_the_mean_slice_before_any_data",),
    ),
    Mutant(
        "partial_fit forgets the curvature of what was learned before",
        "infer/estimate.py",
        "restarted(wider, cores)._replace(curvature=np.concatenate(curvature))",
        "restarted(wider, cores)",
        (PARTIAL + "test_old_predictions_rest_when_new_data_agree",),
    ),
    Mutant(
        "statistics of a batch are not brought to the size of the data",
        "infer/em.py",
        "whole = statistics * (self._n / n)",
        "whole = statistics",
        (FIT + "test_real_values_are_found",),
    ),
    Mutant(
        "slices without observations stay where they were",
        "infer/em.py",
        "np.flatnonzero(counts == 0)",
        "np.flatnonzero(counts < 0)",
        ("tests/online/test_free_energy.py::test_slices_without_data_go_to_the_prior_mean",),
    ),
    Mutant(
        "the settings of a member that settles judge its noise again",
        "infer/members.py",
        "_follow(way, rows, course, judges=False, piece=",
        "_follow(way, rows, course, judges=True, piece=",
        (FIT + "test_intervals_cover",),
    ),
    Mutant(
        "a ring that goes on begins anew instead of at its checkpoint",
        "infer/members.py",
        "course.checkpoint.find(piece, way) or way",
        "way",
        ("tests/checkpoint/test_resume.py::test_same_bits_wherever_it_ended[online EM]",),
    ),
    Mutant(
        "observations are counted in one mode only",
        "infer/problem.py",
        "of_mode[block.slices] += np.diff(block.bounds)",
        "of_mode[block.slices] = np.diff(block.bounds)",
        ("tests/test_rank.py::test_counts_add_up_over_blocks",),
    ),
]

MODEL = [
    Mutant(
        "a strand's loss is compared with that of the first look",
        "model/rank.py",
        "look.losses[look.scan - 1 - self.every]",
        "look.losses[self.every - 1]",
        ("tests/test_rank.py::test_strands_double_until_the_held_out_loss_rises",),
    ),
    Mutant(
        "factors leave the wrong rows of the next core",
        "model/rank.py",
        "cores[after] = cores[after][:, :, keep]",
        "cores[after] = cores[after][:, :, keep[::-1]]",
        ("tests/test_rank.py::test_dropping_a_silent_factor_changes_no_entry",),
    ),
    Mutant(
        "growth goes on when no look is left to judge it",
        "model/rank.py",
        "(growth if look.left >= self.every else 0.0)",
        "growth",
        ("tests/test_rank.py::test_nothing_is_added_that_no_later_look_could_judge",),
    ),
    Mutant(
        "turning a bond moves entries",
        "model/bonds.py",
        "(basis.weights * column_scale * row_scale)[None]",
        "(basis.weights * column_scale)[None]",
        (
            "tests/test_rank.py::"
            "test_turning_a_bond_changes_no_entry_but_shows_what_each_direction_adds",
        ),
    ),
    Mutant(
        "the right half of a dense tensor is not turned",
        "model/ring.py",
        "np.swapaxes(right, 2, 3).reshape(-1, inner).T",
        "right.reshape(-1, inner).T",
        ("tests/test_ring.py::test_entries_and_dense_equal_einsum",),
    ),
    Mutant(
        "weights that are zero are divided by",
        "model/ring.py",
        "where=own != 0",
        "where=own == own",
        ("tests/test_unseen.py::test_factors_that_weigh_nothing_do_no_harm",),
    ),
]

PRIORS = [
    Mutant(
        "the gain's product ends one factor early",
        "priors/gamma_process.py",
        "shape = self.a0 + 0.5 * (gains.size - index)",
        "shape = self.a0 + 0.5 * (gains.size - index - 1)",
        (CONDITIONALS,),
    ),
    Mutant(
        "the Wishart has too few degrees of freedom",
        "priors/normal_wishart.py",
        "k_n, prior.nu + n_slices, scale_inverse",
        "k_n, prior.nu + n_slices - 1, scale_inverse",
        (CONDITIONALS,),
    ),
    Mutant(
        "the mean of the slices is not shrunk",
        "priors/normal_gamma.py",
        "m=n_slices * average / k_n,",
        "m=average,",
        (CONDITIONALS,),
    ),
    Mutant(
        "new slices have no noise of their own",
        "priors/normal_wishart.py",
        "return around_mean(noise, self.update_hyper(rng, core))",
        "return around_mean(0.0 * noise, self.update_hyper(rng, core))",
        (
            "tests/test_unseen.py::"
            "test_new_slices_and_core_are_distributed_as_a_larger_core",
        ),
    ),
]

LIKELIHOODS = [
    Mutant(
        "levels above 99 % are stuck at the last tail",
        "likelihoods/gaussian.py",
        "normal * tails[-1] /",
        "np.copysign(NORMAL_TAILS[-1], normal) * tails[-1] /",
        ("tests/test_gaussian.py::test_levels_beyond_the_last_tail_go_on_growing",),
    ),
    Mutant(
        "the rate of the noise's precision forgets its prior",
        "likelihoods/gaussian.py",
        "self.beta0 + 0.5 * statistics[1]",
        "0.5 * statistics[1]",
        (CONDITIONALS,),
    ),
    Mutant(
        "probabilities of ones and zeros are swapped in the loss",
        "likelihoods/bernoulli.py",
        "np.where(values > 0.5, expected, 1.0 - expected)",
        "np.where(values < 0.5, expected, 1.0 - expected)",
        ("tests/contract/test_protocols.py::test_likelihoods",),
    ),
    Mutant(
        "a quantile of coin tosses on the wrong side",
        "likelihoods/bernoulli.py",
        "mean(axis=0) > 1.0 - level",
        "mean(axis=0) > level",
        ("tests/test_posterior.py::test_bernoulli_predictions",),
    ),
]
