"""Run the Python code of the pages, and write what it prints below it: `make examples`.

The blocks of a page share their names and run in a folder of their own. A block of text right after
a block of code is its output. Figures that the code leaves open become those pictures of the page
that are named after it, `images/pages/<page>-1.png` and so on. Indented code is not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
PICTURES = HERE / "images" / "pages"
NOT_RUN = {
    "baselines.md": "needs peers, and an X of yours",
    "scaling.md": "needs a cluster; tests/cluster runs the same calls on one",
}
"""Pages whose code is not run, and why."""
CODE = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def pages() -> list[Path]:
    """Every page with code that can be run; examples have a renderer of their own."""
    found = [path for path in HERE.rglob("*.md") if path.parent.name != "examples"]
    return sorted(
        path
        for path in found
        if path.name not in NOT_RUN and CODE.search(path.read_text(encoding="utf-8"))
    )


def run(text: str, name: str) -> Iterator[str]:
    """Run the blocks of a page in order; yield what each prints."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in CODE.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], name, "exec"), names)
        yield printed.getvalue()


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """Work in an empty folder, which is removed at the end."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def refresh(page: Path) -> None:
    """Run a page, and put its output and pictures where they belong."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    text = page.read_text(encoding="utf-8")
    with elsewhere():
        outputs = run(text, page.name)
        text = CODE.sub(lambda block: shown(block[1], next(outputs)), text)
    for place, number in enumerate(plt.get_fignums(), 1):
        picture = PICTURES / f"{page.stem}-{place}.png"
        if picture.name in text:
            PICTURES.mkdir(parents=True, exist_ok=True)
            plt.figure(number).savefig(picture, dpi=80)
    page.write_text(text, encoding="utf-8")


def shown(code: str, printed: str) -> str:
    """A block of code with its output, if it has any."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    below = "\n\n```text\n" + "\n".join(lines) + "\n```" if lines else ""
    return f"```python\n{code}```{below}"


if __name__ == "__main__":
    for chosen in map(Path, sys.argv[1:]) if sys.argv[1:] else pages():
        refresh(chosen.resolve())
        print(chosen)
