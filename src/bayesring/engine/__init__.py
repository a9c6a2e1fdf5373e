"""Execution of work on blocks of observations: everything that runs kernels uses an engine."""
