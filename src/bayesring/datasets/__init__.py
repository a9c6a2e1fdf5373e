"""Data sets of the paper and of the field, one file each, and generators with a known truth.

Files are downloaded on first use and verified by checksum. To work offline, set the environment
variable ``BAYESRING_DATA`` to a folder that contains them.
"""

from bayesring.datasets.alog import load_alog
from bayesring.datasets.birmingham import load_birmingham
from bayesring.datasets.dataset import Dataset, Description
from bayesring.datasets.dblp import load_dblp
from bayesring.datasets.enron import load_enron
from bayesring.datasets.hangzhou import load_hangzhou
from bayesring.datasets.indian_pines import load_indian_pines
from bayesring.datasets.kinship import load_kinship
from bayesring.datasets.nyc import load_nyc
from bayesring.datasets.server_room import load_server_room
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
    "load_birmingham",
    "load_dblp",
    "load_enron",
    "load_hangzhou",
    "load_indian_pines",
    "load_kinship",
    "load_nyc",
    "load_server_room",
    "load_ushcn",
    "make_cp",
    "make_ring",
    "random_fold",
    "random_split",
    "ushcn_table",
]
