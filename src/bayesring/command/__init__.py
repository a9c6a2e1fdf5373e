"""The command line: files in, files out."""
