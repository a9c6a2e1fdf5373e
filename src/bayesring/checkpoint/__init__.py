"""Checkpoints: the state of a fit on disk, so that a killed fit can resume."""

from bayesring.checkpoint.keeping import NOWHERE, Checkpoint

__all__ = ["NOWHERE", "Checkpoint"]
