"""Checkpoints: where a fit stands, on disk, so that a killed one can go on from there."""

from bayesring.checkpoint.keeping import NOWHERE, Checkpoint

__all__ = ["NOWHERE", "Checkpoint"]
