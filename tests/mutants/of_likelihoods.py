"""Bugs in the kinds of values, in their calibration, and in what may be known besides values."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LAWS = "tests/test_likelihoods.py::"
CHANCES = "tests/test_chances.py::"
HOSTILE = "tests/test_hostile_models.py::"
TEXT = "tests/test_text_labels.py::"
ENDED = (HOSTILE + "test_what_no_fit_of_its_kind_ends_with_is_refused",)
SLOPE = (LAWS + "test_the_surrogate_has_the_slope_of_the_density",)
SUMS = (LAWS + "test_probabilities_have_the_sum_the_moments_and_the_distribution",)
EXPOSURE = (LAWS + "test_exposure_is_a_known_factor_of_the_mean",)
FOLLOWS = (CHANCES + "test_everything_that_is_predicted_follows",)

KINDS = [
    Mutant(
        "counts: the linear term lacks its half",
        "likelihoods/count_valued.py",
        "kappa = 0.5 * (values - nuisance[0])",
        "kappa = values - nuisance[0]",
        SLOPE,
    ),
    Mutant(
        "counts: weights do not count in the linear term",
        "likelihoods/count_valued.py",
        "kappa = kappa if given.weight is None else given.weight * kappa",
        "kappa = kappa",
        SLOPE,
    ),
    Mutant(
        "counts: exposure is a number, not a logarithm",
        "likelihoods/count_valued.py",
        "found = found if given.exposure is None else found + np.log(given.exposure)",
        "found = found if given.exposure is None else found + given.exposure",
        EXPOSURE,
    ),
    Mutant(
        "counts: the variance grows with the mean alone",
        "likelihoods/count_valued.py",
        "return np.asarray(mean + mean**2 / nuisance[..., :1])",
        "return np.asarray(mean + mean / nuisance[..., :1])",
        SUMS,
    ),
    Mutant(
        "counts: the distribution ends one count early",
        "likelihoods/count_valued.py",
        "found = betainc(r, np.maximum(np.floor(values), 0.0) + 1.0, r / (r + mean))\n"
        "        return np.where(np.asarray(values) < 0",
        "found = betainc(r, np.maximum(np.floor(values), 0.0) + 0.5, r / (r + mean))\n"
        "        return np.where(np.asarray(values) < 0",
        SUMS,
    ),
    Mutant(
        "counts: an uncertain mean passes for dispersion",
        "likelihoods/negative_binomial.py",
        "squares = (values - mean) ** 2 - mean - variance",
        "squares = (values - mean) ** 2 - mean",
        (LAWS + "test_the_size_of_held_out_counts_bounds_r",),
    ),
    Mutant(
        "outliers: the shape of u lacks its half degree",
        "likelihoods/student_t.py",
        "weight = tau * (nu + 1) / (nu + tau * (values - fitted) ** 2)",
        "weight = tau * nu / (nu + tau * (values - fitted) ** 2)",
        SLOPE,
    ),
    Mutant(
        "outliers: a robust size that is not",
        "likelihoods/student_t.py",
        "u = (nu + 1) / (nu + squares / (noise + variance))",
        "u = 1.0",
        (LAWS + "test_outliers_do_not_bound_the_noise_of_student_t",),
    ),
    Mutant(
        "ratings: the wrong end of a category",
        "likelihoods/ordinal.py",
        "return np.asarray(ndtr(padded[..., index + 1] - fitted))",
        "return np.asarray(ndtr(padded[..., index] - fitted))",
        SUMS,
    ),
    Mutant(
        "rings of few binary values begin with as few strands as any",
        "settings.py",
        "return StrandGrowth(sparse=likelihood.fewest_strands)",
        "return StrandGrowth()",
        ("tests/online/test_fit.py::test_rings_of_few_binary_values_begin_with_more_strands",),
    ),
    Mutant(
        "rings of many binary values begin with as many strands as of few",
        "model/rank.py",
        "return self._allowed(shape, information) >= AMPLE",
        "return False",
        ("tests/online/test_fit.py::test_rings_of_few_binary_values_begin_with_more_strands",),
    ),
    Mutant(
        "what a search for a size begins with does not depend on the data",
        "preparing.py",
        "    settings = settings.sized(data.shape, data.n)\n",
        "",
        ("tests/online/test_fit.py::test_fits_to_few_binary_values_begin_with_more_strands",),
    ),
    Mutant(
        "the same, of files",
        "preparing.py",
        "    settings = settings.sized(survey.shape, survey.n_observed)\n",
        "",
        ("tests/online/test_fit.py::test_fits_to_few_binary_values_begin_with_more_strands",),
    ),
    Mutant(
        "larger rings of binary values are taken though they predict worse",
        "infer/online.py",
        "-GAIN if likelihood.strands_widen else WORSE",
        "WORSE",
        ("tests/online/test_fit.py::test_a_larger_ring_of_binary_values_must_predict_better",),
    ),
    Mutant(
        "binary: weights do not count in the expectation",
        "likelihoods/bernoulli.py",
        "weight = 1.0 if given.weight is None else given.weight\n",
        "weight = 1.0\n",
        SLOPE,
    ),
    Mutant(
        "binary: calibration is sure of itself with few values",
        "model/chances.py",
        "SURE = 2.0",
        "SURE = -1e9",
        (CHANCES + "test_few_values_change_nothing",),
    ),
    Mutant(
        "binary: draws are pulled towards even odds, not towards their mean",
        "model/chances.py",
        "odds = centre + scatter * (odds - centre)",
        "odds = scatter * odds",
        (CHANCES + "test_the_approximation_is_that_of_the_draws",),
    ),
    Mutant(
        "binary: sharper draws move the mean probability",
        "likelihoods/bernoulli.py",
        "if not curve and scatter != 1.0:",
        "if not curve and scatter == 1.0:",
        (CHANCES + "test_a_factor_does_not_move_the_mean_probability",),
    ),
    Mutant(
        "binary: a few values shift all probabilities",
        "model/chances.py",
        "slope = float((values - now).sum()) - shift / BELIEF**2",
        "slope = float((values - now).sum())",
        (CHANCES + "test_a_shift_needs_values",),
    ),
    Mutant(
        "binary: the curve may fall",
        "model/chances.py",
        "curve = np.maximum.accumulate(KNOTS + shifts)",
        "curve = KNOTS - 3.0 * shifts",
        (CHANCES + "test_a_curve_is_learned_increases_and_reaches_its_aim",),
    ),
    Mutant(
        "binary: weights of held-out values are forgotten",
        "likelihoods/bernoulli.py",
        "rows = np.repeat(rows, np.rint(given.weight).astype(np.int64))",
        "rows = rows.copy()",
        (CHANCES + "test_a_weight_counts_as_so_many_values",),
    ),
    Mutant(
        "binary: predictions are not calibrated",
        "posterior/posterior.py",
        "fitted = self.likelihood.moved(fitted, nuisance, own)\n",
        "fitted = fitted * 1.0\n",
        FOLLOWS,
    ),
    Mutant(
        "binary: scores are those of calibrated draws",
        "posterior/posterior.py",
        "work(rows, self.likelihood.log_prob(fitted, standard[rows], nuisance, own))",
        "fitted = self.likelihood.moved(fitted, nuisance)\n"
        "            work(rows, self.likelihood.log_prob(fitted, standard[rows], nuisance, own))",
        FOLLOWS,
    ),
    Mutant(
        "binary: samples are not calibrated",
        "posterior/posterior.py",
        "samples[:, rows] = self.likelihood.simulate(rng, fitted[chosen], nuisance, own)\n",
        "samples[:, rows] = self.likelihood.simulate(\n"
        "                rng, self.entries(coords[rows])[chosen], nuisance, own\n"
        "            )\n",
        FOLLOWS,
    ),
    Mutant(
        "tails: intervals may shrink as their level grows",
        "likelihoods/real_valued.py",
        "np.all(np.diff(self.tails, prepend=0.0) >= 0)",
        "np.all(np.array(self.tails) >= 0)",
        (HOSTILE + "test_descriptions_are_checked",),
    ),
    Mutant(
        "tails: there is no largest",
        "likelihoods/real_valued.py",
        "LARGEST_TAIL = 1e100",
        "LARGEST_TAIL = 1e304",
        (HOSTILE + "test_descriptions_are_checked",),
    ),
    Mutant(
        "files: the intercept is checked in place of the size",
        "likelihoods/count_valued.py",
        "super().check_nuisance(np.delete(nuisance, 1, axis=-1), where)",
        "super().check_nuisance(nuisance[..., 1:], where)",
        ENDED,
    ),
    Mutant(
        "files: counts cannot be rare",
        "likelihoods/count_valued.py",
        "super().check_nuisance(np.delete(nuisance, 1, axis=-1), where)",
        "super().check_nuisance(nuisance, where)",
        (HOSTILE + "test_counts_may_be_rare",),
    ),
    Mutant(
        "files: cut points may be in any order",
        "likelihoods/ordinal.py",
        "if np.any(gaps < 0):",
        "if np.any(np.isnan(gaps)):",
        ENDED,
    ),
    Mutant(
        "files: the variance of outliers may be infinite",
        "likelihoods/student_t.py",
        "if least < LEAST or nuisance[..., 1].min() <= LEAST:",
        "if least < LEAST:",
        ENDED,
    ),
    Mutant(
        "files: binary values may have units",
        "likelihoods/likelihood.py",
        "if self.discrete and (location, scale) != (0.0, 1.0):",
        "if self.discrete and location != 0.0:",
        (HOSTILE + "test_descriptions_fit_their_kind",),
    ),
    Mutant(
        "outliers: quantiles are asked for where there are none",
        "likelihoods/student_t.py",
        "        ends = ends._replace(tails=np.maximum(ends.tails, RAREST))\n",
        "",
        (HOSTILE + "test_quantiles_far_out_are_numbers",),
    ),
    Mutant(
        "classes: labels are padded to the longest",
        "data/unpadded.py",
        "        return np.array(listed, dtype=object)\n",
        "        return np.array(listed, dtype=str)\n",
        (TEXT + "test_labels_that_differ_in_nul_are_not_two_classes",),
    ),
    Mutant(
        "classes: labels are not checked as keys are",
        "data/unpadded.py",
        "if all(issubclass(kind, str) for kind in kinds):",
        "if False:",
        (TEXT + "test_labels_that_differ_in_nul_are_not_two_classes",),
    ),
    Mutant(
        "classes: every row has the label of the first",
        "classifier.py",
        "(found == classes[1])[places].astype(float)",
        "(found == classes[1])[0 * places].astype(float)",
        (TEXT + "test_classes_are_sorted_and_of_the_kind_of_the_labels",),
    ),
    Mutant(
        "features: labels given beside a matrix are sorted",
        "data/givenfeatures.py",
        "        keys = distinct[places]\n",
        "        keys = distinct\n",
        (TEXT + "test_features_find_the_labels_that_they_are_of",),
    ),
    Mutant(
        "choosing: the estimator takes normal noise whatever the values are",
        "estimator.py",
        'parameters["likelihood"] = chosen_and_told(self.likelihood, data, self.progress)',
        'parameters["likelihood"] = "gaussian"',
        ("tests/test_choosing.py::test_the_estimator_chooses_by_the_values_too",),
    ),
    Mutant(
        "choosing: real values that look heavy-tailed are taken on a hunch",
        "choosing.py",
        "if not gain > max(ERRORS * error, LEAST_GAIN):",
        "if not gain > -1.0:",
        ("tests/test_choosing.py::test_heavy_tails_are_found_and_normal_ones_are_not",),
    ),
    Mutant(
        "kernels: gammas keep what was to be rejected",
        "kernels/scale_mixtures.py",
        "accepted = math.log(level / below) < exponent",
        "accepted = True",
        ("tests/kernels/test_scale_mixtures.py::test_gammas_have_their_law",),
    ),
    Mutant(
        "kernels: the mass of a single observation stands for a shape above one",
        "kernels/scale_mixtures.py",
        "if mass.size == 1 and shape * mass[0] >= 1.0:",
        "if mass.size == 1:",
        ("tests/kernels/test_scale_mixtures.py::test_one_observation_may_weigh_little",),
        hangs=True,  # Marsaglia and Tsang's sampler accepts nothing there
    ),
    Mutant(
        "streams: the key of a stream is forgotten",
        "engine/streams.py",
        "self._words = np.array(key, dtype=np.uint64)",
        "self._words = np.array((1, 2), dtype=np.uint64)",
        ("tests/sampling/test_streams.py::test_a_stream_is_that_of_its_key",),
    ),
]
