"""Bugs in features of labels as they are coded, learned and explained, and in shared labels."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CODED = "tests/data/test_features.py::"
FITTED = "tests/test_features.py::"
MATRIX = (CODED + "test_further_rows_of_a_matrix_are_coded_as_those_of_the_fit",)
CATEGORY = (CODED + "test_a_category_that_the_fit_did_not_know_is_none_of_its_categories",)
ATTACHED = (FITTED + "test_observations_stay_with_their_labels_when_features_add_others",)
EXPLAINED = (FITTED + "test_what_features_explain_is_asked_of_the_cores_of_every_draw",)
SAMPLED = "tests/sampling/test_featured.py::"
MANY = (SAMPLED + "test_many_slopes_leave_only_residuals_to_the_precision",)
ESTIMATED = (SAMPLED + "test_estimates_know_how_uncertain_the_slices_are",)
LENGTHS = (SAMPLED + "test_alternatives_are_weighed_by_the_density_of_their_length_scale",)
SHARING = "tests/test_sharing.py::"
TOLD = "tests/test_explained.py::"
ROUGH = (TOLD + "test_rough_slopes_are_distributed_as_exact_ones",)
TURNED = (TOLD + "test_slices_are_turned_without_changing_entries",)

CODES = [
    Mutant(
        "sparse features of further labels are not scaled",
        "data/features.py",
        "sparse.csr_array(plain) * self.factor[0]",
        "sparse.csr_array(plain)",
        MATRIX,
    ),
    Mutant(
        "labels without a row of the matrix are zero, not its mean",
        "data/features.py",
        "plain[rows < 0] = features.centre",
        "plain[rows < 0] = 0.0",
        MATRIX,
    ),
    Mutant(
        "labels without a matrix are zero, not its mean",
        "data/features.py",
        "np.tile(features.centre, (len(keys), 1))",
        "np.zeros((len(keys), count))",
        MATRIX,
    ),
    Mutant(
        "further rows of a matrix stay in its order",
        "data/features.py",
        "plain = source.matrix[np.maximum(rows, 0)]",
        "plain = source.matrix[np.arange(len(rows)) % source.n]",
        MATRIX,
    ),
    Mutant(
        "a new category is an error",
        "data/features.py",
        "if not absent[i] and each in places:",
        "if not absent[i]:",
        CATEGORY,
    ),
    Mutant(
        "a new category counts as missing",
        "data/features.py",
        "absent[i] |= each is None",
        "absent[i] |= each not in places",
        CATEGORY,
    ),
    Mutant(
        "observations stay behind when features add labels",
        "featuring.py",
        "renumbered(data._replace(shape=shape), lines)",
        "data._replace(shape=shape)",
        ATTACHED,
    ),
    Mutant(
        "labels that go backwards are turned when features add some",
        "featuring.py",
        "return order[::-1]",
        "return order",
        ATTACHED,
    ),
    Mutant(
        "what features explain is asked of the first chain only",
        "posterior/explained.py",
        "cores = posterior.cores(first + row)",
        "cores = posterior.cores(row)",
        EXPLAINED,
    ),
    Mutant(
        "cores are freed of the weights of another bond",
        "posterior/explained.py",
        "weights = draws.bond_weights(row, mode)",
        "weights = draws.bond_weights(row, mode - 1)",
        EXPLAINED,
    ),
    Mutant(
        "many slopes leave whole slices to the precision",
        "priors/many_slopes.py",
        "given_slopes(prior, slices - design @ slopes, slopes",
        "given_slopes(prior, slices, slopes",
        MANY,
    ),
    Mutant(
        "the strength of many slopes is never drawn",
        "priors/many_slopes.py",
        "        if slopes.any():",
        "        if not slopes.any():",
        MANY,
    ),
    Mutant(
        "estimates forget how uncertain slices are",
        "priors/featured.py",
        "scale = scale + spread",
        "scale = scale + 0.0 * spread",
        ESTIMATED,
    ),
    Mutant(
        "uncertain slices count as known when the strength is estimated",
        "priors/featured.py",
        "found.log_mass(own, spread) for",
        "found.log_mass(own) for",
        ESTIMATED,
    ),
    Mutant(
        "length scales are weighed with the mean counted twice",
        "priors/featured.py",
        "squares -= (common",
        "squares += 0.0 * (common",
        LENGTHS,
    ),
    Mutant(
        "the other length scale is the same",
        "priors/featured.py",
        "hyper._replace(step=each.step) for each in found",
        "hyper for each in found",
        LENGTHS,
    ),
    Mutant(
        "a length scale is compared with the first one",
        "priors/featured.py",
        "step, mass = other, new",
        "step = other",
        (SAMPLED + "test_length_scales_stay_where_the_mass_is",),
    ),
    Mutant(
        "cells of the diagonal show on which side a table is",
        "sharing.py",
        "np.sum(first != second) >= FEWEST",
        "len(first) >= FEWEST",
        (SHARING + "test_the_diagonal_is_no_mirror_image",),
    ),
    Mutant(
        "modes with hardly a common label are shared without a word",
        "sharing.py",
        "COMMON = 0.1",
        "COMMON = 0.001",
        (SHARING + "test_hardly_any_common_label_is_told",),
    ),
    Mutant(
        "the larger of two modes has to have common labels",
        "sharing.py",
        "min(len(ours), len(theirs))",
        "max(len(ours), len(theirs))",
        (SHARING + "test_hardly_any_common_label_is_told",),
    ),
    Mutant(
        "the command line forgets which modes are symmetric",
        "command/options.py",
        'tuple(part.strip() for part in text.split("="))',
        'tuple(part.strip() for part in text.split("="))[:2]',
        (SHARING + "test_the_command_line_shares_as_python_does",),
    ),
    Mutant(
        "texts that differ for every label pass if one is missing",
        "data/features.py",
        "if len(levels) == len(texts) > 2:",
        "if len(levels) == len(known) > 2:",
        (CODED + "test_bad_features_are_refused_in_a_sentence",),
    ),
    Mutant(
        "columns explain their squares, not their variance",
        "posterior/explained.py",
        "np.maximum(mean_squares - means**2, 0.0)",
        "mean_squares",
        (TOLD + "test_shares_are_those_of_plain_algebra",),
    ),
    Mutant(
        "columns of one feature are explained each by itself",
        "posterior/explained.py",
        "np.flatnonzero(np.diff(starts) > 1)",
        "np.flatnonzero(np.diff(starts) > 9)",
        (TOLD + "test_shares_are_those_of_plain_algebra",),
    ),
    Mutant(
        "slices are turned by the moments, not by their root",
        "posterior/explained.py",
        "vectors * np.sqrt(np.maximum(values, 0.0))",
        "vectors * np.maximum(values, 0.0)",
        TURNED,
    ),
    Mutant(
        "rough slopes have no noise of their own",
        "priors/quick_slopes.py",
        "+ own / float(np.sqrt(strength))",
        "",
        (TOLD + "test_rough_slopes_have_the_covariance_of_exact_ones",),
    ),
    Mutant(
        "the precision of rough slopes forgets what features explain",
        "priors/quick_slopes.py",
        "np.sqrt(n / (n - 1 + strength * rough.first))",
        "np.sqrt(n / (n - 1))",
        ROUGH,
    ),
    Mutant(
        "the strength of rough slopes takes all variance for noise",
        "priors/quick_slopes.py",
        "(ratio * (n - 1) - rough.first) / rest",
        "(ratio * (n - 1) - rough.first) / rough.second",
        ROUGH,
    ),
    Mutant(
        "intervals of few draws are those of the mean",
        "posterior/explained.py",
        "np.sqrt(1 + 1 / n)",
        "np.sqrt(1 / n)",
        (TOLD + "test_intervals_of_few_draws_cover_what_they_should",),
    ),
]
