"""Bugs in log likelihoods, in the tree for ArviZ, and in comparisons of models."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMPARING = "tests/test_comparing.py::"
DATATREE = "tests/test_datatree.py::"
LOG_LIKELIHOOD = "tests/test_log_likelihood.py::"
REPLICATES = "tests/test_posterior.py::test_replicates_have_the_errors_and_offsets_of_their_values"

CHOICE = [
    Mutant(
        "choice: log likelihoods stay in standard units",
        "posterior/posterior.py",
        "        found -= units\n",
        "",
        (LOG_LIKELIHOOD + "test_densities_have_the_units_of_the_data",),
    ),
    Mutant(
        "choice: the probability of an interval has units",
        "posterior/posterior.py",
        "units[given.censored] = 0.0",
        "units[given.censored] *= 1.0",
        (LOG_LIKELIHOOD + "test_errors_weights_and_ends_of_the_training_values_count",),
    ),
    Mutant(
        "choice: units do not count as often as their row",
        "posterior/posterior.py",
        "units *= given.weight",
        "units *= 1.0",
        (LOG_LIKELIHOOD + "test_errors_weights_and_ends_of_the_training_values_count",),
    ),
    Mutant(
        "choice: errors of training values stay in the units of the data",
        "posterior/posterior.py",
        "nuisance, known = self.nuisance, given.in_units(self.location, self.scale)",
        "nuisance, known = self.nuisance, given",
        (LOG_LIKELIHOOD + "test_errors_weights_and_ends_of_the_training_values_count",),
    ),
    Mutant(
        "choice: errors of replicates stay in the units of the data",
        "posterior/posterior.py",
        "        known = given.in_units(self.location, self.scale)\n",
        "        known = given\n",
        (REPLICATES,),
    ),
    Mutant(
        "choice: replicates forget the offset",
        "posterior/posterior.py",
        "            fitted = fitted if own.offset is None else fitted + own.offset\n"
        "            samples",
        "            samples",
        (REPLICATES,),
    ),
    Mutant(
        "choice: exposures of the training values are forgotten",
        "scoring.py",
        "coords, values, given = data.coords, data.values, data.given",
        "coords, values, given = data.coords, data.values, NOTHING",
        (LOG_LIKELIHOOD + "test_exposures_of_the_training_values_count",),
    ),
    Mutant(
        "choice: replicates forget the exposure",
        "posterior/datatree.py",
        "posterior.replicate(rng, cells, given)",
        "posterior.replicate(rng, cells)",
        (DATATREE + "test_replicates_have_the_exposure_of_their_observation",),
    ),
    Mutant(
        "choice: chains of different length are cut instead of matched",
        "posterior/datatree.py",
        "chosen = np.stack(rows_of(posterior))",
        "chosen = np.arange(posterior.n_draws).reshape(len(posterior.chains), -1)",
        (DATATREE + "test_chains_of_different_length_are_matched",),
    ),
    Mutant(
        "choice: each model shows other observations",
        "posterior/datatree.py",
        "rows = _some_rows(len(observed.values))",
        "rows = np.sort(np.random.default_rng(seed).permutation(len(observed.values))"
        "[:MOST_OBSERVATIONS])",
        (DATATREE + "test_of_many_observations_all_models_of_the_data_hold_the_same",),
    ),
    Mutant(
        "choice: a cell may be in the tree twice",
        "posterior/datatree.py",
        "cells = cells[np.sort(np.unique(cells, axis=0, return_index=True)[1])]",
        "cells = cells[:]",
        (DATATREE + "test_cells_asked_for_twice_are_there_once",),
    ),
    Mutant(
        "choice: ArviZ 0.x is not told that it can read the tree",
        "posterior/datatree.py",
        "    arviz.InferenceData.register(LegacyTree)\n",
        "",
        (DATATREE + "test_arviz_reads_the_tree_as_it_is",),
    ),
    Mutant(
        "choice: errors of a difference are not paired",
        "comparing.py",
        "errors = gaps.std(axis=1, ddof=1) / sqrt(gaps.shape[1])",
        "errors = np.hypot(self.pointwise[1:].std(axis=1), self.pointwise[0].std())"
        " / sqrt(gaps.shape[1])",
        (COMPARING + "test_the_error_is_that_of_a_bootstrap",),
    ),
    Mutant(
        "choice: the worst model comes first",
        "comparing.py",
        "np.argsort(-pointwise.mean(axis=1)",
        "np.argsort(pointwise.mean(axis=1)",
        (COMPARING + "test_held_out_scores_prefer_the_model_that_is_right",),
    ),
    Mutant(
        "choice: offsets have the wrong sign",
        "comparing.py",
        "scores.append(found + _per_row(",
        "scores.append(found - _per_row(",
        (COMPARING + "test_a_transform_needs_its_derivative",),
    ),
    Mutant(
        "choice: rows without a value are scored",
        "command/judged.py",
        "known = ~np.isnan(values_of(frame, value))",
        "known = np.isfinite(np.nan_to_num(values_of(frame, value)))",
        (COMPARING + "test_the_command_says_what_the_function_says",),
    ),
]
