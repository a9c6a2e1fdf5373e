"""A planted bug: one replacement in one file of the package, and the tests that must notice it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "bayesring"


class DoesNotApply(Exception):
    """The text that a mutant replaces is not there, or not only once."""


class Mutant(NamedTuple):
    """A bug that someone could make, and nothing but the tests would tell."""

    name: str
    """What is wrong, in words; unique."""
    file: str
    """Path inside `src/bayesring`."""
    old: str
    """What the file holds, exactly once; may go over lines."""
    new: str
    tests: tuple[str, ...]
    """Nodes for pytest, of which at least one must fail; quick ones."""
    hangs: bool = False
    """Whether it loops for ever: then its tests may also run out of time, and have noticed."""

    @property
    def is_kernel(self) -> bool:
        """Whether compiled code may hold it, so that kernels kept on disk must not be used."""
        return self.file.startswith("kernels/")

    def applied(self, text: str) -> str:
        """The text of the file with the bug in it."""
        found = text.count(self.old)
        if found != 1:
            raise DoesNotApply(
                f"mutant {self.name!r} does not apply: {self.file} has its old text {found} times, "
                "but it must be there once."
            )
        return text.replace(self.old, self.new)

    def plant(self, package: Path) -> None:
        """Put the bug into a copy of the package, whose other files may be hard links."""
        path = package / self.file
        text = self.applied(path.read_text("utf-8"))
        path.unlink()
        path.write_text(text, "utf-8")
        compiled = path.parent / "__pycache__"
        for left in compiled.glob(f"{path.stem}.*.pyc"):
            left.unlink()
        if self.is_kernel:
            shutil.rmtree(compiled, ignore_errors=True)
