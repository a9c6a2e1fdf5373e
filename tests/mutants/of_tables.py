"""Bugs in dialects, masks, traps, labelled arrays and commands."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DIALECTS = "tests/test_dialects.py::"
LABELLED = "tests/test_labelled.py::"
TRAPS = "tests/test_traps.py::"
COMMANDS = "tests/test_commands.py::"
PROGRESS = "tests/test_progress.py::"

TABLES = [
    Mutant(
        "codes for missing values count as text only",
        "data/csvfiles.py",
        "    found[np.isin(found, dialect.codes())] = np.nan\n    return np.asarray(found)",
        "    return np.asarray(found)",
        (DIALECTS + "test_the_same_table_in_any_dialect",),
    ),
    Mutant(
        "a decimal comma is a comma between thousands",
        "data/dialects.py",
        'return text.replace(",", ".")',
        'return text.replace(",", "")',
        (DIALECTS + "test_the_same_table_in_any_dialect",),
    ),
    Mutant(
        "the line of a wrong byte is counted from its piece",
        "data/dialects.py",
        'line = lines + piece.count(b"\\n", 0, error.start)',
        "line = lines",
        (DIALECTS + "test_what_is_wrong_with_a_dialect",),
    ),
    Mutant(
        "hidden files of a folder are read",
        "data/folders.py",
        'and not any(part[0] in "._" for part in each.relative_to(base).parts if part != "..")',
        "and True",
        (DIALECTS + "test_many_files_are_one_table",),
    ),
    Mutant(
        "a number that is two labels is the first of them",
        "data/matching.py",
        "if len(texts) > 1:",
        "if False:",
        (DIALECTS + "test_keys_that_cannot",),
    ),
    Mutant(
        "integers beyond 64 bits wrap around",
        "data/labels.py",
        "fit = all(-(2**63) <= each < 2**63 for each in numbers)",
        "fit, numbers = True, np.array([each % 2**63 for each in numbers], dtype=object)",
        (DIALECTS + "test_numbers_beyond_64_bits_are_keys",),
    ),
    Mutant(
        "numbers of cells overflow",
        "data/cellnumbers.py",
        "if bound * size > MOST:",
        "if False:",
        (DIALECTS + "test_cells_of_tensors_beyond_64_bits",),
    ),
    Mutant(
        "a reader is read twice",
        "predicting.py",
        '        cells = loaded(cells, "cells")\n        posterior, coords',
        "        posterior, coords",
        (DIALECTS + "test_any_kind_of_table_and_number",),
    ),
    Mutant(
        "a standard deviation has the standard name of the mean",
        "data/labelled.py",
        'f"{standard} standard_error"',
        "standard",
        (LABELLED + "test_results_are_called_what_they_are",),
    ),
    Mutant(
        "masked cells are zero in standard deviations",
        "data/containers.py",
        "else 0.0 * np.abs(self.values)",
        "else np.zeros(self.values.shape)",
        (LABELLED + "test_masked_gaps_stay",),
    ),
    Mutant(
        "a labelled mask is not turned",
        "data/masks.py",
        "found = np.transpose(array, order)",
        "found = array",
        (LABELLED + "test_masked_gaps_stay",),
    ),
    Mutant(
        "fibres along any other mode are masked",
        "data/masks.py",
        "others = [mode for mode in range(len(found.shape)) if mode not in modes]",
        "others = modes",
        (LABELLED + "test_masked_gaps_stay",),
    ),
    Mutant(
        "results lose their compression",
        "data/labelledfiles.py",
        "own = NETCDF_ENCODING if kind",
        "own = () if kind",
        (LABELLED + "test_files_keep_what_describes_them",),
    ),
    Mutant(
        "results lose global attributes",
        "data/labelledfiles.py",
        "    dataset.attrs = around.attributes\n",
        "",
        (LABELLED + "test_files_keep_what_describes_them",),
    ),
    Mutant(
        "a row whose cell is known twice gets the smaller value",
        "data/longtables.py",
        "for row, at in pairs if low[at] == high[at]}",
        "for row, at in pairs}",
        (TRAPS + "test_a_row_whose_cell_is_known_gets_the_known_value",),
    ),
    Mutant(
        "a known value below zero has an error bar of minus zero",
        "data/longtables.py",
        "values = 0.0 * np.abs(values)",
        "values = 0.0 * values",
        (
            "tests/test_completion_tables.py::test_known_values_below_zero_have_no_error_of_minus_zero",
        ),
    ),
    Mutant(
        "a known value has an error bar",
        "data/longtables.py",
        "values = 0.0 * np.abs(values)",
        "values = np.abs(values)",
        (TRAPS + "test_a_row_whose_cell_is_known_gets_the_known_value",),
    ),
    Mutant(
        "any repeated cell is a conflict",
        "data/traps.py",
        "differ = np.flatnonzero(values[starts] != values[last])",
        "differ = np.flatnonzero(sizes > 1)",
        (TRAPS + "test_equal_rows_and_rows_of_some_weight_are_no_conflict",),
    ),
    Mutant(
        "cells drawn with replacement are conflicts",
        "data/traps.py",
        "and repeats <= STRAY * n and unlike_chance and chance_is_told(repeats, chance)",
        "",
        (TRAPS + "test_false_alarms_on_random_tables",),
    ),
    Mutant(
        "repeated measurements are a mode left out",
        "data/traps.py",
        "and share > WITHIN and not whole",
        "and not whole",
        (TRAPS + "test_repeats_of_a_measurement_are_no_trap",),
    ),
    Mutant(
        "heavy tails are slips",
        "data/traps.py",
        "if (1 + ratio / count) ** -count < CHANCE / TOPS:",
        "if ratio > 3:",
        (TRAPS + "test_false_alarms_on_random_tables",),
    ),
    Mutant(
        "identifiers in mixed case are misspelt",
        "data/traps.py",
        "if spaces or words:",
        "if True:",
        (TRAPS + "test_codes_in_mixed_case_are_no_trap",),
    ),
    Mutant(
        "rare labels are misspelt",
        "data/traps.py",
        "if others.min() < max(MANY, 0.5 * np.median(others)):",
        "if False:",
        (TRAPS + "test_false_alarms_on_random_tables",),
    ),
    Mutant(
        "files of others are replaced",
        "command/outputs.py",
        "    if not ours:\n",
        "    if False:\n",
        (COMMANDS + "test_the_files_of_others_are_not_replaced",),
    ),
    Mutant(
        "the input may be replaced by force",
        "command/workflows.py",
        '    check_apart("the output", target, {"the input": source})\n',
        "",
        (COMMANDS + "test_the_input_is_never_replaced",),
    ),
    Mutant(
        "errors of parsing are no JSON",
        "command/ending.py",
        '"--json" in sys.argv[1:]',
        'not "ClickException" in kinds and "--json" in sys.argv[1:]',
        (COMMANDS + "test_errors_are_json_if_asked",),
    ),
    Mutant(
        "advice is in Python",
        "command/screen.py",
        "name: [in_shell(each) for each in content] if name in SENTENCES else content",
        "name: content",
        (COMMANDS + "test_warnings_and_errors_speak_shell",),
    ),
    Mutant(
        "names of a model file are obeyed by the terminal",
        "command/screen.py",
        "Text(_plain(_text(name, content)))",
        "_text(name, content)",
        (COMMANDS + "test_info_of_something_else",),
    ),
    Mutant(
        "forecasts of some cells are those of others",
        "forecasting.py",
        "np.tile(np.arange(steps), len(others))",
        "np.repeat(np.arange(steps), len(others))",
        (COMMANDS + "test_forecast",),
    ),
    Mutant(
        "draws are counted with the warm-up",
        "progress.py",
        "completed=report.scan - self._begins[chain],",
        "completed=report.scan,",
        (PROGRESS + "test_a_line_per_chain_that_fits",),
    ),
    Mutant(
        "settings of online EM are ignored by Gibbs",
        "settings.py",
        "    _refuse_unused(given)\n",
        "",
        (LABELLED + "test_no_argument_is_ignored",),
    ),
]
