"""Bugs in commands and reports."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CLI = "tests/test_cli.py::"
INTERRUPTS = "tests/test_cli_interrupts.py::"
OUTPUTS = "tests/test_cli_outputs.py::"
POINT = "tests/test_point.py::"
NUMBERS = "tests/report/test_numbers.py::"
PAGE = "tests/report/test_page.py::"

COMMAND = [
    Mutant(
        "predictions of a command ignore their level",
        "command/judged.py",
        "ring.predict_table(X, level, ",
        "ring.predict_table(X, ",
        (CLI + "test_a_model_is_that_of_its_seed",),
    ),
    Mutant(
        "predictions of a command are means, whatever their column is called",
        "command/judged.py",
        "shown.summarise(coords, level, point=point)",
        "shown.summarise(coords, level)",
        (POINT + "test_arrays_in_files",),
    ),
    Mutant(
        "a file of medians is taken for somebody else's",
        "data/files.py",
        'POINTS, SPREADS = ("mean", "median")',
        'POINTS, SPREADS = ("mean", "mode")',
        (POINT + "test_the_command_fills_with_medians",),
    ),
    Mutant(
        "an option of a group is given to another",
        "command/groups.py",
        "opt.length_in(self.warmup)",
        "opt.length_in(self.draws)",
        (INTERRUPTS + "test_an_interrupted_command_writes_only_if_asked",),
    ),
    Mutant(
        "a model takes the place of its data",
        "command/workflows.py",
        '    check_apart("the model", model, {"the input": source})\n',
        "",
        (OUTPUTS + "test_a_model_has_a_file_of_its_own",),
    ),
    Mutant(
        "an interrupted fit is written though nobody asked for it",
        "command/workflows.py",
        "if not (self.partial and getattr(",
        "if not (getattr(",
        (INTERRUPTS + "test_an_interrupted_command_writes_only_if_asked",),
    ),
    Mutant(
        "the checkpoint of a command is not used",
        "command/workflows.py",
        "                keep, found = safety.checkpoint, ",
        "                keep, found = NOTHING_KEPT, ",
        (INTERRUPTS + "test_commands_go_on_from_their_checkpoint",),
    ),
    Mutant(
        "the density counts repeated cells twice",
        "command/preview.py",
        "density=distinct / prod(observed.shape)",
        "density=len(observed.values) / prod(observed.shape)",
        ("tests/test_dry_run.py::test_dry_run_without_gaps",),
    ),
    Mutant(
        "interrupts end with the code of an error",
        "command/ending.py",
        "code = INTERRUPTED if stopped else WRONG",
        "code = WRONG",
        (INTERRUPTS + "test_an_interrupted_command_writes_only_if_asked",),
    ),
    Mutant(
        "a seed is not passed on",
        "command/groups.py",
        '"random_state": self.seed',
        '"random_state": 0',
        (CLI + "test_a_model_is_that_of_its_seed",),
    ),
]

REPORT = [
    Mutant(
        "cells of a table are markup",
        "report/markup.py",
        'return f"<td>{escape(cell.text)}</td>"',
        'return f"<td>{cell.text}</td>"',
        (PAGE + "test_every_piece_of_markup_escapes_what_it_is_given",),
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
        (PAGE + "test_names_of_modes_and_values_are_text_and_never_markup",),
    ),
    Mutant(
        "the code to reproduce is markup",
        "report/again.py",
        "{escape(code_again(fitted.description))}",
        "{code_again(fitted.description)}",
        (PAGE + "test_code_is_text_and_never_markup",),
    ),
    Mutant(
        "correlations are not centred at white",
        "report/charts.py",
        "0.5 + 0.5 * found.correlation",
        "found.correlation",
        (PAGE + "test_the_map_of_similarity_is_white_at_zero",),
    ),
    Mutant(
        "long labels are cut for good",
        "report/svg.py",
        "…<title>{escape(text)}</title>",
        "…",
        (PAGE + "test_a_label_that_is_cut_can_be_read_in_full",),
    ),
    Mutant(
        "cells of diagnostics are told by their indices",
        "report/sections.py",
        'fitted.by_labels(str(row.pop("quantity")))',
        'str(row.pop("quantity"))',
        (PAGE + "test_cells_are_told_by_their_labels",),
    ),
    Mutant(
        "the command that made a model is lost on the way to the file",
        "posterior/modelfiles.py",
        "ring.description_[name] = description[name]",
        "pass",
        (PAGE + "test_the_page_tells_command_and_input",),
    ),
    Mutant(
        "the command told has options that do not matter",
        "command/origin.py",
        "if name in NEVER_MATTER or value == parameter.default:",
        "if value == parameter.default:",
        (PAGE + "test_the_page_tells_command_and_input",),
    ),
    Mutant(
        "means of repeated observations are their sums",
        "report/cells.py",
        "means = np.divide(sums, shares,",
        "means = np.divide(sums, np.minimum(shares, 1),",
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
        "held-out values are corrected with themselves",
        "report/summary.py",
        "_reach(errors[~check])",
        "_reach(errors[check])",
        (NUMBERS + "test_no_half_is_corrected_with_itself",),
    ),
    Mutant(
        "held-out values are corrected with all of them",
        "report/summary.py",
        "_reach(errors[~check])",
        "_reach(errors)",
        (NUMBERS + "test_no_half_is_corrected_with_itself",),
    ),
    Mutant(
        "an infinite setting cannot be run again",
        "report/again.py",
        "\"float('inf')\" if value == inf else repr(value)",
        "repr(value)",
        (PAGE + "test_infinite_settings_can_be_run_again",),
    ),
    Mutant(
        "every count is a surprise whose exposure is not one",
        "report/cells.py",
        "posterior.described(coords, (), given=given)",
        "posterior.described(coords, ())",
        ("tests/report/test_page.py::test_counts_are_compared_with_those_of_their_own_exposure",),
    ),
    Mutant(
        "pictures show counts beside rates",
        "report/cells.py",
        "np.bincount(flat, weight * exposure, prod(sizes))",
        "np.bincount(flat, weight, prod(sizes))",
        ("tests/report/test_page.py::test_counts_are_compared_with_those_of_their_own_exposure",),
    ),
]
