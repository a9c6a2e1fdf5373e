"""Bugs in how data get to the workers of a cluster, and in how they are worked on there."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SPREAD = "tests/cluster/test_spread.py::"
BLOCKS = (SPREAD + "test_blocks_are_those_of_the_whole",)
HELD = (SPREAD + "test_the_same_cells_are_held_out",)
SENT = ("tests/cluster/test_cluster.py::test_a_core_is_sent_when_it_has_changed",)

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
        "engine/dask.py",
        "elif known and np.array_equal(before.parts[place], part):",
        "elif known:",
        SENT,
    ),
]
