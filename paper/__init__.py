"""The evaluation: the paper's tables and figures reproduced, baselines, benchmarks.

Not part of the installed package. Run from the root of the repository; see `make help`.
"""
