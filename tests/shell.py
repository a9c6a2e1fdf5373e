"""Commands run inside a test, and a small table for them."""

from __future__ import annotations

import csv
import io
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesring.command import cli, options

QUICK = ["--rank", "2", "--warmup", "8", "--draws", "6", "--chains", "1", "--quiet"]
KEYS = ["--modes", "place,day,number", "--value", "t"]


def small_table():
    """A CSV text of 4 x 5 x 3 cells, some without a value."""
    rng = np.random.default_rng(1)
    rows = ["place,day,number,t"]
    for place in ("Aix", "Bonn", "Cork", '"Delft, NL"'):
        for day in range(1, 6):
            for number in ("01", "02", "10"):
                value = "" if rng.random() < 0.3 else f"{rng.normal(10, 2):.3f}"
                rows.append(f"{place},2020-02-{day:02},{number},{value}")
    return "\n".join(rows) + "\n"


def run(*arguments, **options):
    return CliRunner().invoke(cli.app, [str(each) for each in arguments], **options)


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content)))


def call_main(monkeypatch, *arguments):
    """Run the entry point itself; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["bayesring", *map(str, arguments)])
    monkeypatch.setattr(options, "show_tracebacks", False)
    with pytest.raises(SystemExit) as ending:
        cli.main()
    return ending.value.code
