"""What the documents say about the repository is true: links, paths, the walk of an observation."""

from __future__ import annotations

import re
import sys
import threading
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import bayesring
from bayesring import TensorRing

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bayesring"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
COMPILED = ("kernels/slices.py", "draw_slices")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            assert (page.parent / target.split("#")[0]).exists(), target


def test_paths_on_the_map_exist():
    for path in re.findall(r"`([\w/]+(?:\.py|/))`", ARCHITECTURE):
        assert (PACKAGE / path).exists() or (ROOT / path).exists(), path


def test_paths_in_contributing_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for path in re.findall(r"`((?:[\w]+/)+(?:[\w]+\.\w+)?)`", text):
        assert (PACKAGE / path).exists() or (ROOT / path).exists(), path


def test_targets_in_contributing_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for target in re.findall(r"(?:`|^ {4})make ([a-z-]+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_picture_of_the_map_names_every_room():
    picture = ElementTree.parse(ROOT / "docs" / "images" / "architecture.svg")
    words = " ".join(text for text in picture.getroot().itertext())
    rooms = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert len(rooms) >= 10
    for room in [*rooms, "paper"]:
        assert f"{room}/" in words, room


def test_the_walk_of_an_observation():
    """Every step is taken, for the first time in the order that is told."""
    section = re.search(r"walk: begin -->(.*)<!-- walk: end", ARCHITECTURE, re.DOTALL)
    told = re.findall(r"^\d+\. `([\w/]+\.py)`, `(\w+)`:", section[1], re.MULTILINE)
    assert len(told) == len(re.findall(r"^\d+\. ", section[1], re.MULTILINE)) <= 15
    assert COMPILED in told
    python = [step for step in told if step != COMPILED]  # compiled code leaves no trace
    taken = steps_taken()
    assert set(python) <= set(taken)
    assert python == sorted(python, key=taken.index)


def steps_taken():
    """Functions of the package in the order in which a fit, then a prediction, calls them first."""
    home = Path(bayesring.__file__).parent
    found: dict[tuple[str, str], None] = {}

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(home)):
            path = Path(code.co_filename).relative_to(home)
            found.setdefault((path.as_posix(), code.co_name))

    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, n, 600) for n in (6, 5, 4)], axis=1)
    y = rng.standard_normal(600)
    ring = TensorRing(1, warmup=100, draws=2, chains=1, n_jobs=1, random_state=0, progress=False)
    ring.fit(X, y).predict_interval(X)  # compiles, or every call of the compiler would be noted
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        ring.fit(X, y)
        ring.predict_interval(X)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def test_oldest_releases_are_the_lower_bounds():
    """`.ci/oldest.txt` pins every dependency of the wheel and its extras to its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(each for extra in extras for each in extra)]
    bounds = {}
    for requirement in asked:
        if not requirement.startswith("bayesring["):
            name, lowest = requirement.split(">=")
            bounds[name.split("[")[0]] = lowest
    lines = (ROOT / ".ci" / "oldest.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    for name, lowest in bounds.items():
        pin = pinned[name].split(".")
        wanted = lowest.split(".")
        assert pin[: len(wanted)] == wanted, name
        assert set(pin[len(wanted) :]) <= {"0"}, name


def test_the_page_on_installing_lists_every_extra_and_what_it_installs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert rows.keys() == project["optional-dependencies"].keys()
    for extra, packages in project["optional-dependencies"].items():
        installs = rows[extra].rpartition(" | ")[2]
        named = set(re.findall(r"\w+", installs)) - {"and"}
        found = {re.match(r"\w+", each)[0] for each in packages}
        if found == {"bayesring"}:
            found = set(re.search(r"\[(.*)\]", packages[0])[1].split(","))
        assert named == found or extra == "all", extra
    first = re.search(r"pip install '\.\[(.*?)\]'", (ROOT / "README.md").read_text("utf-8"))[1]
    assert set(first.split(",")) == {"files", "demo"}  # what the commands below it need
