"""Bugs in the public classes and functions, and in their settings."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SUGGEST = "tests/test_interchange.py::"
SKLEARN = "tests/contract/test_sklearn.py::"
FAULTS = "tests/checkpoint/test_faults.py::"

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
        "shown.summarise(coords, check_level(level), noise, point, given)",
        "shown.summarise(coords, 0.9, noise, point, given)",
        (SKLEARN + "test_predictions_are_arrays_whatever_was_given",),
    ),
    Mutant(
        "tables of predictions ignore whether noise was asked for",
        "predicting.py",
        "shown.summarise(coords, check_level(level), noise, point, given)",
        "shown.summarise(coords, check_level(level), point=point, given=given)",
        (SKLEARN + "test_predictions_are_arrays_whatever_was_given",),
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
        (SKLEARN + "test_partial_fit_of_a_classifier_knows_its_labels",),
    ),
    Mutant(
        "labels of a classifier come back in the other order",
        "posterior/modelfiles.py",
        "ring.classes_ = classes\n",
        "ring.classes_ = classes[::-1]\n",
        (SKLEARN + "test_a_classifier_from_a_column_saved_and_loaded",),
    ),
    Mutant(
        "an interrupted classifier keeps the labels of before",
        "classifier.py",
        'if getattr(self, "posterior_", None) is not before:',
        "if before is None:",
        (SKLEARN + "test_an_interrupted_classifier_has_the_labels_of_its_draws",),
    ),
    Mutant(
        "partial_fit does not count its observations",
        "growing.py",
        "self.n_observations_ += len(data.values)",
        "self.n_observations_ += 0",
        ("tests/test_hostile_models.py::test_a_ring_of_online_em_learns_on",),
    ),
    Mutant(
        "partial_fit takes its data in other units",
        "growing.py",
        "data = data._replace(location=posterior.location, scale=posterior.scale)",
        "data = data._replace(location=posterior.location)",
        ("tests/online/test_partial_fit.py::test_old_predictions_rest_when_new_data_agree",),
    ),
    Mutant(
        "partial_fit keeps observations that it did not see as all there are",
        "growing.py",
        "self.estimates_, self.labels_, self.observed_ = estimates, labels, everything",
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
        "data.values, *known_of.values())",
        "data.values)",
        (FAULTS + "test_other_offsets_are_refused",),
    ),
    Mutant(
        "the number of scans in warm-up is left out of the facts",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "n_jobs", "progress", "warmup")',
        (FAULTS + "test_every_setting_is_a_fact",),
    ),
    Mutant(
        "the size of batches is left out of the facts",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "n_jobs", "progress", "batch_size")',
        (FAULTS + "test_every_setting_is_a_fact",),
    ),
    Mutant(
        "passes are left out of the facts",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "n_jobs", "progress", "epochs")',
        (FAULTS + "test_every_setting_is_a_fact",),
    ),
    Mutant(
        "the prior is left out of the facts",
        "settings.py",
        '"likelihood": self.model.likelihood, "prior": self.model.prior}',
        '"likelihood": self.model.likelihood}',
        (FAULTS + "test_every_setting_is_a_fact",),
    ),
    Mutant(
        "the likelihood is left out of the facts",
        "settings.py",
        '"likelihood": self.model.likelihood, "prior": self.model.prior}',
        '"prior": self.model.prior}',
        (FAULTS + "test_every_setting_is_a_fact",),
    ),
    Mutant(
        "the number of threads is a fact",
        "settings.py",
        'left_out = ("model", "seed", "n_jobs", "progress")',
        'left_out = ("model", "seed", "progress")',
        (FAULTS + "test_every_setting_is_a_fact",),
    ),
    Mutant(
        "each chain may take all of the memory",
        "settings.py",
        "self.draws, self.max_memory // chains, self.max_time)",
        "self.draws, self.max_memory, self.max_time)",
        ("tests/test_estimator.py::test_kept_draws_stay_within_the_memory_budget",),
    ),
    Mutant(
        "zeros alone are taken for binary values",
        "data/kinds.py",
        "if moments.binary and low < high:",
        "if moments.binary:",
        ("tests/test_completion.py::test_one_value_alone_of_many_is_not_taken_as_binary",),
    ),
    Mutant(
        "completions ignore their level",
        "completion.py",
        "shown.summarise(coords, level, point=point, given=given)",
        "shown.summarise(coords, 0.9, point=point, given=given)",
        ("tests/test_completion.py::test_intervals_have_the_level_asked_for",),
    ),
    Mutant(
        "medians are means",
        "completion.py",
        "shown.summarise(coords, level, point=point, given=given)",
        "shown.summarise(coords, level, given=given)",
        ("tests/test_point.py::test_an_array_is_filled_with_medians",),
    ),
    Mutant(
        "a completion counts all cells as filled",
        "completion.py",
        "_completion(asked, filled, len(missing), ",
        "_completion(asked, filled, len(container.observations.values), ",
        ("tests/test_completion.py",),
    ),
    Mutant(
        "a level of one is taken",
        "checks.py",
        "0 < level < 1)",
        "0 < level <= 1)",
        ("tests/test_checks.py::test_levels",),
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

DATASETS = [
    Mutant(
        "a damaged file of a data set is used",
        "datasets/cache.py",
        "if sha256 and hashlib.sha256(found.read_bytes()).hexdigest() != sha256:",
        "if False:",
        ("tests/test_datasets.py::test_absent_damaged_and_truncated_files_are_named",),
    ),
    Mutant(
        "cells to train on are tested on too",
        "datasets/splits.py",
        "np.sort(order[n_train:])",
        "np.sort(order)",
        ("tests/test_datasets.py::test_splits_are_disjoint_complete_and_repeatable",),
    ),
    Mutant(
        "zeros are drawn where ones are",
        "datasets/splits.py",
        "draw_cells(rng, prod(shape), len(cells), np.unique(cells))",
        "draw_cells(rng, prod(shape), len(cells))",
        ("tests/test_datasets.py::test_folds_hold_every_one_once_and_as_many_other_cells",),
    ),
    Mutant(
        "decibels of noise are those of its deviation",
        "datasets/synthetic.py",
        "10 ** (-snr / 20) * rng",
        "10 ** (-snr / 10) * rng",
        ("tests/test_synthetic.py::test_noise_and_missing_cells_are_as_asked",),
    ),
    Mutant(
        "gaps are filled with counts of an exposure of one",
        "completion.py",
        "shown.summarise(coords, level, point=point, given=given)",
        "shown.summarise(coords, level, point=point)",
        ("tests/test_known_cells.py::test_a_gap_is_filled_with_the_count_of_its_own_exposure",),
    ),
]
