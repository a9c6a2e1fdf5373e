"""Bugs in what Numba compiles. Each costs a compilation: the tests named need few kernels."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

POLYAGAMMA = "tests/kernels/test_polyagamma.py::"
SLICES = "tests/kernels/test_slices.py::"
FREE_ENERGY = "tests/online/test_free_energy.py::"

KERNELS = [
    Mutant(
        "Polya-Gamma drawn at twice its argument",
        "kernels/polyagamma.py",
        "    z = 0.5 * abs(z)\n",
        "    z = abs(z)\n",
        (POLYAGAMMA + "test_mean_and_variance_are_exact",),
    ),
    Mutant(
        "proposals of Polya-Gamma from the right piece come at the wrong rate",
        "kernels/polyagamma.py",
        "rate = 0.125 * math.pi * math.pi + 0.5 * z * z",
        "rate = 0.125 * math.pi * math.pi + 0.25 * z * z",
        (POLYAGAMMA + "test_laplace_transform_is_exact",),
    ),
    Mutant(
        "sums of Polya-Gamma end after the gammas that are drawn",
        "kernels/polyagamma.py",
        "total = b * shift + _inverse_gaussian(rng, b * (2.0 * mean * tilt), tilt)",
        "total = 0.0",
        (POLYAGAMMA + "test_sums_have_the_exact_moments_and_law",),
    ),
    Mutant(
        "the third cumulant of the gammas that are not drawn lacks its factor of two",
        "kernels/polyagamma.py",
        "mean = 1.5 * two * two / three",
        "mean = 3.0 * two * two / three",
        (POLYAGAMMA + "test_the_series_errs_as_little_as_it_says",),
    ),
    Mutant(
        "inverse Gaussians pass for sums of Polya-Gamma whatever z is",
        "kernels/polyagamma.py",
        "    if level <= total:\n        return True\n    step",
        "    if level <= 1.0:\n        return True\n    step",
        (POLYAGAMMA + "test_proposals_are_accepted_by_the_ratio_of_densities",),
    ),
    Mutant(
        "gammas of Polya-Gamma have scales of twice the z^2",
        "kernels/polyagamma.py",
        "(k - 0.5) + 0.5 * UNIT * z * z)",
        "(k - 0.5) + UNIT * z * z)",
        (POLYAGAMMA + "test_sums_over_the_rest_are_exact",),
    ),
    Mutant(
        "quantiles of mixtures stop far from the solution",
        "kernels/mixtures.py",
        "1e-10 * spread",
        "1e-1 * spread",
        ("tests/kernels/test_mixtures.py",),
    ),
    Mutant(
        "all entries of a draw share one number of noise",
        "kernels/cholesky.py",
        "out[j] += noise[j]",
        "out[j] += noise[0]",
        (SLICES + "test_draws_of_a_gaussian_are_those_of_numpy",),
    ),
    Mutant(
        "a pivot that is infinite is taken for a good one",
        "kernels/cholesky.py",
        "if not (pivot > 0.0 and pivot < np.inf):",
        "if not pivot > 0.0:",
        (SLICES + "test_a_matrix_that_is_not_positive_definite_is_reported",),
    ),
    Mutant(
        "the diagonal counts twice in the statistics of the weights",
        "kernels/slices.py",
        "sums[a] += 0.5 * own * row[a]",
        "sums[a] += own * row[a]",
        (SLICES + "test_weight_statistics_follow_from_slice_statistics",),
    ),
    Mutant(
        "a slice's own factor of the prior precision is ignored",
        "kernels/slices.py",
        "precision if factor == 1.0 else factor * precision,",
        "precision,",
        (SLICES + "test_slices_may_have_a_prior_of_their_own_each",),
    ),
    Mutant(
        "the prior's linear term of the first slice serves all",
        "kernels/slices.py",
        "linear[own_row(linear, j)]",
        "linear[0]",
        (SLICES + "test_slices_may_have_a_prior_of_their_own_each",),
    ),
    Mutant(
        "an entry forgets what it was when it is drawn again",
        "kernels/entrywise.py",
        "scale * products + squares * old",
        "scale * products",
        ("tests/kernels/test_entrywise.py",),
    ),
    Mutant(
        "residuals are not brought up to date between entries",
        "kernels/entrywise.py",
        "residual[t] -= change * weight[t] * feature[t]",
        "residual[t] -= 0.0 * change",
        ("tests/kernels/test_entrywise.py",),
    ),
    Mutant(
        "curvature of earlier passes never fades",
        "kernels/gradient.py",
        "max(0.0, 1.0 - counts[row] / totals[row])",
        "1.0",
        (FREE_ENERGY + "test_curvature_is_that_of_the_last_pass",),
    ),
    Mutant(
        "every batch meets the whole prior of a slice",
        "kernels/gradient.py",
        "share = counts[row] / totals[row]",
        "share = 1.0",
        (FREE_ENERGY + "test_batches_add_up_to_the_whole",),
    ),
    Mutant(
        "slices that shall rest move with the others",
        "kernels/gradient.py",
        "(rate if movable[row] else 0.0)",
        "rate",
        ("tests/online/test_partial_fit.py::test_slices_with_rows_before_wait_for_the_new_ones",),
    ),
    Mutant(
        "keys in a gap of the table pass as known",
        "kernels/pools.py",
        "if place >= size or table[place] < 0:",
        "if place >= size:",
        ("tests/kernels/test_streams.py::test_counts_and_codes",),
    ),
    Mutant(
        "a shuffle in which no row may stay in its place",
        "kernels/pools.py",
        "np.uint64(n - begin + 1)) >>",
        "np.uint64(n - begin)) >>",
        ("tests/kernels/test_streams.py::test_every_order_of_a_bucket_has_its_draws",),
    ),
    Mutant(
        "a text equals every longer one that begins with it",
        "kernels/hashing.py",
        "    if end - begin != other_end - other_begin:\n        return False\n",
        "",
        ("tests/kernels/test_hashing.py::test_texts",),
    ),
    Mutant(
        "values of one cell are left in the order of arrival",
        "kernels/sorting.py",
        "            if n - begin > 1:\n",
        "            if n - begin > 100:\n",
        ("tests/test_blocks.py::test_order_of_arrival_does_not_matter",),
    ),
    Mutant(
        "plain loops add where they should subtract",
        "kernels/loops.py",
        "z[at + j] -= sums[j]",
        "z[at + j] += sums[j]",
        ("tests/kernels/test_dispatch.py::test_every_shape_of_a_table_gives_its_own_product",),
    ),
    Mutant(
        "kernels from vectors and from loops are kept under one name",
        "kernels/chosen.py",
        '("-plain" if PLAIN else "")',
        '""',
        ("tests/kernels/test_fallbacks.py::test_names_of_kernels_tell_the_choice",),
    ),
    Mutant(
        "kernels on disk are used though their sources have changed",
        "kernels/verdict.py",
        'path.name.encode() + b"\\0" + path.read_bytes()',
        "path.name.encode()",
        ("tests/kernels/test_fallbacks.py::test_names_of_kernels_change_with_any_source",),
    ),
]
