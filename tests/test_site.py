"""The documentation site builds without a warning, links within it lead somewhere, and it needs
nothing from elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.ci
PAGES = [
    "index.html",
    "install.html",
    "tutorial.html",
    "explanation.html",
    "glossary.html",
    "changelog.html",
    "command-line.html",
    "reliability.html",
    "reproduction.html",
    "arena.html",
    "speed.html",
    "accuracy.html",
    "how-to/ecology.html",
    "how-to/climate.html",
    "how-to/sensors.html",
    "how-to/screens.html",
    "how-to/links.html",
    "how-to/images.html",
    "api/estimator.html",
    "api/functions.html",
    "api/likelihoods.html",
    "api/priors.html",
    "api/datasets.html",
]


class Page(HTMLParser):
    """Links, anchors and what is loaded, of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon", "preconnect"):
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install --group docs")
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    pytest.importorskip("mkdocstrings_handlers.python", reason="mkdocstrings is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return {path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")} | {
        "": folder
    }


def pages_of(site):
    return {name: page for name, page in site.items() if name and name != "404.html"}


def test_every_page_is_there(site):
    assert set(PAGES) <= set(site)


def test_links_within_the_site_lead_somewhere(site):
    folder, lost = site[""], []
    for name, page in pages_of(site).items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
            target = path.resolve()
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                lost.append(f"{name}: {link}")
            elif parts.fragment and target.suffix == ".html":
                anchors = site[target.relative_to(folder.resolve()).as_posix()].anchors
                if unquote(parts.fragment) not in anchors:
                    lost.append(f"{name}: {link}")
    assert not lost, "\n".join(sorted(set(lost)))


def test_nothing_is_loaded_from_elsewhere(site):
    for name, page in pages_of(site).items():
        for address in page.loaded:
            assert not urlsplit(address).netloc, f"{name} loads {address}"


def test_the_reference_describes_parameters(site):
    text = (site[""] / "api" / "estimator.html").read_text("utf-8")
    assert "one seed gives one result, bit for bit" in text
    assert "predict_interval" in text
    assert "fit_observations" not in text
