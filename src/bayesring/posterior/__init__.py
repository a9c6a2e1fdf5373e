"""What a fit leaves behind: draws, predictions, diagnostics, and the file they are kept in."""

from bayesring.posterior.posterior import Posterior, Prediction

__all__ = ["Posterior", "Prediction"]
