"""Bugs in how data get to the workers of a cluster, and in how they are worked on there."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SPREAD = "tests/cluster/test_spread.py::"
BLOCKS = (SPREAD + "test_blocks_are_those_of_the_whole",)
HELD = (SPREAD + "test_the_same_cells_are_held_out",)
SENT = ("tests/cluster/test_cluster.py::test_a_core_is_sent_when_it_has_changed",)
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
]
