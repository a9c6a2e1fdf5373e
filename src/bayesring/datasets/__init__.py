"""Real data sets: one file each, downloaded on first use with a checksum, or read from a folder.

Set the environment variable ``BAYESRING_DATA`` to a folder that holds the files to work offline.
"""

from bayesring.datasets.enron import load_enron
from bayesring.datasets.indian_pines import load_indian_pines
from bayesring.datasets.splits import random_split
from bayesring.datasets.ushcn import load_ushcn, ushcn_labels, ushcn_table

__all__ = [
    "load_enron",
    "load_indian_pines",
    "load_ushcn",
    "random_split",
    "ushcn_labels",
    "ushcn_table",
]
