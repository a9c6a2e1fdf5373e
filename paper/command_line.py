"""Error handling of the commands in this package: one sentence and exit code 2."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

EXPECTED = (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError)


def call(app: typer.Typer) -> None:
    """Run a command; errors that a user can fix are shown without a traceback."""
    try:
        app()
    except EXPECTED as error:
        errors = Console(stderr=True, soft_wrap=True)
        errors.print(f"error: {error}", markup=False, highlight=False)
        sys.exit(2)
