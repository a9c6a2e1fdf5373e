"""Speed and memory, measured and kept: `bayesring bench`."""
