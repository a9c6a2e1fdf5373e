"""Parquet data sets of any length as streams of shuffled observations, in bounded memory."""

from bayesring.data.parquet.rows import ParquetRows, Survey
from bayesring.data.parquet.shuffling import Coding
from bayesring.data.parquet.sources import FileRows, sources_of

__all__ = ["Coding", "FileRows", "ParquetRows", "Survey", "sources_of"]
