"""The methods that `TensorRing` is compared with, behind one contract; see docs/baselines.md."""

from bayesring.baselines.base import TooLarge
from bayesring.baselines.bayesian_cp import BayesianCP
from bayesring.baselines.ring_vi import BayesianRingVI
from bayesring.baselines.smurff import Smurff
from bayesring.baselines.tensor_train import TensorTrainWOPT

__all__ = ["BayesianCP", "BayesianRingVI", "Smurff", "TensorTrainWOPT", "TooLarge"]
