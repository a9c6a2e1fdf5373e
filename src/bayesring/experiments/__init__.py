"""Experiments: one file each."""
