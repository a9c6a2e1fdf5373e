"""What is read and written: observations and their sources, labels, tables, containers, files."""
