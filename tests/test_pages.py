"""The code on the pages runs, and commands on the pages exist with the options they are shown with.

Fits are short here; `make examples` runs the same code at full length and writes its output.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import warnings
from pathlib import Path

import pytest
import typer

from bayesring import TensorRing, TensorRingClassifier
from bayesring.command import cli

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FIRST = ("install.md", "tutorial.md")
"""Pages whose code is run by `make test`; that of the others is run by `make test-ci`."""
SHORT = {"warmup": 80, "draws": 10, "chains": 1}


def load_runner():
    spec = importlib.util.spec_from_file_location("pages", DOCS / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load_runner()
PAGES = runner.pages()
NAMES = [page.relative_to(DOCS).as_posix() for page in PAGES]
MARKED = [
    pytest.param(page, id=name, marks=[] if name in FIRST else pytest.mark.ci)
    for page, name in zip(PAGES, NAMES, strict=True)
]


@pytest.fixture
def short_fits(monkeypatch):
    """Settings that a page does not mention make short fits."""
    for cls in (TensorRing, TensorRingClassifier):
        defaults = cls.__init__.__kwdefaults__
        for name, value in SHORT.items():
            monkeypatch.setitem(defaults, name, value)


def test_pages_are_found():
    assert {"tutorial.md", "install.md", "how-to/ecology.md", "how-to/climate.md"} <= set(NAMES)
    assert len(NAMES) >= 8


@pytest.mark.parametrize("page", MARKED)
def test_the_code_of_a_page_runs(page, short_fits, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Labels that the fit did not know")
        printed = list(runner.run(text, page.name))
    shown = [block[2] for block in runner.CODE.finditer(text)]
    plt.close("all")
    for own, told in zip(printed, shown, strict=True):
        assert bool(own.strip()) == bool((told or "").strip()), "run `make examples`"


def test_code_that_fails_is_noticed():
    with pytest.raises(ZeroDivisionError):
        list(runner.run("```python\n1 / 0\n```", "page"))


def test_output_is_put_below_its_code(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "a\n\n```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\nold\n```\nb\n"
    )
    runner.refresh(page)
    after = "a\n\n```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\nb\n"
    assert page.read_text() == after


TEXTS = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
COMMANDS = typer.main.get_command(cli.app).commands


def shown_commands():
    """Commands in indented blocks, with the page that shows them."""
    for page in TEXTS:
        for line in re.findall(r"^ {4}(bayesring .*)$", page.read_text("utf-8"), re.MULTILINE):
            yield page.name, line


@pytest.mark.parametrize(("page", "line"), list(shown_commands()))
def test_a_command_on_a_page_exists(page, line):
    name, *words = shlex.split(line.replace("[", "").replace("]", ""), comments=True)[1:]
    if name.startswith("--") or name == "COMMAND":
        return
    assert name in COMMANDS, f"{page}: {line}"
    known = {option for each in COMMANDS[name].params for option in each.opts} | {"--help"}
    for word in words:
        assert not word.startswith("-") or word == "-" or word in known, f"{page}: {word}"
