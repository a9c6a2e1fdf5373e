"""SIGTERM during a fit, which ends it as Ctrl-C does, and interrupts of compiled code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Meanwhile, SIGTERM raises SystemExit, so that what has been found so far can be kept.

    Without it, the process would be gone at once. A handler that the program has set stays, as does
    what only the main thread may change.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    try:
        signal.signal(signal.SIGTERM, _end)
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _end:  # nobody has set another one meanwhile
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def told_as_such() -> Iterator[None]:
    """An interrupt during a call of compiled code in the main thread, raised as what it is.

    Numba runs some Python when it hands a Generator over; what is raised there comes out as the
    cause of a SystemError.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt | SystemExit):
            cause = cause.__cause__ or cause.__context__
        raise cause or error from None


def _end(number: int, frame: FrameType | None) -> None:
    """As a shell reports it: exit code 143."""
    raise SystemExit(128 + number)
