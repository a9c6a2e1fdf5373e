"""Interrupts while Numba compiles or loads a kernel.

Python may run the handler of a signal inside a callback of LLVM, where what it raises is lost and
leaves a half-made kernel behind. So signals wait until LLVM is at rest: until the next pass of the
compiler, or the end. Threads whose work was cancelled meanwhile stop at their next pass, too.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from numba.core import event

HELD = (signal.SIGINT, signal.SIGTERM)


class _Cancelled(threading.local):
    """What the work of a thread calls from time to time; it raises if the work was cancelled."""

    check: Callable[[], None] | None = None


_cancelled = _Cancelled()


@contextmanager
def cancelled_by(check: Callable[[], None]) -> Iterator[None]:
    """Meanwhile, compiling in this thread stops if `check` raises."""
    before, _cancelled.check = _cancelled.check, check
    try:
        yield
    finally:
        _cancelled.check = before


class _Compiling(event.Listener):
    """Holds signals of the main thread back while it has the lock of the compiler."""

    def __init__(self) -> None:
        self._depth = 0
        self._handlers: dict[int, Any] = {}
        self._arrived: list[int] = []

    def on_start(self, told: event.Event) -> None:
        """Of the lock, which is about to be taken, or of a pass."""
        main = threading.current_thread() is threading.main_thread()
        if told.kind == "numba:run_pass":
            if main:
                self._hand_over()
            if _cancelled.check is not None:
                _cancelled.check()
        elif main:
            if self._depth == 0:
                self._hold()
            self._depth += 1

    def on_end(self, told: event.Event) -> None:
        """Of the lock, which has been released, or of a pass."""
        main = threading.current_thread() is threading.main_thread()
        if told.kind == "numba:compiler_lock" and main and self._depth:
            self._depth -= 1
            if self._depth == 0:
                self._hand_over(again=False)

    def _hold(self) -> None:
        """Take note of signals in place of handling them."""
        try:
            for number in HELD:
                before = signal.getsignal(number)
                if callable(before):
                    self._handlers[number] = before
                    signal.signal(number, self._note)
        except BaseException:  # a signal came between the two
            self._give_back()
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._arrived.append(number)

    def _give_back(self) -> None:
        for number, before in self._handlers.items():
            if signal.getsignal(number) == self._note:  # nobody has set another one meanwhile
                signal.signal(number, before)
        self._handlers = {}

    def _hand_over(self, again: bool = True) -> None:
        """Let signals that have arrived do what they would have done; then hold back `again`."""
        if again and not self._arrived:
            return
        self._give_back()
        arrived, self._arrived = self._arrived, []
        for number in arrived[:1]:
            signal.raise_signal(number)
        if again:
            self._hold()


_listener = _Compiling()
for kind in ("numba:compiler_lock", "numba:run_pass"):
    event.register(kind, _listener)  # type: ignore[no-untyped-call]
