"""Bugs in how data get to the workers of a cluster, and in how they are worked on there."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SPREAD = "tests/cluster/test_spread.py::"
BLOCKS = (SPREAD + "test_blocks_are_those_of_the_whole",)
HELD = (SPREAD + "test_the_same_cells_are_held_out",)
SENT = ("tests/cluster/test_cluster.py::test_a_core_is_sent_when_it_has_changed",)
HOSTILE = "tests/cluster/test_hostile.py::"
CHANGED = "tests/cluster/test_changed_files.py::"
ONLINE = "tests/cluster/test_online.py::"
LARGE = (ONLINE + "test_large_batches_of_files",)
FRAMES = (ONLINE + "test_partitions_are_row_groups",)

CLUSTER = [
    Mutant(
        "rows before a border within a cell are in both groups",
        "data/partitions.py",
        "blocks, end = [], skip",
        "blocks, end = [], 0 * skip",
        BLOCKS,
    ),
    Mutant(
        "rows of a slice that a border divides are all after it",
        "data/partitions.py",
        "if border.cell:  # its slice lies on both sides",
        "if border.cell and not border.cell:",
        BLOCKS,
    ),
    Mutant(
        "held-out cells stay among the explored",
        "data/partitions.py",
        "return _some(data, chosen if held else ~chosen)",
        "return _some(data, chosen if held else chosen | True)",
        HELD,
    ),
    Mutant(
        "held-out cells are missing in the end",
        "engine/spread.py",
        "return self._replace(counts=counts, choice=self.choice._replace(rule=None))",
        "return self._replace(counts=counts)",
        HELD,
    ),
    Mutant(
        "a core that has changed is not sent again",
        "engine/placing.py",
        "return self.futures[place] if known and np.array_equal(self.parts[place], part) else None",
        "return self.futures[place] if known else None",
        SENT,
    ),
    Mutant(
        "sums of a large batch are added in the order of the workers",
        "engine/gradients.py",
        "if own[0] <= whole[0] and whole[1] <= own[1]:",
        "if own[0] <= whole[0] < own[1]:",
        LARGE,
    ),
    Mutant(
        "a lane on a worker is dealt in the order of another turn",
        "engine/remoterows.py",
        "for deal in lanes.deals_of(seed, epoch, turn, sum(numbers), size):",
        "for deal in lanes.deals_of(seed, epoch, 0, sum(numbers), size):",
        LARGE,
    ),
    Mutant(
        "held-out rows are learned from on a cluster",
        "engine/remoterows.py",
        "for part in observed_parts(files, [group], skip):",
        "for part in observed_parts(files, [group], skip[:0]):",
        (ONLINE + "test_small_batches_of_files",),
    ),
    Mutant(
        "rows of a partition have the numbers of the first one",
        "engine/remoteframes.py",
        "groups.append(Group(number, 0, 0, self.n_rows, n_rows))",
        "groups.append(Group(number, 0, 0, 0, n_rows))",
        FRAMES,
    ),
    Mutant(
        "empty partitions move the others",
        "engine/remoteframes.py",
        "self._cluster.submit(name, function, parts[own.file], [own], *rest, urgency=1)",
        "self._cluster.submit(name, function, parts[own.first // 400], [own], *rest, urgency=1)",
        FRAMES,
    ),
    Mutant(
        "a lane of partitions is in another order than its sizes",
        "engine/remoteframes.py",
        "return CodedLane(np.concatenate([part.rows for part in parts]), sizes)",
        "return CodedLane(np.concatenate([part.rows for part in parts[::-1]]), sizes)",
        FRAMES,
    ),
    Mutant(
        "NaN in a column of Arrow's is a value",
        "data/parquet/frames.py",
        "if pa.types.is_floating(columns[-1].type):",
        "if False:",
        (ONLINE + "test_missing_and_odd_columns",),
    ),
    Mutant(
        "workers see the ring of the first batch only",
        "engine/dask.py",
        "task = task._replace(flat=task.flat._replace(flat=task.flat.flat.copy()))  # it will move",
        "pass",
        (ONLINE + "test_large_batches_of_arrays",),
    ),
    Mutant(
        "work that was lost with its worker is not done again",
        "engine/dask.py",
        """                if future.status == "error":
                    future.retry()""",
        """                if future.status == "nothing":
                    future.retry()""",
        (HOSTILE + "test_work_that_was_lost_is_done_again",),
    ),
    Mutant(
        "blocks that could not be read are not read again",
        "engine/dask.py",
        'elif group.blocks.status == "error":',
        "elif False:",
        (HOSTILE + "test_work_that_was_lost_is_done_again",),
    ),
    Mutant(
        "held-out cells rejoin blocks in memory that are not there",
        "engine/dask.py",
        "if first.source is not None:",
        "if first.source is None:",
        (HOSTILE + "test_work_that_was_lost_is_done_again",),
    ),
    Mutant(
        "units come from what stands for censored values",
        "engine/spread.py",
        "moments = tally.moments(of_all), seen.moments(of_seen)",
        "moments = tally.moments(of_all), tally.moments(of_all)",
        (SPREAD + "test_moments_of_what_was_observed_itself",),
    ),
    Mutant(
        "surveys of every ninth partition are lost",
        "engine/spread.py",
        "for first in range(0, len(pieces), FAN_IN)",
        "for first in range(0, len(pieces), FAN_IN + 1)",
        (SPREAD + "test_reductions_lose_nothing",),
    ),
    Mutant(
        "rows between two row groups of a lane are sent, too",
        "engine/remoterows.py",
        "wanted[-1][0] == lane and wanted[-1][1][-1][1] == begin",
        "wanted[-1][0] == lane",
        (ONLINE + "test_rows_come_in_the_order_that_is_asked_for",),
    ),
    Mutant(
        "times with and without a zone are one key",
        "data/partitions.py",
        'if levels.dtype.kind == "M" and len({zone is None for zone in zones}) > 1:',
        "if False:",
        (HOSTILE + "test_partitions_that_do_not_fit_together",),
    ),
    Mutant(
        "values of all partitions together are not checked",
        "engine/spread.py",
        "likelihood.check(np.array([self.moments.smallest, self.moments.largest]))",
        "pass",
        (HOSTILE + "test_partitions_that_do_not_fit_together",),
    ),
    Mutant(
        "a wrong value has the row that it has among the known ones",
        "data/rowparts.py",
        "row = int(np.flatnonzero(np.unpackbits(self.known))[int(found[0])])",
        "row = int(found[0])",
        (HOSTILE + "test_the_row_of_a_wrong_value_is_that_of_its_partition",),
    ),
    Mutant(
        "a wrong value of a later file has the row of the first",
        "data/rowparts.py",
        "own = first + row - int(ends[ends <= row].max(initial=0))",
        "own = first + row",
        (HOSTILE + "test_the_row_of_a_wrong_value_is_that_of_its_partition",),
    ),
    Mutant(
        "the first partition decides where labels lie",
        "data/sitecolumns.py",
        "joint.append(PlacesOfKey.of(nw.concat(frames), key, pair))",
        "joint.append(several[0])",
        (HOSTILE + "test_partitions_say_together_where_labels_lie",),
    ),
    Mutant(
        "statistics of half a batch are lost",
        "engine/gradients.py",
        "return self._replace(statistics=self.statistics + other.statistics)",
        "return self",
        (ONLINE + "test_sums_of_batches_have_all_their_parts",),
    ),
    Mutant(
        "rows of half a batch are not counted",
        "engine/gradients.py",
        "np.add(self.counts, other.counts, out=self.counts)",
        "pass",
        (ONLINE + "test_sums_of_batches_have_all_their_parts",),
    ),
    Mutant(
        "lanes keep the units of an earlier fit",
        "engine/remoterows.py",
        "if self._held is None or self._held[0] != known:",
        "if self._held is None:",
        (ONLINE + "test_lanes_are_coded_again_in_other_units",),
    ),
    Mutant(
        "another file of the same size is read",
        "data/parquet/footers.py",
        "if found.st_mtime_ns != self.modified:",
        "if False:",
        (CHANGED + "test_other_values_of_the_same_size",),
    ),
    Mutant(
        "copies of files on other machines are refused",
        "data/parquet/footers.py",
        "same = same and found.st_ctime_ns < self.opened - GRAIN",
        "same = False",
        (CHANGED + "test_copies_on_other_machines_and_files_that_come_later",),
    ),
    Mutant(
        "files that came later move the others",
        "data/parquet/reading.py",
        "self._paths = [own.path for own in stamps] or find_files(self.path)",
        "self._paths = find_files(self.path)",
        (CHANGED + "test_copies_on_other_machines_and_files_that_come_later",),
    ),
    Mutant(
        "patterns of files are names of files on a cluster",
        "engine/dask.py",
        "found = list(map(str, find_files(path))) if is_pattern(str(path)) else path",
        "found = path",
        (HOSTILE + "test_patterns_and_folders_that_are_keys",),
    ),
    Mutant(
        "a worker that Dask has given up is not asked for again",
        "engine/connection.py",
        "        cluster.scale(len(cluster.worker_spec))\n",
        "",
        ("tests/cluster/test_cluster.py::test_a_worker_that_dask_gives_up_comes_back",),
    ),
    Mutant(
        "a worker that was closed is not replaced",
        "engine/connection.py",
        'if worker.status.name in ("closed", "failed"):',
        "if False:",
        ("tests/cluster/test_cluster.py::test_a_worker_that_was_closed_is_replaced",),
    ),
    Mutant(
        "a worker is asked for once only",
        "engine/connection.py",
        "        else:\n            bring_back(self._client)\n",
        "",
        ("tests/cluster/test_cluster.py::test_a_worker_that_was_closed_is_replaced",),
    ),
    Mutant(
        "blocks are laid out on no worker",
        "engine/dask.py",
        "while not (threads := self.client.nthreads()):",
        "threads = self.client.nthreads()\n        while False:",
        ("tests/cluster/test_cluster.py::test_blocks_wait_for_a_worker",),
    ),
]
