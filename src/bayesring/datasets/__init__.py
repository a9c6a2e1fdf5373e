"""Real data sets: one file each, downloaded on first use with a checksum, or read from a folder.

Set the environment variable ``BAYESRING_DATA`` to a folder that holds the files to work offline.
"""

from bayesring.datasets.alog import load_alog
from bayesring.datasets.dblp import load_dblp
from bayesring.datasets.enron import load_enron
from bayesring.datasets.indian_pines import load_indian_pines
from bayesring.datasets.kinship import load_kinship
from bayesring.datasets.splits import balanced_fold, random_split
from bayesring.datasets.ushcn import load_ushcn, ushcn_labels, ushcn_table

__all__ = [
    "balanced_fold",
    "load_alog",
    "load_dblp",
    "load_enron",
    "load_indian_pines",
    "load_kinship",
    "load_ushcn",
    "random_split",
    "ushcn_labels",
    "ushcn_table",
]
