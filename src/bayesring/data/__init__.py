"""Input and output: observations and their sources, labels, tables, containers, files."""
