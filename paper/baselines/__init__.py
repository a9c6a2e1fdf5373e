"""The methods that `TensorRing` is compared with, under one contract; see docs/baselines.md."""

from paper.baselines.baseline import TooLarge
from paper.baselines.bayesian_cp import BayesianCP
from paper.baselines.ring_vi import BayesianRingVI
from paper.baselines.smurff import Smurff
from paper.baselines.tensor_train import TensorTrainWOPT

__all__ = ["BayesianCP", "BayesianRingVI", "Smurff", "TensorTrainWOPT", "TooLarge"]
