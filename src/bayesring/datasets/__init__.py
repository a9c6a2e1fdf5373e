"""Data sets of the paper, one file each, and generators with a known truth.

Files are downloaded on first use and verified by checksum. To work offline, set the environment
variable ``BAYESRING_DATA`` to a folder that contains them.
"""

from bayesring.datasets.alog import load_alog
from bayesring.datasets.dataset import Dataset, Description
from bayesring.datasets.dblp import load_dblp
from bayesring.datasets.enron import load_enron
from bayesring.datasets.indian_pines import load_indian_pines
from bayesring.datasets.kinship import load_kinship
from bayesring.datasets.splits import Fold, balanced_fold, random_fold, random_split
from bayesring.datasets.synthetic import Simulation, make_cp, make_ring
from bayesring.datasets.ushcn import load_ushcn, ushcn_table

__all__ = [
    "Dataset",
    "Description",
    "Fold",
    "Simulation",
    "balanced_fold",
    "load_alog",
    "load_dblp",
    "load_enron",
    "load_indian_pines",
    "load_kinship",
    "load_ushcn",
    "make_cp",
    "make_ring",
    "random_fold",
    "random_split",
    "ushcn_table",
]
