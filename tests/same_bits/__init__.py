"""Fits whose results may not change by a bit unless a change of numbers is meant."""
