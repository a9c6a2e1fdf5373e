"""How a command ends: errors become one sentence, and everything has its exit code."""

from __future__ import annotations

import io
import signal
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from bayesring.command import options
from bayesring.command.origin import recorded
from bayesring.command.screen import show_error

UNBELIEVABLE, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes; the last as in shells."""
EXPECTED = (ValueError, TypeError, OSError, ImportError, ArithmeticError, IndexError)
"""Errors whose text is meant for users."""
go_on = ""
"""How to resume, said after an interrupt."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM; not a KeyboardInterrupt, because typer handles that itself."""


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Convert interrupts so that `run` can report them."""

    @wraps(command)
    def run(*arguments: Any, **named: Any) -> None:
        try:
            with recorded(command, named):
                command(*arguments, **named)
        except KeyboardInterrupt as interrupt:
            raise Interrupted from interrupt

    return run


def run(app: typer.Typer) -> None:
    """Run a command and exit."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a label
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        kinds = {each.__name__ for each in type(error).__mro__}  # click may be part of typer
        if "NoArgsIsHelpError" in kinds:
            sys.exit(WRONG)  # the help has been shown
        if options.show_tracebacks:
            traceback.print_exc()
        stopped = isinstance(error, KeyboardInterrupt | Interrupted | typer.Abort)
        code = INTERRUPTED if stopped else WRONG
        show_error(_sentence(error, kinds), code, "--json" in sys.argv[1:])
    sys.exit(code if isinstance(code, int) else 0)


def _sentence(error: Any, kinds: set[str]) -> str:
    """What to say about an error."""
    if isinstance(error, KeyboardInterrupt | Interrupted | typer.Abort):
        return f"interrupted; no result was written.{go_on}"
    if "ClickException" in kinds:
        sentence = _on_one_line(error.format_message()).rstrip(".")
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "bayesring"
        mark = "" if sentence.endswith("?") else ";"
        return f"{sentence}{mark} {command} --help shows what there is."
    if isinstance(error, MemoryError):
        return "there is not enough memory; fewer draws or a smaller rank need less."
    if isinstance(error, EXPECTED):
        return _on_one_line(error)
    return f"{error!r}, which is a fault of bayesring; --debug shows where."


def _on_one_line(message: object) -> str:
    return " ".join(str(message).split())
