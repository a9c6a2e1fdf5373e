"""Speed and memory, measured and kept: `make bench`."""
