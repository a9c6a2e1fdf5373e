"""Bugs in posteriors, model files and what they are checked for."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

POSTERIOR_TESTS = "tests/test_posterior.py::"
STORAGE = "tests/test_storage.py::"
HOSTILE = "tests/test_hostile_models.py::"
SUGGEST = "tests/test_interchange.py::"
CONVERGENCE = "tests/test_convergence.py::"
EXPOSURE = "tests/test_exposure.py::"

POSTERIOR = [
    Mutant(
        "predictions ignore their exposure",
        "posterior/posterior.py",
        "self._given(cells[rows], given.at(rows))",
        "self._given(cells[rows])",
        (EXPOSURE + "test_means_are_proportional_to_exposure",),
    ),
    Mutant(
        "exposures are those of other rows",
        "posterior/posterior.py",
        "coords[order], given.at(order), ",
        "coords[order], given, ",
        (EXPOSURE + "test_the_order_of_rows_does_not_change_a_bit",),
    ),
    Mutant(
        "samples ignore their exposure",
        "posterior/posterior.py",
        "self._given(coords[rows], given.at(rows))",
        "self._given(coords[rows])",
        (EXPOSURE + "test_samples_have_the_exposure_of_their_row",),
    ),
    Mutant(
        "exposures are taken by a likelihood that has none",
        "data/inputs.py",
        "    check_carried(given, likelihood)\n    return given\n",
        "    return given\n",
        (EXPOSURE + "test_other_likelihoods_have_no_exposure",),
    ),
    Mutant(
        "probabilities may be off by as much as means",
        "posterior/convergence.py",
        "(OFF_PROBABILITY if binary else OFF)",
        "OFF",
        (CONVERGENCE + "test_an_error_of_probabilities_harms_sooner",),
    ),
    Mutant(
        "sizes that fail are counted though one between them did not",
        "model/growth.py",
        "least=losses, failed=0)",
        "least=losses)",
        ("tests/test_growth.py::test_of_sizes_that_predict_alike_the_smallest_is_taken",),
    ),
    Mutant(
        "the warm-up is diagnosed along with the draws",
        "posterior/convergence.py",
        "numbers[warmup:end] for",
        "numbers[:end] for",
        (CONVERGENCE + "test_scans_of_the_warm_up_are_not_diagnosed",),
    ),
    Mutant(
        "the last cell is left out if pieces come out even",
        "posterior/pieces.py",
        "[*starts[1:].tolist(), n], strict",
        "[*starts[1:].tolist(), n - (n % most == 0)], strict",
        (POSTERIOR_TESTS + "test_pieces_hold_every_cell_once",),
    ),
    Mutant(
        "medians of means have noise",
        "posterior/posterior.py",
        "self.described(coords, (0.5,), noise)[2]",
        "self.described(coords, (0.5,))[2]",
        (POSTERIOR_TESTS + "test_the_summary_may_have_medians",),
    ),
    Mutant(
        "later cells are calibrated by the groups of the first",
        "posterior/posterior.py",
        "nuisance, given.at(columns)",
        "nuisance, given.at(slice(0, samples[:, columns].shape[1]))",
        (
            "tests/test_calibrated_samples.py::"
            "test_many_cells_are_calibrated_by_the_noise_of_their_own_group",
        ),
    ),
    Mutant(
        "a ring is paired with the noise of another draw",
        "posterior/posterior.py",
        "nuisance = self.nuisance[chosen]",
        "nuisance = self.nuisance[np.roll(chosen, 1)]",
        (POSTERIOR_TESTS + "test_samples_pair_every_ring_with_its_own_noise",),
    ),
    Mutant(
        "the noise is left out of the deviation",
        "posterior/posterior.py",
        "variance = variance + within.mean(axis=0)",
        "variance = variance + 0.0 * within.mean(axis=0)",
        (POSTERIOR_TESTS + "test_gaussian_moments",),
    ),
    Mutant(
        "the log score forgets the units",
        "posterior/posterior.py",
        "scores - np.log(self.scale)",
        "scores",
        (POSTERIOR_TESTS + "test_log_score_is_the_log_of_the_mean_density",),
    ),
    Mutant(
        "calibrated tails are lost on saving",
        "posterior/modelfiles.py",
        '"fitted likelihood": storage.to_plain(posterior.likelihood),',
        '"fitted likelihood": ring.description_["likelihood"],',
        (STORAGE + "test_what_held_out_values_taught_is_kept",),
    ),
    Mutant(
        "rings are sorted as text, 10 before 2",
        "posterior/store.py",
        "return [groups[number] for number in range(len(groups))]",
        "return [groups[number] for number in sorted(groups, key=str)]",
        (
            STORAGE + "test_more_than_ten_chains_come_back_in_their_order",
            STORAGE + "test_more_than_ten_rings_of_online_em_come_back_in_their_order",
        ),
    ),
    Mutant(
        "the curvature of a ring is not saved",
        "posterior/store.py",
        '"curvature": estimate.curvature,',
        '"curvature": 0.0 * estimate.curvature,',
        ("tests/online/test_partial_fit.py::test_save_load_pickle_and_copy_go_on_alike",),
    ),
    Mutant(
        "the width of a ring is not saved",
        "posterior/store.py",
        '"width": np.array(estimate.width),',
        '"width": np.array(1.0),',
        (STORAGE + "test_the_width_of_a_ring_is_kept",),
    ),
    Mutant(
        "zones of labels are not saved",
        "posterior/modelfiles.py",
        '"zones": ring.labels_.zones,',
        '"zones": (),',
        ("tests/test_time_zones.py::test_labels_remember_the_zone_and_tables_have_it_again",),
    ),
    Mutant(
        "a file may name classes of anywhere",
        "posterior/store.py",
        "if not isinstance(name, str) or name not in classes:",
        "if not isinstance(name, str):",
        (STORAGE + "test_wrong_descriptions_are_refused",),
    ),
    Mutant(
        "numbers beyond their range pass the check",
        "posterior/modelchecks.py",
        "low >= part.least and high <= part.most",
        "low >= part.least or high <= part.most",
        (HOSTILE + "test_arrays_are_checked",),
    ),
    Mutant(
        "arrays that nobody reads pass the check",
        "posterior/modelchecks.py",
        "for name in arrays.keys() - parts.keys():",
        "for name in ():",
        (HOSTILE + "test_unknown_arrays_are_refused",),
    ),
    Mutant(
        "truth values pass for whole numbers",
        "posterior/modelchecks.py",
        "isinstance(value, int) and not isinstance(value, bool) and least",
        "isinstance(value, int) and least",
        (HOSTILE + "test_descriptions_are_checked",),
    ),
    Mutant(
        "coordinates at the size of a mode pass",
        "posterior/modelchecks.py",
        'arrays["coords"].max(axis=0) >= np.array(shape)',
        'arrays["coords"].max(axis=0) > np.array(shape)',
        (HOSTILE + "test_arrays_are_checked",),
    ),
    Mutant(
        "labels that occur twice pass",
        "posterior/modelchecks.py",
        "or len(np.unique(levels)) < size:",
        "or len(levels) < size:",
        (HOSTILE + "test_arrays_are_checked",),
    ),
    Mutant(
        "any text is a time zone",
        "posterior/modelchecks.py",
        "return name in zoneinfo.available_timezones()",
        "return bool(name)",
        ("tests/test_time_zones.py::test_zones_of_files_are_checked",),
    ),
    Mutant(
        "entries of a file may overflow",
        "posterior/modelchecks.py",
        "if reach > np.log10(LARGEST):",
        "if reach > 2 * np.log10(LARGEST):",
        (HOSTILE + "test_arrays_are_checked",),
    ),
    Mutant(
        "members of an archive may declare more than there is",
        "data/archives.py",
        "    if declared > size:\n",
        "    if False:\n",
        (HOSTILE + "test_members_may_not_overlap_nor_be_there_twice",),
    ),
    Mutant(
        "suggestions are cells that were observed",
        "posterior/suggest.py",
        "coords[~is_observed(coords, observed)]",
        "coords",
        (SUGGEST + "test_suggestions_are_the_unobserved_cells_with_the_largest_error_bars",),
    ),
    Mutant(
        "suggestions are the cells known best",
        "posterior/suggest.py",
        "np.argsort(-deviation,",
        "np.argsort(deviation,",
        (SUGGEST + "test_suggestions_are_the_unobserved_cells_with_the_largest_error_bars",),
    ),
    Mutant(
        "all new labels have the same slice",
        "posterior/unseen.py",
        "Purpose.UNSEEN, mode, self.numbers[mode][label])",
        "Purpose.UNSEEN, mode)",
        ("tests/test_unseen.py::test_new_labels_differ_from_each_other",),
    ),
    Mutant(
        "R-hat without the folded draws",
        "infer/diagnostics.py",
        "np.maximum(_rhat(scores), _rhat(_normal_scores(folded)))",
        "_rhat(scores)",
        ("tests/test_diagnostics.py",),
    ),
    Mutant(
        "an entry is paired with the noise of the next scan",
        "posterior/datatree.py",
        "draws.scans[rows] - 1",
        "np.minimum(draws.scans[rows], draws.scans[-1] - 1)",
        (CONVERGENCE + "test_the_tree_pairs_each_entry_with_the_noise_of_its_draw",),
    ),
    Mutant(
        "slices of new labels ignore the chain",
        "posterior/folding.py",
        "block = block - sides[i] @ sides[i].T",
        "block = block + sides[i] @ sides[i].T",
        ("tests/test_folding.py::test_chains_of_slices_by_dense_algebra",),
    ),
    Mutant(
        "values of new labels are not seen",
        "posterior/folding.py",
        "linear[i] += shift[own] @ features[own]",
        "linear[i] += 0.0 * (shift[own] @ features[own])",
        ("tests/test_folding.py::test_the_next_days_are_learned_from_half_of_their_cells",),
    ),
    Mutant(
        "observations stay behind when labels are put in line",
        "growing.py",
        "in_order(renumbered(everything, lines))",
        "everything",
        ("tests/test_folding.py::test_days_in_between_find_their_place",),
    ),
    Mutant(
        "forecasts begin at the last known label",
        "forecasting.py",
        "coords[:, place] += size",
        "coords[:, place] += size - 1",
        ("tests/test_order.py::test_forecasts_go_on_and_widen",),
    ),
]
