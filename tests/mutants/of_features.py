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
]
