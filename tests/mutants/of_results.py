"""Bugs in posteriors, model files, the public classes, commands and reports."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

POSTERIOR_TESTS = "tests/test_posterior.py::"
STORAGE = "tests/test_storage.py::"
HOSTILE = "tests/test_hostile_models.py::"
SUGGEST = "tests/test_interchange.py::"
SKLEARN = "tests/contract/test_sklearn.py::"
FAULTS = "tests/checkpoint/test_faults.py::"
CLI = "tests/test_cli.py::"
NUMBERS = "tests/report/test_numbers.py::"
PAGE = "tests/report/test_page.py::"
CONVERGENCE = "tests/test_convergence.py::"

POSTERIOR = [
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
        "variance = variance + self.likelihood.variance(",
        "variance = variance + 0.0 * self.likelihood.variance(",
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
        (
            "tests/test_time_zones.py::"
            "test_labels_remember_the_zone_and_tables_have_it_again",
        ),
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
        "array.min() >= part.least and array.max() <= part.most",
        "array.min() >= part.least or array.max() <= part.most",
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
        "posterior/archives.py",
        "    if declared > size:\n",
        "    if False:\n",
        (HOSTILE + "test_members_may_not_overlap_nor_be_there_twice",),
    ),
    Mutant(
        "suggestions are cells that were observed",
        "posterior/suggest.py",
        "coords[~is_observed(coords, observed)]",
        "coords",
        (
            SUGGEST
            + "test_suggestions_are_the_unobserved_cells_with_the_largest_error_bars",
        ),
    ),
    Mutant(
        "suggestions are the cells known best",
        "posterior/suggest.py",
        "np.argsort(-deviation,",
        "np.argsort(deviation,",
        (
            SUGGEST
            + "test_suggestions_are_the_unobserved_cells_with_the_largest_error_bars",
        ),
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
        "posterior/diagnostics.py",
        "np.maximum(_rhat(scores), _rhat(_normal_scores(folded)))",
        "_rhat(scores)",
        ("tests/test_diagnostics.py",),
    ),
    Mutant(
        "an entry is paired with the noise of the next scan",
        "posterior/convergence.py",
        "draws.scans[rows] - 1",
        "np.minimum(draws.scans[rows], draws.scans[-1] - 1)",
        (CONVERGENCE + "test_the_tree_pairs_each_entry_with_the_noise_of_its_draw",),
    ),
]

PUBLIC = [
    Mutant(
        "samples ignore their seed",
        "predicting.py",
        "if random_state is None else random_state",
        "if random_state is None else aside(self.seed_, Purpose.SAMPLE)",
        ("tests/test_estimator.py::test_samples_are_those_of_their_seed",),
    ),
    Mutant(
        "candidates that were observed are suggested",
        "predicting.py",
        "np.flatnonzero(~is_observed(coords, self.observed_))",
        "np.arange(len(coords))",
        (SUGGEST + "test_candidates_limit_the_suggestions",),
    ),
    Mutant(
        "tables of predictions have the interval of 90 % at any level",
        "predicting.py",
        "posterior.summarise(coords, check_level(level), noise)",
        "posterior.summarise(coords, 0.9, noise)",
        (SKLEARN + "test_predictions_are_arrays_whatever_was_given",),
    ),
    Mutant(
        "tables of predictions ignore whether noise was asked for",
        "predicting.py",
        "posterior.summarise(coords, check_level(level), noise)",
        "posterior.summarise(coords, check_level(level))",
        ("tests/test_labels.py::test_binary_tables_hold_intervals_of_probabilities",),
    ),
    Mutant(
        "probabilities of the two labels are swapped",
        "classifier.py",
        "np.column_stack([1.0 - one, one])",
        "np.column_stack([one, 1.0 - one])",
        (SKLEARN + "test_scores_of_a_classifier",),
    ),
    Mutant(
        "a label that partial_fit does not know is a zero",
        "classifier.py",
        "    if unknown.any():\n",
        "    if False:\n",
        (SKLEARN + "test_partial_fit_refuses_a_third_label",),
    ),
    Mutant(
        "labels of a classifier are not saved",
        "posterior/modelfiles.py",
        'arrays["classes/labels"] = ring.classes_',
        'arrays["classes/labels"] = np_sorted(ring.classes_)',
        (SKLEARN + "test_a_classifier_from_a_column_saved_and_loaded",),
    ),
    Mutant(
        "an interrupted classifier keeps the labels of before",
        "classifier.py",
        'if getattr(self, "posterior_", None) is not before:',
        "if False:",
        (SKLEARN + "test_scores_of_a_classifier",),
    ),
    Mutant(
        "partial_fit does not count its observations",
        "estimator.py",
        "self.n_observations_ += len(data.values)",
        "self.n_observations_ += 0",
        ("tests/test_hostile_models.py::test_a_ring_of_online_em_learns_on",),
    ),
    Mutant(
        "partial_fit takes its data in other units",
        "estimator.py",
        "data = data._replace(location=posterior.location, scale=posterior.scale)",
        "data = data._replace(location=posterior.location)",
        (
            "tests/online/test_partial_fit.py::"
            "test_old_predictions_rest_when_new_data_agree",
        ),
    ),
    Mutant(
        "partial_fit keeps observations that it did not see as all there are",
        "estimator.py",
        "self.estimates_, self.labels_, self.observed_ = estimates, labels, None",
        "self.estimates_, self.labels_ = estimates, labels",
        ("tests/online/test_partial_fit.py::test_observations_are_not_kept_in_part",),
    ),
    Mutant(
        "a new seed is drawn though the checkpoint has one",
        "estimator.py",
        "            seed = seed_in(keep.folder)\n",
        "            pass\n",
        (
            "tests/checkpoint/test_resume.py::"
            "test_the_seed_of_the_checkpoint_is_taken_if_none_is_given",
        ),
    ),
    Mutant(
        "weights of observations are no part of what a checkpoint belongs to",
        "fitting.py",
        "*(e for e in data.given if e is not None))",
        ")",
        (FAULTS + "test_other_offsets_are_refused",),
    ),
    Mutant(
        "the number of scans in warm-up is left out of the facts",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "n_jobs", "progress", "warmup")',
        (FAULTS + "test_another_fit_is_refused",),
    ),
    Mutant(
        "the size of batches is left out of the facts",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "n_jobs", "progress", "batch_size")',
        (FAULTS + "test_another_fit_is_refused",),
    ),
    Mutant(
        "passes are left out of the facts",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "n_jobs", "progress", "epochs")',
        (FAULTS + "test_another_fit_is_refused",),
    ),
    Mutant(
        "the prior is left out of the facts",
        "settings.py",
        '"likelihood": self.model.likelihood, "prior": self.model.prior}',
        '"likelihood": self.model.likelihood}',
        (FAULTS + "test_another_fit_is_refused",),
    ),
    Mutant(
        "the likelihood is left out of the facts",
        "settings.py",
        '"likelihood": self.model.likelihood, "prior": self.model.prior}',
        '"prior": self.model.prior}',
        (FAULTS + "test_another_fit_is_refused",),
    ),
    Mutant(
        "the number of threads is a fact",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "progress")',
        ("tests/checkpoint/test_resume.py::test_a_finished_fit_is_not_run_again",),
    ),
    Mutant(
        "each chain may take all of the memory",
        "settings.py",
        "Length(self.warmup, self.draws, self.max_memory // chains)",
        "Length(self.warmup, self.draws, self.max_memory)",
        ("tests/test_estimator.py::test_kept_draws_stay_within_the_memory_budget",),
    ),
    Mutant(
        "zeros alone are taken for binary values",
        "completion.py",
        "np.array_equal(np.unique(values), [0.0, 1.0])",
        "np.isin(values, [0.0, 1.0]).all()",
        ("tests/test_completion.py::test_one_value_alone_is_not_taken_as_binary",),
    ),
    Mutant(
        "completions ignore their level",
        "completion.py",
        "ring.posterior_.summarise(missing, level)",
        "ring.posterior_.summarise(missing, 0.9)",
        ("tests/test_completion.py::test_intervals_have_the_level_asked_for",),
    ),
    Mutant(
        "a completion counts all cells as filled",
        "completion.py",
        "n_filled=len(missing)",
        "n_filled=len(container.observations.values)",
        ("tests/test_completion.py",),
    ),
    Mutant(
        "coordinates below zero count from the end",
        "checks.py",
        'if coords.dtype.kind == "i" and coords.min() < 0:',
        "if False:",
        ("tests/test_checks.py::test_data",),
    ),
    Mutant(
        "modes may shrink in partial_fit",
        "checks.py",
        "if any(new < old for new, old in zip(sizes, known, strict=True)):",
        "if False:",
        ("tests/online/test_partial_fit.py::test_errors_in_a_sentence",),
    ),
    Mutant(
        "coverage counts values above the interval",
        "metrics.py",
        "(lower <= truth) & (truth <= upper)",
        "(lower <= truth) | (truth <= upper)",
        ("tests/test_metrics.py::test_accuracy_and_coverage",),
    ),
    Mutant(
        "CRPS without its spread",
        "metrics.py",
        "np.mean(error - spread)",
        "np.mean(error)",
        ("tests/test_metrics.py::test_crps_equals_its_definition",),
    ),
]

COMMAND = [
    Mutant(
        "predictions of a command ignore their level",
        "command/workflows.py",
        "write_table(target, ring.predict_table(X, level))",
        "write_table(target, ring.predict_table(X))",
        (CLI + "test_fit_then_predict",),
    ),
    Mutant(
        "a model takes the place of its data",
        "command/workflows.py",
        '    _check_apart("the model", model, {"the input": source})\n',
        "",
        (CLI + "test_a_model_has_a_file_of_its_own",),
    ),
    Mutant(
        "an interrupted fit is written though nobody asked for it",
        "command/workflows.py",
        "if not (self.partial and getattr(",
        "if not (getattr(",
        (CLI + "test_an_interrupted_command_writes_only_if_asked",),
    ),
    Mutant(
        "the checkpoint of a command is not used",
        "command/workflows.py",
        "ring.fit_observations(observed, container.labels, container.kind, run.checkpoint)",
        "ring.fit_observations(observed, container.labels, container.kind)",
        (CLI + "test_commands_go_on_from_their_checkpoint",),
    ),
    Mutant(
        "the density counts repeated cells twice",
        "command/preview.py",
        "density=distinct / prod(observed.shape)",
        "density=len(observed.values) / prod(observed.shape)",
        (CLI + "test_dry_run_without_gaps",),
    ),
    Mutant(
        "interrupts end with the code of an error",
        "command/cli.py",
        "sys.exit(INTERRUPTED if interrupted else 2)",
        "sys.exit(2)",
        (CLI + "test_interrupts_have_a_code_of_their_own",),
    ),
    Mutant(
        "a seed is not passed on",
        "command/cli.py",
        "        random_state=seed,\n        n_jobs=jobs,\n        progress=not quiet,\n"
        "        run=_run(checkpoint, checkpoint_every, keep_partial),\n    )\n"
        "    _show(summary, as_json, quiet, output)\n    if summary[\"interrupted\"]:\n"
        "        sys.exit(INTERRUPTED)\n\n\n@app.command()\n@_interruptible\ndef predict(",
        "        n_jobs=jobs,\n        progress=not quiet,\n"
        "        run=_run(checkpoint, checkpoint_every, keep_partial),\n    )\n"
        "    _show(summary, as_json, quiet, output)\n    if summary[\"interrupted\"]:\n"
        "        sys.exit(INTERRUPTED)\n\n\n@app.command()\n@_interruptible\ndef predict(",
        (CLI + "test_a_seed_gives_the_same_model",),
    ),
]

REPORT = [
    Mutant(
        "cells of a table are markup",
        "report/markup.py",
        'return f"<td>{escape(cell.text)}</td>"',
        'return f"<td>{cell.text}</td>"',
        (PAGE + "test_labels_are_text_and_never_markup",),
    ),
    Mutant(
        "what names stand for is markup",
        "report/markup.py",
        "<td>{escape(text)}</td></tr>",
        "<td>{text}</td></tr>",
        (PAGE + "test_every_piece_of_markup_escapes_what_it_is_given",),
    ),
    Mutant(
        "sentences of a list are markup",
        "report/markup.py",
        '"".join(f"<li>{escape(item)}</li>"',
        '"".join(f"<li>{item}</li>"',
        (PAGE + "test_every_piece_of_markup_escapes_what_it_is_given",),
    ),
    Mutant(
        "titles of pictures are markup",
        "report/markup.py",
        "<figcaption>{escape(title)}</figcaption>",
        "<figcaption>{title}</figcaption>",
        (PAGE + "test_every_piece_of_markup_escapes_what_it_is_given",),
    ),
    Mutant(
        "names of modes are markup in the choice of axes",
        "report/explorer.py",
        "{escape(name)}</option>",
        "{name}</option>",
        (PAGE + "test_names_of_modes_are_text_and_never_markup",),
    ),
    Mutant(
        "the code to reproduce is markup",
        "report/again.py",
        "{escape(code_again(fitted.description))}",
        "{code_again(fitted.description)}",
        (PAGE + "test_it_is_well_formed_and_has_all_sections",),
    ),
    Mutant(
        "means of repeated observations are their sums",
        "report/cells.py",
        "means = np.divide(sums, counts,",
        "means = np.divide(sums, np.minimum(counts, 1),",
        (NUMBERS + "test_a_part_shows_observed_values_and_means_of_repeated_ones",),
    ),
    Mutant(
        "surprises are only those above",
        "report/cells.py",
        "np.argsort(-np.abs(distance),",
        "np.argsort(-distance,",
        (NUMBERS + "test_surprises_are_the_observations_furthest_off",),
    ),
    Mutant(
        "values are corrected by themselves",
        "report/summary.py",
        "_reach(likelihood, errors[~check])",
        "_reach(likelihood, errors[check])",
        (NUMBERS + "test_correction_learnt_on_one_half_mends_the_other",),
    ),
    Mutant(
        "an infinite setting cannot be run again",
        "report/again.py",
        "\"float('inf')\" if value == inf else repr(value)",
        "repr(value)",
        (PAGE + "test_infinite_settings_can_be_run_again",),
    ),
]
