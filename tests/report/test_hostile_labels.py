"""Labels that would like to be markup or a program: pages and notebooks show them as text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from bayesring import TensorRing
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations
from bayesring.report.page import render
from tests.report.conftest import QUICK, SHAPE, make_held_out, some_cells, truth

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "</script><script>alert(1)</script>",
    "{{7*7}}${7*7}$title",
    "\u2028\u2029\u202egnp.exe\u202c",
    "' onmouseover='alert(1)",
    "</title></style><!-- ]]> &lt;b&gt; &#60;i&#62;",
    "x" * 5000,
    "<svg/onload=alert(1)>\x1b[31m\x07\x01\x7f",
    "\\u003cscript\\u003e\\",
    "<iframe srcdoc='<p>'>",
]
NAMES = ("<b>mode</b>", '"onclick="alert(1)', "</script>\u2028${x}")


def ring_of(names, labels, value):
    rng = np.random.default_rng(1)
    coords = some_cells(rng, 200)
    levels = tuple(np.array([labels(place) for place in range(size)]) for size in SHAPE)
    ring = TensorRing(2, **QUICK)
    values = truth(coords) + 0.2 * rng.standard_normal(200)
    ring.fit_observations(Observations(coords, values, SHAPE), Labels(names, levels, value))
    ring.held_out_ = make_held_out(rng, False)
    return ring


@pytest.fixture(scope="module")
def hostile():
    return ring_of(NAMES, HOSTILE.__getitem__, "<script>value</script>")


@pytest.fixture(scope="module")
def harmless():
    return ring_of(("a", "b", "c"), lambda place: f"label {place}", "value")


class Elements(HTMLParser):
    """Every element of a page with the names of its attributes; and what its scripts hold."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.scripts, self.inside, self.words = set(), [], None, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.add((tag, *sorted(name for name, _ in attrs)))
        self.found |= {(tag, name, text) for name, text in attrs if name in ("href", "src")}
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.inside = None

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)

    def handle_comment(self, data):
        self.found.add(("comment", data))


def without_pictures(found):
    """Pictures are encoded numbers, and so differ between pages."""
    return {each for each in found if "data:image" not in str(each)}


def test_a_page_has_no_other_elements(hostile, harmless):
    pages = [Elements(render(ring._fitted(), lambda _: None)) for ring in (hostile, harmless)]
    assert without_pictures(pages[0].found) == without_pictures(pages[1].found)
    assert not [each for each in pages[0].found if any(str(a).startswith("on") for a in each[1:])]
    assert len(pages[0].scripts) == len(pages[1].scripts)
    assert pages[0].scripts[1:] == pages[1].scripts[1:]
    words = "".join(pages[0].words)
    assert HOSTILE[1][:20] in words, "labels are there, as text"
    for name in NAMES:
        assert name in words


def test_numbers_for_the_script_survive(hostile):
    scripts = Elements(render(hostile._fitted(), lambda _: None)).scripts
    data = json.loads(next(each for each in scripts if each.lstrip().startswith("{")))
    assert data["names"] == list(NAMES)
    assert data["value"] == "<script>value</script>"
    assert data["labels"] == [HOSTILE[:size] for size in SHAPE]


def test_a_page_cannot_be_ended_early(hostile):
    """In the raw text too, whatever a parser makes of it."""
    text = render(hostile._fitted(), lambda _: None)
    assert text.count("</html>") == 1
    assert len(re.findall("(?i)<script", text)) == len(re.findall("(?i)</script", text)) == 2
    assert not re.search("(?i)<img|<iframe|<svg/", text)
    assert "\u2028" not in text[text.index("<script") : text.index("</script")]


def test_notebook_views(hostile, harmless):
    views = [Elements(ring._repr_html_()) for ring in (hostile, harmless)]
    assert without_pictures(views[0].found) == without_pictures(views[1].found)


def test_the_script_makes_no_markup_of_labels():
    """What the page's script writes as markup goes through its own escape first."""
    from importlib.resources import files

    script = files("bayesring.report").joinpath("page.js").read_text("utf-8")
    assert not re.search(
        r"insertAdjacentHTML|outerHTML|document\.write|eval\(|new Function", script
    )
    in_markup = re.findall(r"<[^`]*?\$\{((?:\w+\()?)data\.(?:labels|names|value)\b", script)
    assert in_markup
    assert set(in_markup) == {"escapeText(", "shortText("}
    short = re.search(r"function shortText\(text\) \{(.*?)\n\}", script, re.DOTALL)[1]
    assert "return escapeText(text);" in short
    assert re.findall(r"\$\{(.*?)\(", short) == ["escapeText", "escapeText"]
