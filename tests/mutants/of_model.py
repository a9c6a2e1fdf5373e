"""Bugs in the ring, its priors and its likelihoods."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONDITIONALS = "tests/sampling/test_conditionals.py"

MODEL = [
    Mutant(
        "a strand's loss is compared with that of the first look",
        "model/rank.py",
        "look.losses[look.scan - 1 - self.every]",
        "look.losses[self.every - 1]",
        ("tests/test_rank.py::test_strands_are_judged_by_the_look_before",),
    ),
    Mutant(
        "a larger ring is taken though it predicts alike",
        "model/growth.py",
        "if beats(losses, growth.least, self.gain):",
        "if beats(losses, growth.least, 0.0):",
        ("tests/test_growth.py::test_of_sizes_that_predict_alike_the_smallest_is_taken",),
    ),
    Mutant(
        "a few large losses choose the size",
        "model/growth.py",
        "CUT = 0.99",
        "CUT = 1.0",
        ("tests/test_growth.py::test_a_few_values_that_nothing_predicts_do_not_choose_the_size",),
    ),
    Mutant(
        "a size is judged at its first look",
        "model/growth.py",
        "moves = looks < 2 or",
        "moves = False and",
        ("tests/test_growth.py::test_a_size_is_judged_when_its_loss_stands_still",),
    ),
    Mutant(
        "factors leave the wrong rows of the next core",
        "model/resizing.py",
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
        (CONDITIONALS + "::test_gains",),
    ),
    Mutant(
        "the Wishart has too few degrees of freedom",
        "priors/normal_wishart.py",
        "k_n, prior.nu + n_slices, scale_inverse",
        "k_n, prior.nu + n_slices - 1, scale_inverse",
        (CONDITIONALS + "::test_hyperparameters",),
    ),
    Mutant(
        "scales have a degree of freedom too few",
        "priors/normal_wishart.py",
        "shape = 0.5 * (precisions.size + self.extra_degrees + 1)",
        "shape = 0.5 * (precisions.size + self.extra_degrees)",
        (CONDITIONALS + "::test_scales_given_the_precision",),
    ),
    Mutant(
        "scales are drawn but not used",
        "priors/normal_wishart.py",
        "prior = self._prior(size, scales)\n        average",
        "prior = self._prior(size)\n        average",
        (CONDITIONALS + "::test_hyperparameters",),
    ),
    Mutant(
        "hyperparameters from slices alone start from the mean of the scales",
        "priors/normal_wishart.py",
        "return self.draw_scales(rng, 1.0 / np.maximum(variances, LEAST_VARIANCE))",
        "return np.full(variances.size, self.scale)",
        (CONDITIONALS + "::test_scales_that_start_from_slices_end_where_a_long_chain_does",),
    ),
    Mutant(
        "the length scale is judged by scales that are not those of the slices",
        "priors/gradual.py",
        "prior = self.exchangeable._prior(slices.shape[1], scales)",
        "prior = self.exchangeable._prior(slices.shape[1])",
        ("tests/sampling/test_smooth.py::test_hyperparameters_given_the_slices_by_ratios",),
    ),
    Mutant(
        "chains that disagree are told to run longer",
        "posterior/convergence.py",
        "cause = DISAGREE if stalled else SHORT",
        "cause = SHORT",
        ("tests/test_convergence.py::test_chains_that_disagree_for_good_are_told_to_be_more",),
    ),
    Mutant(
        "the mean of the slices is not shrunk",
        "priors/normal_gamma.py",
        "m=n_slices * average / k_n,",
        "m=average,",
        (CONDITIONALS + "::test_hyperparameters",),
    ),
    Mutant(
        "new slices have no noise of their own",
        "priors/normal_wishart.py",
        "return around_mean(noise, self.update_hyper(rng, core))",
        "return around_mean(0.0 * noise, self.update_hyper(rng, core))",
        ("tests/test_unseen.py::test_new_slices_and_core_are_distributed_as_a_larger_core",),
    ),
    Mutant(
        "a known neighbour pulls a new slice the wrong way",
        "priors/smooth.py",
        "linear[new] += rho / v * (omega @ slices[order[neighbour]])",
        "linear[new] -= rho / v * (omega @ slices[order[neighbour]])",
        ("tests/test_folding.py::test_new_slices_beside_known_ones_by_dense_algebra",),
    ),
    Mutant(
        "the mean pulls new slices as if they had no neighbours",
        "priors/smooth.py",
        "own, total = own + rho**2 / v, total + (rho**2 - rho) / v",
        "own = own + rho**2 / v",
        ("tests/test_folding.py::test_new_slices_beside_known_ones_by_dense_algebra",),
    ),
    Mutant(
        "decreasing positions are taken as increasing",
        "priors/smooth.py",
        "for place, x in enumerate(self._direction * axis.positions[:, 0]):",
        "for place, x in enumerate(axis.positions[:, 0]):",
        ("tests/sampling/test_smooth.py::test_new_positions_along_a_decreasing_axis",),
    ),
    Mutant(
        "integers are ordered however few the values",
        "ordering.py",
        "return axis.places is Places.MEASURED or axis.n * entries <= n",
        "return True",
        ("tests/test_order.py::test_modes_are_ordered_by_their_labels",),
    ),
]

INTERCEPT = "tests/sampling/test_conditionals.py::test_intercept"

GIVEN = "tests/sampling/test_given.py::"

LIKELIHOODS = [
    Mutant(
        "levels above 99 % are stuck at the last tail",
        "model/tails.py",
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
    Mutant(
        "the working response forgets the intercept",
        "likelihoods/bernoulli.py",
        "shift - omega * nuisance[0] if self.intercept else shift",
        "shift",
        (INTERCEPT,),
    ),
    Mutant(
        "the intercept is drawn around its last value",
        "likelihoods/bernoulli.py",
        " + total * nuisance[0]",
        "",
        (INTERCEPT,),
    ),
    Mutant(
        "Polya-Gamma variables without the intercept",
        "likelihoods/bernoulli.py",
        "omega = polyagamma.draw(rng, odds)",
        "omega = polyagamma.draw(rng, fitted)",
        (INTERCEPT,),
    ),
    Mutant(
        "tails in the noise of the values held out",
        "likelihoods/gaussian.py",
        "drawn = float(np.mean(1.0 / nuisance[:, 0]))",
        "drawn = noise",
        ("tests/test_gaussian.py::test_tails_are_counted_in_the_noise_of_the_draws",),
    ),
    Mutant(
        "an error of measurement counts once, not squared",
        "likelihoods/gaussian.py",
        "variance + given.error**2",
        "variance + given.error",
        (GIVEN + "test_density_with_errors_is_that_of_the_sum_of_both",),
    ),
    Mutant(
        "an interval has the density of its stand-in",
        "likelihoods/gaussian.py",
        "np.where(given.censored, latent.log_mass(low, high), each)",
        "np.where(given.censored, each, each)",
        (GIVEN + "test_an_interval_has_its_integrated_density",),
    ),
    Mutant(
        "weights are left out of the sum of squares",
        "likelihoods/gaussian.py",
        "sums = np.array([each.sum(), each @ (residuals**2 + more)])",
        "sums = np.array([each.sum(), residuals @ residuals])",
        (GIVEN + "test_an_observation_of_weight_three_is_three",),
    ),
    Mutant(
        "a group's shape forgets half of its count",
        "model/grouped_noise.py",
        "kappa + 0.5 * counts",
        "kappa + 0.25 * counts",
        (GIVEN + "test_groups_have_the_conditional_of_their_joint",),
    ),
    Mutant(
        "the present point is never among the candidates",
        "model/candidates.py",
        "centre + width * rng.standard_normal((COUNT, now.size))",
        "now + width * rng.standard_normal((COUNT, now.size))",
        (GIVEN + "test_candidates_leave_a_density_as_it_is",),
    ),
    Mutant(
        "slice sampling steps out on one side only",
        "model/grouped_noise.py",
        "level = log_density(x) - float(rng.standard_exponential())",
        "level = log_density(x) - float(rng.random())",
        (GIVEN + "test_slice_sampling_draws_from_its_density",),
    ),
    Mutant(
        "draws between ends come from the wrong side",
        "model/latent.py",
        "drawn = np.clip(ndtri_exp(np.minimum(place, -1e-300)), low, high)",
        "drawn = -np.clip(ndtri_exp(np.minimum(place, -1e-300)), low, high)",
        (GIVEN + "test_draws_between_ends",),
    ),
    Mutant(
        "counts ignore their exposure",
        "likelihoods/count_valued.py",
        "found if given.exposure is None else found + np.log(given.exposure)",
        "found",
        ("tests/test_extras.py::test_exposure_divides_rates",),
    ),
    Mutant(
        "counts are reached one too early",
        "kernels/counts.py",
        "found[i] = high",
        "found[i] = low",
        ("tests/kernels/test_counts.py::test_quantiles_are_the_smallest_that_reach",),
    ),
    Mutant(
        "equal observations are merged, but count once",
        "data/observations.py",
        "total = np.add.reduceat(weight, np.flatnonzero(new))",
        "total = weight[new]",
        ("tests/test_extras.py::test_equal_observations_are_merged_and_joined",),
    ),
    Mutant(
        "a limit from above is taken as one from below",
        "data/extras.py",
        "lower = np.where(np.isnan(lower), -np.inf, lower)",
        "lower = np.where(np.isnan(lower), upper, lower)",
        ("tests/test_extras.py::test_what_stands_between",),
    ),
    Mutant(
        "the variance of ratings forgets the square of their mean",
        "likelihoods/ordinal.py",
        "square - reached.sum(axis=0) ** 2",
        "square - reached.sum(axis=0)",
        ("tests/contract/test_protocols.py::test_likelihoods",),
    ),
    Mutant(
        "heavy tails win the contest whatever the error",
        "choosing.py",
        "max(ERRORS * error, LEAST_GAIN)",
        "-1.0",
        ("tests/test_choosing.py::test_heavy_tails_are_found_and_normal_ones_are_not",),
    ),
    Mutant(
        "a bound that was given is estimated",
        "infer/chain.py",
        "            if calibrates and due:",
        "            if due:",
        ("tests/test_holdout.py::test_a_bound_that_was_given_stays",),
    ),
]

CODED = "tests/data/test_features.py::"
FEATURED = "tests/sampling/test_featured.py::"
SHARED = "tests/sampling/test_shared.py::"

FEATURES = [
    Mutant(
        "features are counted twice for new labels",
        "priors/featured.py",
        "new = np.asarray(new + says.reshape(noise.shape))",
        "new = np.asarray(new + 2 * says.reshape(noise.shape))",
        (FEATURED + "test_new_labels_are_drawn_as_if_they_had_been_there",),
    ),
    Mutant(
        "neighbours of new labels hand on their features",
        "priors/featured.py",
        "new = self.base.new_given(own, residual, noise, axis)",
        "new = self.base.new_given(own, core, noise, axis)",
        (FEATURED + "test_new_labels_are_drawn_as_if_they_had_been_there",),
    ),
    Mutant(
        "the intercept is drawn into the prior of the slopes",
        "priors/featured.py",
        "centring = Centring(ones, prior.k)\n        if step",
        "centring = Centring(ones, 1.0)\n        if step",
        (FEATURED + "test_hyperparameters_given_the_slices_by_ratios",),
    ),
    Mutant(
        "the strength of slopes has the degrees of freedom of one column",
        "priors/many_slopes.py",
        "shape, rate = 0.5 * slopes.size,",
        "shape, rate = 0.5 * len(slopes),",
        (FEATURED + "test_the_strength_of_many_slopes_is_that_of_all_their_entries",),
    ),
    Mutant(
        "slopes add to the scatter but not to its degrees of freedom",
        "priors/many_slopes.py",
        "nu=own.nu + len(slopes), scale_inverse",
        "nu=own.nu, scale_inverse",
        (FEATURED + "test_many_slopes_count_as_slices_in_the_conditional_of_what_is_shared",),
    ),
    Mutant(
        "useless directions of slopes keep the variance of useful ones",
        "priors/regression.py",
        "roots = np.sqrt(self.gains(strength)) - np.sqrt(strength)",
        "roots = np.sqrt(self.gains(strength))",
        (FEATURED + "test_draws_have_the_moments_of_their_conditional",),
    ),
    Mutant(
        "the first of two shared modes does not see the second",
        "priors/ring_prior.py",
        "linear = found.linear + gaps @ pull.T",
        "linear = found.linear",
        (SHARED + "test_the_slice_prior_is_proportional_to_the_joint",),
    ),
    Mutant(
        "a cell and its mirror image are two",
        "sharing.py",
        "stays = (a <= b) == ((a + b) % 2 == 0)",
        "stays = a == a",
        ("tests/test_sharing.py::test_tables_are_symmetric_if_all_mirror_images_agree",),
    ),
    Mutant(
        "rows of features stay in the order of their table",
        "data/givenfeatures.py",
        "rows[places] = np.arange(len(keys))",
        "rows[np.arange(len(keys))] = np.arange(len(keys))",
        ("tests/data/test_features.py::test_matrices_keep_the_sizes_of_their_columns",),
    ),
    Mutant(
        "features that are constant but for rounding are scaled up",
        "data/features.py",
        "ROUNDING = 1e-12",
        "ROUNDING = 0.0",
        (CODED + "test_constants_are_left_out_whatever_their_rounding",),
    ),
    Mutant(
        "zones of the labels of features are not compared",
        "data/givenfeatures.py",
        'both = source.keys.dtype.kind == levels.dtype.kind == "M"',
        "both = False",
        (CODED + "test_zones_of_labels_are_those_of_the_data",),
    ),
    Mutant(
        "numbers pass for the dates of the fit",
        "data/features.py",
        "if kind != expected or",
        "if",
        (CODED + "test_further_labels_hold_what_those_of_the_fit_held",),
    ),
    Mutant(
        "mirror images of another weight count once",
        "sharing.py",
        "carried = [data.values, *(each for each in data.given if each is not None)]",
        "carried = [data.values]",
        ("tests/test_sharing.py::test_repeats_stay_and_only_mirror_images_count_once",),
    ),
    Mutant(
        "how a cell of a new label is turned depends on the other rows",
        "sharing.py",
        "hashed = [size + (number >> 3) for number in numbers_of(both)]",
        "hashed = [size + place for place, _ in enumerate(numbers_of(both))]",
        ("tests/test_sharing.py::test_a_new_label_of_a_symmetric_table_is_one_label",),
    ),
    Mutant(
        "labels of unknown features are folded in as average ones",
        "priors/regression.py",
        "return np.where(unknown[:, None], 0.0, says), unknown",
        "return np.where(unknown[:, None], 0.0, says), unknown & False",
        ("tests/test_features.py::test_labels_of_unknown_features_are_as_uncertain_as_in_predict",),
    ),
]
