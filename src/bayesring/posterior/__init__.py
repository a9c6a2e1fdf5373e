"""What a fit leaves behind: draws, predictions, diagnostics, and the file they are kept in."""
