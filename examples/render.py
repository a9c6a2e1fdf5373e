"""Run the examples and write each, with its text, output and pictures, to docs/examples.

An example is a plain script. Its docstring becomes the title and introduction, blocks of comments
that begin with ``# %%`` become text, and everything else becomes code. The output of a block
appears below it, and every figure it leaves open becomes a picture.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
MARK = "# %%"


def render(script: Path, folder: Path) -> Path:
    """Run one example; write its page and pictures into `folder`."""
    docstring, *blocks = split(script.read_text())
    title, _, introduction = docstring.partition("\n")
    page = [f"# {title.rstrip('.')}", introduction.strip()]
    names: dict[str, object] = {"__name__": "__main__"}
    n_pictures = 0
    folder.mkdir(parents=True, exist_ok=True)
    plt.close("all")  # figures left open by other code do not belong to this example
    for text, code in blocks:
        page.append(text)
        if not code:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, script.name, "exec"), names)
        page.append(f"```python\n{code}\n```")
        if printed.getvalue():
            page.append(f"```text\n{printed.getvalue().rstrip()}\n```")
        for number in plt.get_fignums():
            n_pictures += 1
            picture = f"{script.stem}-{n_pictures}.png"
            figure = plt.figure(number)
            figure.savefig(folder / picture, dpi=80)
            page.append(f"![{figure.get_suptitle() or picture}]({picture})")
        plt.close("all")
    page.append(f"*Written by `make examples` from `examples/{script.name}`.*")
    path = folder / f"{script.stem}.md"
    path.write_text("\n\n".join(part for part in page if part) + "\n")
    return path


def split(source: str) -> list:
    """The docstring, then pairs of text and code."""
    _, docstring, body = source.split('"""', 2)
    first, *parts = f"\n{body}".split(f"\n{MARK}")
    blocks = [("", first.strip())]
    for part in parts:
        lines = part.splitlines()
        n_text = 1
        while n_text < len(lines) and lines[n_text].startswith("#"):
            n_text += 1
        head, *more = [
            lines[0].strip(),
            *(line.removeprefix("#").strip() for line in lines[1:n_text]),
        ]
        text = "\n".join([head, *([""] if head.startswith("#") else []), *more]).strip()
        blocks.append((text, "\n".join(lines[n_text:]).strip()))
    return [docstring, *(block for block in blocks if any(block))]


if __name__ == "__main__":
    chosen = [HERE / name for name in sys.argv[1:]] or sorted(HERE.glob("[a-z]*.py"))
    for example in chosen:
        if example != Path(__file__):
            print(render(example, HERE.parent / "docs" / "examples"))
