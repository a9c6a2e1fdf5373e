"""Bugs in what a fit keeps of itself, and in how it goes on."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FAULTS = "tests/checkpoint/test_faults.py::"
RESUME = "tests/checkpoint/test_resume.py::"

SIGNALS = "tests/checkpoint/test_signals.py::"
ANY_MOMENT = SIGNALS + "test_interrupted_at_any_moment_and_resumed_it_ends_with_the_same_bits"
IN_TIME = SIGNALS + "test_a_command_ends_in_time_keeps_its_state_and_says_how_to_go_on"
LOOKED_AT = "tests/test_cli_outputs.py::test_checkpoints_are_looked_at_before_any_work"

CHECKPOINT = [
    Mutant(
        "an interrupted scan counts as done",
        "infer/chain.py",
        "except Stopped:\n            self.write_down(always=True)",
        "except Stopped:\n            self.scan = scan\n            self.write_down(always=True)",
        (ANY_MOMENT + "[gibbs]",),
    ),
    Mutant(
        "chains that are interrupted do not save themselves",
        "infer/chain.py",
        "        except Stopped:\n            self.write_down(always=True)",
        "        except Stopped:\n            pass",
        (IN_TIME,),
    ),
    Mutant(
        "rings that are interrupted do not save themselves",
        "infer/members.py",
        "                    course.checkpoint.keep(piece, way, always=True)\n",
        "                    pass\n",
        (SIGNALS + "test_a_ring_that_is_interrupted_saves_itself",),
    ),
    Mutant(
        "SIGTERM ends Python at once",
        "interrupts.py",
        "signal.signal(signal.SIGTERM, _end)",
        "pass",
        (SIGNALS + "test_sigterm_in_python_keeps_the_draws",),
    ),
    Mutant(
        "a program loses its own handler of SIGTERM",
        "interrupts.py",
        "if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:",
        "if not in_main:",
        (SIGNALS + "test_the_handler_of_a_program_stays",),
    ),
    Mutant(
        "SIGTERM ends a command at once",
        "command/ending.py",
        "    signal.signal(signal.SIGTERM, signal.default_int_handler)\n",
        "",
        (IN_TIME,),
    ),
    Mutant(
        "nobody says how to go on after a partial result",
        "command/workflows.py",
        "asked for each.{self.go_on}",
        "asked for each.",
        (IN_TIME,),
    ),
    Mutant(
        "checkpoints are looked at when the fit begins",
        "fitting.py",
        "            check_contents(self.folder)\n",
        "            pass\n",
        (LOOKED_AT,),
    ),
    Mutant(
        "a full disk is the system's error",
        "data/writing.py",
        "            if error.errno not in FULL:",
        "            if True:",
        (FAULTS + "test_a_disk_that_is_full_from_the_start_ends_the_fit_in_a_sentence",),
    ),
    Mutant(
        "a damaged file is read as if it were whole",
        "checkpoint/generations.py",
        "if hashlib.sha256(body).digest() != content[-DIGEST:]:",
        "if False:",
        (FAULTS + "test_the_older_generation_is_read_if_the_newer_is_gone_or_damaged",),
    ),
    Mutant(
        "the older generation is never looked at",
        "checkpoint/generations.py",
        "for extension in (NEW, OLD):",
        "for extension in (NEW,):",
        (FAULTS + "test_the_older_generation_is_read_if_the_newer_is_gone_or_damaged",),
    ),
    Mutant(
        "the older generation is not kept",
        "checkpoint/generations.py",
        "            os.replace(place, folder / (name + OLD))\n",
        "            pass\n",
        (FAULTS + "test_the_older_generation_is_read_if_the_newer_is_gone_or_damaged",),
    ),
    Mutant(
        "arrays come back row by row that went column by column",
        "checkpoint/generations.py",
        'order: Any = "F" if each["fortran"] else "C"',
        'order: Any = "C"',
        (FAULTS + "test_state_comes_back_as_it_was",),
    ),
    Mutant(
        "the end of a stage waits for its time to be written",
        "checkpoint/keeping.py",
        "if not always and begin < due:",
        "if begin < due:",
        (RESUME + "test_a_checkpoint_is_written_as_often_as_asked_for",),
    ),
    Mutant(
        "a disk that is full ends the fit",
        "checkpoint/keeping.py",
        "            self._say_once(error)\n",
        "            raise\n",
        (FAULTS + "test_a_full_disk_warns_once_and_the_fit_goes_on",),
    ),
    Mutant(
        "a full disk warns at every write",
        "checkpoint/keeping.py",
        "        self._failed = True\n",
        "",
        (FAULTS + "test_a_full_disk_warns_once_and_the_fit_goes_on",),
    ),
    Mutant(
        "writing may take all of the time",
        "checkpoint/keeping.py",
        "max(self.every, (end - begin) / SHARE)",
        "self.every",
        (RESUME + "test_writing_takes_a_small_share_of_the_time",),
    ),
    Mutant(
        "pieces share the time of their last write",
        "checkpoint/keeping.py",
        "self._due[piece] = end + wait",
        "self._due = dict.fromkeys(self._due, end + wait)",
        (RESUME + "test_a_checkpoint_is_written_as_often_as_asked_for",),
    ),
    Mutant(
        "a folder is not held against a second fit",
        "checkpoint/manifest.py",
        "            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            pass\n",
        (FAULTS + "test_two_fits_do_not_share_a_folder",),
    ),
    Mutant(
        "other data pass as the same",
        "checkpoint/manifest.py",
        "total.update(array.reshape(-1).view(np.uint8).data)",
        "total.update(array.reshape(-1)[:1].view(np.uint8).data)",
        (FAULTS + "test_other_data_are_refused",),
    ),
    Mutant(
        "another release goes on with the folder",
        "checkpoint/manifest.py",
        "        if before == now:\n",
        "        if before == now or name == VERSION:\n",
        (FAULTS + "test_another_version_is_refused",),
    ),
    Mutant(
        "a fit goes on though a setting has changed",
        "checkpoint/manifest.py",
        "        if before == now:\n",
        "        if before == now or name not in (DATA, VERSION):\n",
        (FAULTS + "test_another_fit_is_refused",),
    ),
    Mutant(
        "a folder with other files is taken for an empty one",
        "checkpoint/manifest.py",
        "    if foreign:\n",
        "    if False:\n",
        (FAULTS + "test_a_folder_with_other_files_is_refused",),
    ),
    Mutant(
        "numbers of NumPy come back as arrays",
        "checkpoint/trees.py",
        'return arrays[plain["scalar"]][()]',
        'return arrays[plain["scalar"]]',
        (FAULTS + "test_state_comes_back_as_it_was",),
    ),
    Mutant(
        "classes inside of lists are not found again",
        "checkpoint/trees.py",
        "elif isinstance(tree, tuple | list):",
        "elif isinstance(tree, tuple):",
        (FAULTS + "test_classes_are_found_wherever_they_are",),
    ),
    Mutant(
        "what new observations taught is not kept",
        "infer/online.py",
        "        course.checkpoint.keep(piece, learned, always=True)\n",
        "",
        (RESUME + "test_a_model_that_goes_on_keeps_one_call_in_a_folder",),
    ),
    Mutant(
        "a model that knows more goes on with the folder of one that knew less",
        "fitting.py",
        "digest(*before, *all_values, *_parts_of_data(data, axes))",
        "digest(*_parts_of_data(data, axes))",
        (RESUME + "test_a_model_that_goes_on_keeps_one_call_in_a_folder",),
    ),
    Mutant(
        "a fit of files goes on with other rows of the same labels and counts",
        "fitting.py",
        "known = digest(*about, files.fingerprint(coding))",
        "known = digest(*about)",
        (FAULTS + "test_other_rows_of_a_file_are_refused[keys]",),
    ),
    Mutant(
        "rows of files may change their order",
        "data/fingerprints.py",
        "np.ascontiguousarray(rows).data",
        "np.sort(rows, axis=0).data",
        (FAULTS + "test_other_rows_of_a_file_are_refused[values]",),
    ),
    Mutant(
        "fingerprints on clusters know no values",
        "data/fingerprints.py",
        "[*data.coords.T, data.values, *fields]",
        "[*data.coords.T, *fields]",
        ("tests/cluster/test_spread.py::test_fingerprints_do_not_depend_on_how_the_data_are_cut",),
    ),
    Mutant(
        "fingerprints on clusters know of labels, but not which belong together",
        "data/fingerprints.py",
        "state = _mixed(state ^ bits.view(np.uint64))",
        "state = state + _mixed(bits.view(np.uint64))",
        ("tests/cluster/test_spread.py::test_fingerprints_do_not_depend_on_how_the_data_are_cut",),
    ),
    Mutant(
        "a damaged generation takes the place of a whole one",
        "checkpoint/generations.py",
        "if _is_whole(place):",
        "if place.exists():",
        (FAULTS + "test_a_damaged_generation_does_not_take_the_place_of_a_whole_one",),
    ),
    Mutant(
        "interrupted online EM keeps no draws",
        "infer/online.py",
        "        interrupt = sampled.interrupt\n",
        "        if sampled.interrupt is not None:\n            raise sampled.interrupt\n",
        (RESUME + "test_interrupted_online_em_keeps_the_draws_of_its_chains",),
    ),
    Mutant(
        "an interrupted partial_fit takes over what it has",
        "infer/online.py",
        "        if sampled.interrupt is not None:\n            raise sampled.interrupt\n",
        "",
        (RESUME + "test_an_interrupt_in_the_chains_of_partial_fit_changes_nothing",),
    ),
    Mutant(
        "an interrupt of compiled code is an error of Python",
        "engine/threads.py",
        "                with told_as_such():\n                    return [work(piece)",
        "                if True:\n                    return [work(piece)",
        (
            "tests/sampling/test_threads.py::"
            "test_an_interrupt_of_compiled_code_is_raised_as_what_it_is",
        ),
    ),
    Mutant(
        "checks of short fits take longer than these",
        "infer/selfcheck.py",
        "n_fits=min(fitted.n_fits, affordable)",
        "n_fits=fitted.n_fits",
        ("tests/test_selfcheck.py::test_a_check_makes_no_more_scans_than_the_fit",),
    ),
]
