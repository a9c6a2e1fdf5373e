"""Bugs in circular modes, in modes on a map, and in patches of slices drawn jointly."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CIRCLE = "tests/sampling/test_circular.py::"
DENSITY = (
    CIRCLE + "test_density_is_that_of_the_dense_covariance",
    CIRCLE + "test_closed_forms_of_the_precision",
)
PRECISION = (CIRCLE + "test_slice_prior_is_the_precision_of_the_circle",)
PROPOSAL = (CIRCLE + "test_the_proposal_is_judged_by_the_marginal_likelihood",)
RATIOS = (CIRCLE + "test_hyperparameters_given_the_slices_by_ratios",)
ARCS = (CIRCLE + "test_every_slice_is_in_one_arc_of_one_pass",)
ACROSS = (CIRCLE + "test_an_arc_across_the_first_slice_by_dense_algebra",)
MAP = "tests/sampling/test_spatial.py::"
PROCESS = (MAP + "test_slice_prior_is_the_precision_of_the_process",)
BITS = "tests/kernels/test_joint_draws.py::test_rows_taken_a_few_at_a_time_have_the_same_bits"
JOINT = ("tests/kernels/test_joint_draws.py::test_a_run",)
PASSES = (MAP + "test_patches_of_a_pass_do_not_depend_on_each_other",)
PLACES = (MAP + "test_new_places_are_drawn_from_the_conditional",)
SITES = "tests/test_sites.py::"
ADDED = "tests/test_new_positions.py::"
NEW = (CIRCLE + "test_new_positions_are_drawn_from_the_conditional",)

ORDER = [
    Mutant(
        "a circle is as uncertain as a line",
        "priors/circular.py",
        " / total * np.tanh(0.5 * whole)",
        " / total",
        DENSITY,
    ),
    Mutant(
        "the first slice pulls the wrong way",
        "priors/circular.py",
        "weights[1:, 0], weights[1:, 1] = w1, w2",
        "weights[1:, 0], weights[1:, 1] = w1, -w2",
        PRECISION,
    ),
    Mutant(
        "the gap of a circle is that of the slice after",
        "priors/circular.py",
        "a, b = deltas[:-1], b[1:]",
        "a, b = deltas[1:], b[1:]",
        PRECISION,
    ),
    Mutant(
        "the circle is open at its end",
        "priors/circular.py",
        "np.diff(np.append(self._x, self.period))",
        "np.diff(np.append(self._x, 1e9 * self.period))",
        PRECISION,
    ),
    Mutant(
        "borders of arcs never move",
        "priors/circular.py",
        "first = n_slices // (2 * count) if scan % 2 else 0",
        "first = 0",
        ARCS,
    ),
    Mutant(
        "an arc that goes on at the first slice is put together the wrong way round",
        "infer/gibbs.py",
        "parts.sort(key=lambda each: (each.first - first) % shape[0])",
        "parts.sort(key=lambda each: each.first)",
        ACROSS,
    ),
    Mutant(
        "slices that are held do not pull each other",
        "infer/gibbs.py",
        "return mass + 0.5 * float(np.sum((prior.graph.pull(held) @ prior.precision) * held))",
        "return mass",
        ("tests/sampling/test_spatial.py::test_the_proposal_is_judged_by_the_marginal_likelihood",),
    ),
    Mutant(
        "slices outside a patch do not pull it",
        "kernels/patches.py",
        "pull[i, k] += graph_weights[at] * other[k]",
        "pull[i, k] += 0.0 * graph_weights[at] * other[k]",
        PROPOSAL,
    ),
    Mutant(
        "rows of eight are solved without those above them",
        "kernels/cholesky.py",
        "            for m in range(k, j):\n                above, weight = matrix[m], row[m]",
        "            for m in range(k + 1, j):\n                above, weight = matrix[m], row[m]",
        JOINT,
    ),
    Mutant(
        "the diagonal blocks of a run are not corrected for the slice before",
        "kernels/cholesky.py",
        "range(0, a + 8 if symmetric else size, 8)",
        "range(0, a if symmetric else size, 8)",
        JOINT,
    ),
    Mutant(
        "factors and what is beside them share their scratch",
        "kernels/cholesky.py",
        "room[n_lower * size : (n_lower + n_other) * size]",
        "room[: n_other * size]",
        JOINT,
    ),
    Mutant(
        "sums of rows that do not fit into registers all start at the first row",
        "kernels/vectors.py",
        "starts = row_starts[first : first + at_once]",
        "starts = row_starts[:at_once]",
        (BITS,),
    ),
    Mutant(
        "factors of a patch have no blocks but those of its precision",
        "kernels/patches.py",
        "filled = filled or (found[k, i] >= 0 and found[k, j] >= 0)",
        "filled = filled or False",
        PROPOSAL,
    ),
    Mutant(
        "the mean of a circle is learned from as many slices as there are",
        "priors/gradual.py",
        "k = prior.k + float(np.sum(chain.a**2))",
        "k = prior.k + float(len(core))",
        RATIOS,
    ),
    Mutant(
        "the marginal of the length scale lacks the precision of the mean",
        "priors/gradual.py",
        "            + size * np.log(k)\n",
        "",
        RATIOS,
    ),
    Mutant(
        "new positions on a circle see the label before only",
        "priors/circular.py",
        "return w1 * self._gaps[at - 1] + w2 * self._gaps[after], float(v)",
        "return w1 * self._gaps[at - 1], float(v)",
        NEW,
    ),
    Mutant(
        "parents are the first places before, not the nearest",
        "priors/spatial.py",
        'first = np.argsort(~before[enough], axis=1, kind="stable")[:, :m]',
        'first = np.argsort(~before[enough], axis=1, kind="stable")[:, m : 2 * m]',
        PROCESS,
    ),
    Mutant(
        "a place is as uncertain as if it had no parents",
        "priors/spatial.py",
        "v = np.maximum(1 - np.sum(weights * to, axis=1), CLOSEST)",
        "v = np.ones(len(to))",
        PROCESS,
    ),
    Mutant(
        "places that share a child do not know of each other",
        "priors/spatial.py",
        "whole = csr_array(own + own.T + own.T @ own)",
        "whole = csr_array(own + own.T)",
        PASSES,
    ),
    Mutant(
        "borders of patches never move",
        "priors/spatial.py",
        "for own in (0, size // 2))",
        "for own in (0, 0))",
        PASSES,
    ),
    Mutant(
        "new places see the mean only",
        "priors/spatial.py",
        "spread[known] = mean + np.sqrt(v)[:, None] * spread[known]",
        "spread[known] = np.sqrt(v)[:, None] * spread[known]",
        PLACES,
    ),
    Mutant(
        "the mean pulls new places as if they had no neighbours",
        "priors/directed.py",
        "pull = sums[new][:, None] * shared.mean + rows[:, known] @ slices",
        "pull = factors[new][:, None] * shared.mean + rows[:, known] @ slices",
        PLACES,
    ),
    Mutant(
        "slices of a fit stay in the order of their places",
        "arranging.py",
        "flat[:, own] = core[:, place].reshape(len(flat), -1)",
        "flat[:, own] = core.reshape(len(flat), -1)",
        (MAP + "test_what_is_arranged_is_put_back",),
    ),
    Mutant(
        "longitudes are as long at all latitudes",
        "data/sites.py",
        "flat = np.cos(latitude)",
        "flat = np.ones(len(latitude))",
        (SITES + "test_distances_on_the_globe",),
    ),
    Mutant(
        "new positions may contradict the known ones",
        "data/positions.py",
        "        if len(differ):\n",
        "        if False:\n",
        (ADDED + "test_wrong_positions",),
    ),
    Mutant(
        "new coordinates may lie between known ones, whose numbers then change",
        "data/positions.py",
        "if places is None or not _in_line(places):",
        "if places is None:",
        (ADDED + "test_wrong_positions",),
    ),
    Mutant(
        "positions of new coordinates are ignored",
        "growing.py",
        "wider = labels if positions is None else placed_more(labels, positions, known, shape)",
        "wider = labels",
        (ADDED + "test_new_coordinates_lie_where_they_are_said_to",),
    ),
    Mutant(
        "two labels may lie at one place",
        "data/sites.py",
        "if not sites._replace(places=places).usable and sites.usable:",
        "if False:",
        (ADDED + "test_places_on_a_map",),
    ),
]
