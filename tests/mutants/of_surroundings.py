"""Bugs around the sampler that the tests of their day did not notice when somebody planted them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BATCHES = "tests/online/test_batches.py::"
COMPILING = "tests/test_compiling.py::"
FAULTS = "tests/checkpoint/test_faults.py::"
FOLDING = "tests/test_folding.py::"
FOLDS = "tests/test_folds.py::"
HOSTILE = "tests/test_hostile_models.py::"
LENGTH = "tests/test_length.py::"
OUTPUTS = "tests/test_cli_outputs.py::"
SIGNALS = "tests/checkpoint/test_signals.py::"
THREADS = "tests/sampling/test_threads.py::"

OWN_STREAMS = FOLDING + ("test_every_draw_is_folded_with_streams_of_its_own_until_it_has_forgotten")
IN_THE_FOLDS = FOLDS + (
    "test_interrupted_in_the_folds_intervals_are_calibrated_by_what_was_held_out"
)

NUMBERS = [
    Mutant(
        "tails of t that are less than any float divide by zero",
        "kernels/mixtures.py",
        "    if tail <= 0.0:",
        "    if False:",
        ("tests/kernels/test_mixtures.py::test_draws_further_apart_than_a_tail_of_t_reaches",),
    ),
    Mutant(
        "what rows carry is not shuffled with them",
        "data/batches.py",
        "yield Chunk(columns, self._values[order], self._given.at(order))",
        "yield Chunk(columns, self._values[order], self._given)",
        (BATCHES + "test_what_rows_carry_is_shuffled_with_them",),
    ),
    Mutant(
        "one scan too many counts in a fold",
        "infer/folds.py",
        "if scan > FORGET:",
        "if scan >= FORGET:",
        (FOLDS + "test_ranks_are_means_over_the_scans_that_count",),
    ),
    Mutant(
        "all folds share their noise",
        "infer/folds.py",
        "Streams.of_fold(crossing.seed, k, fold)",
        "Streams.of_fold(crossing.seed, k, 0)",
        (FOLDS + "test_every_chain_has_streams_of_its_own_in_every_fold",),
    ),
    Mutant(
        "one chain alone is run without folds",
        "infer/folds.py",
        "][:CHAINS]",
        "][:1]",
        (FOLDS + "test_every_chain_has_streams_of_its_own_in_every_fold",),
    ),
    Mutant(
        "R^2 does not count weights",
        "predicting.py",
        "r2_score(values, mean, sample_weight=sample_weight)",
        "r2_score(values, mean)",
        ("tests/test_extras.py::test_scores_are_weighted",),
    ),
    Mutant(
        "mean log scores do not count weights",
        "predicting.py",
        "np.average(posterior.log_score(coords, values), weights=sample_weight)",
        "np.average(posterior.log_score(coords, values))",
        ("tests/test_extras.py::test_scores_are_weighted",),
    ),
    Mutant(
        "new labels of two modes are drawn once, and do not forget where they began",
        "posterior/folding.py",
        "at_once = len(modes) == 1 and not",
        "at_once = not",
        (OWN_STREAMS,),
    ),
    Mutant(
        "suggestions forget where new labels lie",
        "predicting.py",
        "added, self.seed_, positions=where)",
        "added, self.seed_)",
        ("tests/test_sites.py::test_suggestions_know_where_new_stations_lie",),
    ),
    Mutant(
        "the first level of tails is that of 80 %",
        "model/tails.py",
        "/ ndtri((0.75, 0.95))",
        "/ ndtri((0.75, 0.9))",
        ("tests/test_gaussian.py::test_tails_of_values_that_are_normal_have_the_size_derived",),
    ),
    Mutant(
        "values of which only ends are known are held out",
        "data/splitting.py",
        "        held &= ~data.given.censored\n",
        "",
        ("tests/test_splitting.py::test_values_of_which_only_ends_are_known_are_not_held_out",),
    ),
    Mutant(
        "a handful of values is held out where most are censored",
        "data/splitting.py",
        "        if np.count_nonzero(held) < FEWEST:\n",
        "        if False:\n",
        ("tests/test_splitting.py::test_values_of_which_only_ends_are_known_are_not_held_out",),
    ),
    Mutant(
        "weights do not count when chains choose a size",
        "infer/chains.py",
        "return losses if given.weight is None else",
        "return losses if True else",
        (LENGTH + "test_weights_count_when_chains_choose_a_size",),
    ),
    Mutant(
        "a warm-up that ends early keeps a size that has failed",
        "infer/chains.py",
        "growth.taken if scan == end else growth.strands",
        "growth.strands",
        (LENGTH + "test_growth_that_has_no_time_to_end_goes_back_to_the_best_size",),
    ),
    Mutant(
        "chains are given up at their first look",
        "infer/chains.py",
        "(draws > FIRST_DRAWS and whole",
        "(draws >= FIRST_DRAWS and whole",
        (LENGTH + "test_chains_that_disagree_for_good_end_at_the_second_look",),
    ),
    Mutant(
        "few data take strands from a ring that begins with more",
        "model/rank.py",
        "initial=max(self.initial, self.sparse)",
        "initial=self.sparse",
        ("tests/test_growth.py::test_few_data_take_no_strands_from_a_ring_that_begins_with_more",),
    ),
    Mutant(
        "where strands widen intervals, few data begin with one strand",
        "model/growth.py",
        "if self.widening and self.is_ample(shape, information):",
        "if self.widening:",
        (
            "tests/test_growth.py::"
            "test_where_larger_rings_widen_intervals_ample_data_begin_with_one_strand",
        ),
    ),
    Mutant(
        "one strand on trial is never compared with two",
        "model/growth.py",
        "best = int(beats(growth.least, losses, self.gain))",
        "best = 0",
        (
            "tests/test_growth.py::"
            "test_one_strand_that_began_at_random_is_tried_again_as_the_first_of_two",
        ),
    ),
    Mutant(
        "two strands are not seen anew before one is tried again",
        "model/growth.py",
        "looks=0, losses=NEVER, least=losses)",
        "looks=0, losses=NEVER)",
        (
            "tests/test_growth.py::"
            "test_one_strand_that_began_at_random_is_tried_again_as_the_first_of_two",
        ),
    ),
    Mutant(
        "larger sizes are tried again, too",
        "model/growth.py",
        "trims = self.trims and growth.best == 1",
        "trims = self.trims and growth.best > 0",
        ("tests/test_growth.py::test_only_the_first_size_is_tried_again",),
    ),
    Mutant(
        "a search that is cut short keeps the size on trial",
        "model/growth.py",
        "self.best if self.failed or self.trimming else self.place",
        "self.best if self.failed else self.place",
        (
            "tests/test_growth.py::"
            "test_a_search_that_ends_at_a_given_scan_takes_the_best_size_not_the_one_on_trial",
        ),
    ),
    Mutant(
        "a larger ring of binary values is taken for the usual gain",
        "settings.py",
        "widening=likelihood.strands_widen",
        "widening=False",
        ("tests/online/test_fit.py::test_rings_of_few_binary_values_begin_with_more_strands",),
    ),
    Mutant(
        "truths above all draws never have the last rank",
        "infer/selfcheck.py",
        "/ (counted + 1))",
        "/ (counted + 2))",
        ("tests/test_selfcheck.py::test_a_truth_above_all_draws_has_the_last_of_their_places",),
    ),
    Mutant(
        "refits of a check count from their first scan",
        "infer/selfcheck.py",
        "        if scan > scans // 2:\n",
        "        if scan > 0:\n",
        ("tests/test_selfcheck.py::test_a_truth_above_all_draws_has_the_last_of_their_places",),
    ),
    Mutant(
        "short chains keep consecutive draws",
        "infer/online.py",
        "n_draws = fitting * -(-n_draws // fitting)",
        "n_draws = fitting",
        ("tests/online/test_fit.py::test_draws_that_memory_has_no_room_for_are_thinned",),
    ),
    Mutant(
        "quantiles lie anywhere between two groups of draws",
        "kernels/mixtures.py",
        "tails[k] * EDGE, -math.inf, math.inf\n            place = sides[k] * mean + scores",
        "tails[k], -math.inf, math.inf\n            place = sides[k] * mean + scores",
        (
            "tests/kernels/test_mixtures.py::"
            "test_between_draws_far_apart_quantiles_are_at_the_nearer_ones",
        ),
    ),
    Mutant(
        "the unsigned key 2^63 becomes negative",
        "data/labels.py",
        "int(numbers.max()) < 2**63",
        "int(numbers.max()) <= 2**63",
        ("tests/test_dialects.py::test_numbers_beyond_64_bits_are_keys",),
    ),
    Mutant(
        "large integers beside fractions become other labels",
        "data/labels.py",
        " and _in_type_of(joined, added)[1].all()):",
        "):",
        ("tests/test_labels.py::test_new_labels_that_no_type_holds_beside_the_old_are_refused",),
    ),
    Mutant(
        "times of zones without a name are in a zone that nobody knows",
        "data/labels.py",
        'Zone(str(zone) if known else "UTC", "us")',
        'Zone(str(zone), "us")',
        ("tests/test_time_zones.py::test_times_of_a_zone_without_a_name_are_given_in_utc",),
    ),
    Mutant(
        "halves of characters are keys",
        "data/labels.py",
        "if HALF.search(text):",
        "if False:",
        ("tests/test_labels.py::test_text_that_no_file_can_hold_is_no_key",),
    ),
]
INTERRUPTS = [
    Mutant(
        "SIGTERM in the folds loses all draws",
        "infer/chains.py",
        "except (KeyboardInterrupt, SystemExit) as error:\n            interrupt = error\n",
        "except KeyboardInterrupt as error:\n            interrupt = error\n",
        (IN_THE_FOLDS,),
    ),
    Mutant(
        "what was found before an interrupt in the folds is not used",
        "infer/chains.py",
        "(few is None or interrupt or hurries)",
        "(few is None or hurries)",
        (IN_THE_FOLDS,),
    ),
    Mutant(
        "a disk that fails in the newer generation hides the older",
        "checkpoint/generations.py",
        "except (Damaged, OSError) as error",
        "except Damaged as error",
        (FAULTS + "test_the_older_generation_is_read_if_the_disk_fails_in_the_newer",),
    ),
    Mutant(
        "a fit killed at its first write can never use its folder again",
        "checkpoint/manifest.py",
        "if name != LOCK and not is_temporary(name)]",
        "if name != LOCK]",
        (FAULTS + "test_a_fit_killed_before_its_first_file_can_begin_again",),
    ),
    Mutant(
        "no checkpoints where there are no locks",
        "checkpoint/manifest.py",
        "except OSError:  # a file system without locks\n            pass",
        "except OSError:  # a file system without locks\n            raise",
        (FAULTS + "test_a_file_system_without_locks",),
    ),
    Mutant(
        "arrays of the same bytes count as the same data",
        "checkpoint/manifest.py",
        '        total.update(f"{array.dtype.str} {array.shape} ".encode())\n',
        "",
        (FAULTS + "test_digests_tell_arrays_apart_that_have_the_same_bytes",),
    ),
    Mutant(
        "a handler that was set during a fit is lost",
        "interrupts.py",
        "if signal.getsignal(signal.SIGTERM) is _end:",
        "if True:",
        (SIGNALS + "test_the_handler_of_a_program_stays",),
    ),
    Mutant(
        "pieces go on after one of them has failed",
        "engine/threads.py",
        " BaseException:\n                    self._stop.set()\n                    for future",
        " BaseException:\n                    for future",
        (THREADS + "test_a_piece_that_fails_stops_the_others",),
    ),
    Mutant(
        "a second SIGTERM does not wait for those at work",
        "engine/threads.py",
        "        except (KeyboardInterrupt, SystemExit):\n            continue",
        "        except KeyboardInterrupt:\n            continue",
        (THREADS + "test_a_second_signal_does_not_end_the_wait_for_those_at_work",),
    ),
    Mutant(
        "an engine that was stopped stays so",
        "engine/threads.py",
        "        self._stop.clear()\n",
        "",
        (THREADS + "test_an_engine_that_was_stopped_can_be_opened_again",),
    ),
    Mutant(
        "signals are not held back while the compiler works",
        "engine/compiling.py",
        "            if self._depth == 0:\n                self._hold()\n",
        "",
        (COMPILING + "test_a_signal_waits_for_the_end_of_a_load",),
    ),
    Mutant(
        "signals that came while a kernel was loaded are lost",
        "engine/compiling.py",
        "self._hand_over(again=False)",
        "self._give_back()",
        (COMPILING + "test_a_signal_waits_for_the_end_of_a_load",),
    ),
    Mutant(
        "signals wait until everything is compiled",
        "engine/compiling.py",
        "            if main:\n                self._hand_over()\n",
        "",
        (COMPILING + "test_a_signal_waits_for_the_next_pass_alone",),
    ),
    Mutant(
        "cancelled chains compile to the end",
        "engine/threads.py",
        "                with cancelled_by(self.go_on):\n                    return work(chain)",
        "                return work(chain)",
        (COMPILING + "test_threads_of_a_cancelled_fit_stop_compiling",),
    ),
    Mutant(
        "NumPy converts texts, and loses what handlers of signals raise",
        "data/csvfiles.py",
        "return texts.astype(object).astype(np.float64)",
        "return texts.astype(np.float64)",
        (COMPILING + "test_reading_numbers_can_be_interrupted",),
    ),
]
FILES = [
    Mutant(
        "swapped classes are loaded",
        "posterior/store.py",
        "    if not labels[0] < labels[1]:",
        "    if False:",
        (HOSTILE + "test_classes_are_checked",),
    ),
    Mutant(
        "pairs of modes are loaded unchecked",
        "posterior/modelfiles.py",
        "    check_pairs(prior.share, shape)\n",
        "",
        (HOSTILE + "test_descriptions_are_checked",),
    ),
    Mutant(
        "noise of a mode that is not there is loaded",
        "posterior/modelfiles.py",
        "fitted.group_mode >= len(shape):",
        "fitted.group_mode > len(shape):",
        (HOSTILE + "test_descriptions_are_checked",),
    ),
    Mutant(
        "chains with other traces are loaded",
        "posterior/store.py",
        "if traces and described.keys() != traces[0].described.keys():",
        "if False:",
        (HOSTILE + "test_chains_have_the_same_traces",),
    ),
    Mutant(
        "pages of Parquet may claim any number of bytes",
        "data/parquet/thrift.py",
        "            if claimed > max(all_pages, LARGE_PAGE):",
        "            if False:",
        ("tests/test_footers.py::test_pages_do_not_claim_more_than_there_is",),
    ),
    Mutant(
        "only the first page of a column is looked at",
        "data/parquet/thrift.py",
        "        place += head.place + packed\n",
        "        return\n",
        ("tests/test_footers.py::test_pages_do_not_claim_more_than_there_is",),
    ),
    Mutant(
        "arrays of others beside those of a result are replaced",
        "command/outputs.py",
        "return _are_statistics(found)",
        "return found.issuperset(SPREADS)",
        (OUTPUTS + "test_arrays_of_others_beside_those_of_a_result_are_not_replaced",),
    ),
    Mutant(
        "models tell the folder of their input",
        "command/origin.py",
        'return f"{file_name(source)}, {path.stat()',
        'return f"{source}, {path.stat()',
        (OUTPUTS + "test_the_folder_of_the_input_is_told_to_nobody",),
    ),
    Mutant(
        "a model replaces a file of its checkpoint",
        "checkpoint/manifest.py",
        "    if own and same_place(",
        "    if False and same_place(",
        (OUTPUTS + "test_outputs_stay_out_of_the_checkpoint",),
    ),
    Mutant(
        "a model may have the name of its checkpoint until it is to be written",
        "checkpoint/manifest.py",
        "    if same_place(path, os.fspath(folder)):",
        "    if False:",
        (OUTPUTS + "test_outputs_stay_out_of_the_checkpoint",),
    ),
]
SURROUNDINGS = [*NUMBERS, *INTERRUPTS, *FILES]
