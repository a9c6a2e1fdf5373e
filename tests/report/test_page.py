"""The page: complete, well-formed, needing nothing else, the same every time."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesring import TensorRing, load
from bayesring.command import cli
from bayesring.likelihoods import Gaussian
from bayesring.posterior.store import from_plain, storable_classes
from bayesring.report import again, charts, contents, explorer, figures, markup, sections, svg
from bayesring.report.cells import Likeness
from bayesring.report.colours import CORRELATIONS, paint
from bayesring.report.page import render
from bayesring.report.summary import Score
from bayesring.settings import resolve
from tests.report.conftest import LABELS, QUICK, SHAPE

SECTIONS = ("says", "trust", "data", "found", "again")


@pytest.fixture(scope="module")
def pages(real_ring, binary_ring):
    return {
        name: render(ring._fitted(), lambda _: None)
        for name, ring in (("real", real_ring), ("binary", binary_ring))
    }


@pytest.fixture(params=["real", "binary"])
def text(request, pages):
    return pages[request.param]


def parsed(text):
    """The page as a tree; code and styles, which are no markup, left out."""
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return ElementTree.fromstring(markup.removeprefix("<!DOCTYPE html>\n"))


def words(tree):
    return " ".join(" ".join(tree.itertext()).split())


def test_it_is_well_formed_and_has_all_sections(text):
    tree = parsed(text)
    assert [each.get("id") for each in tree.iter("section")] == list(SECTIONS)
    said = words(tree)
    for title in (
        "The data",
        "What it says",
        "Can it be trusted?",
        "How it was fitted",
        "How to reproduce it",
        "Largest surprises",
        "Most uncertain cells",
        "are similar",
    ):
        assert title in said


def test_it_needs_nothing_else(text):
    assert "http:" not in text
    assert "https:" not in text
    addresses = re.findall(r"""(?:src|href)="([^"]*)\"""", text)
    assert addresses
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_every_picture_has_words(text):
    pictures = [each for each in parsed(text).iter("svg") if each.get("aria-hidden") is None]
    assert len(pictures) > 10
    for picture in pictures:
        assert picture.get("role") == "img"
        assert len(picture.find("title").text) > 20


def test_labels_are_text_and_never_markup(pages):
    assert "<b>&fog" not in pages["real"].replace(r"\u003cb>&fog", "")
    assert "<b>&fog" in words(parsed(pages["real"]))
    assert "2001-09-01" in pages["real"]
    assert "index by kind × place × month" in pages["real"]


def test_every_piece_of_markup_escapes_what_it_is_given():
    evil = '<img src="x">&'
    pieces = [
        markup.table([evil], [[markup.Cell(evil)], [markup.Cell(evil, 1.0)]], evil),
        markup.facts({evil: evil}),
        markup.listing([evil], "notes"),
        markup.paragraph(evil),
        markup.paragraph(evil, "note"),
        markup.figure(evil, "", evil),
        markup.section("name", evil),
    ]
    for piece, times in zip(pieces, (4, 2, 1, 1, 1, 2, 1), strict=True):
        assert "<img" not in piece
        assert piece.count("&lt;img src=&quot;x&quot;&gt;&amp;") == times


def test_names_of_modes_and_values_are_text_and_never_markup(real_ring):
    evil = "<i>&amp"
    labels = LABELS._replace(names=(evil, "place", "month"), value=f"{evil}!")
    page = render(real_ring._fitted()._replace(labels=labels), lambda _: None)
    assert "<i>" not in page.replace(r"\u003ci>", "")
    said = words(parsed(page))
    assert evil in said
    assert f"{evil}!" in said


def test_infinite_settings_can_be_run_again():
    X = np.argwhere(np.ones((3, 3), dtype=bool))
    likelihood = Gaussian(max_precision=np.inf)
    ring = TensorRing(1, likelihood=likelihood, **QUICK).fit(X, np.arange(9.0))
    names: dict = {}
    exec(again.code_again(ring.description_), names)
    assert names["ring"].likelihood == likelihood


def test_code_is_text_and_never_markup(real_ring):
    description = dict(real_ring.description_)
    description["parameters"] = description["parameters"] | {"dtype": "<i>&"}
    page = render(real_ring._fitted()._replace(description=description), lambda _: None)
    assert "dtype='<i>&'" in words(parsed(page))


def test_binary_pages_speak_of_probabilities(pages):
    assert "Are the probabilities calibrated?" in pages["binary"]
    assert "probability of the observed value" in pages["binary"]
    assert "Are the intervals calibrated?" in pages["real"]
    assert "error bars off" in pages["real"]


def test_without_held_out_values_it_says_so(real_ring):
    page = render(real_ring._fitted()._replace(held_out=None), lambda _: None)
    assert page.count("Nothing was held out") == 2
    assert "was not measured" in page
    assert "Are the intervals calibrated" not in page


def test_without_observations_it_says_so(real_ring):
    page = render(real_ring._fitted()._replace(observed=None), lambda _: None)
    assert "The model file holds no observations" in page
    assert "Surprises are not listed" in page


def test_numbers_of_the_slices_come_back(real_ring):
    """What the script decodes is the mean to within half a step, and where values are missing."""
    fitted = real_ring._fitted()
    part = contents.gather(fitted, lambda _: None).part
    data = json.loads(json.dumps(explorer.data(fitted, part)))
    low, high = data["values"]["range"]
    for name, numbers in (("mean", part.mean), ("observed", part.observed)):
        codes = np.frombuffer(b64decode(data[name]), "<u2").reshape(SHAPE)
        np.testing.assert_array_equal(codes == 0, np.isnan(numbers))
        decoded = low + (codes - 1.0) / 65534 * (high - low)
        known = codes > 0
        np.testing.assert_allclose(decoded[known], numbers[known], atol=(high - low) / 65534)
    assert data["labels"][0] == LABELS.levels[0].tolist()


def test_whole_numbers_are_shown_as_such():
    rng = np.random.default_rng(0)
    coords = np.argwhere(rng.random((6, 5, 8)) < 0.7)
    counts = rng.poisson(np.exp(0.3 * coords[:, 0]))
    short = {"warmup": 20, "draws": 10, "chains": 1, "random_state": 0, "progress": False}
    ring = TensorRing(1, likelihood="negative-binomial", **short).fit(coords, counts)
    fitted = ring._fitted()
    gathered = contents.gather(fitted, lambda _: None)
    data = explorer.data(fitted, gathered.part)
    assert data["whole"]
    assert data["least"] == 0
    page = render(fitted, lambda _: None)
    row = re.search(r"Largest surprises.*?<tbody>(.*?)</tr>", page, re.DOTALL)[1]
    shown = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
    cell = [np.flatnonzero(np.all(coords == [int(each) for each in shown[:3]], axis=1))[0]]
    assert shown[3] == str(counts[cell[0]])
    real = explorer.data(fitted, gathered.part._replace(observed=gathered.part.observed + 0.5))
    assert not real["whole"]


def test_rows_name_the_place_of_their_cell(real_ring):
    levels = tuple(np.array(each) for each in ([0, 3], [1, 5, 11], [2]))
    part = contents.gather(real_ring._fitted(), lambda _: None).part._replace(levels=levels)
    assert explorer.place_in(part, np.array([3, 11, 2])) == "1,2,0"
    assert explorer.place_in(part, np.array([3, 10, 2])) == ""


def test_steps_are_announced(real_ring):
    steps = []
    contents.gather(real_ring._fitted(), steps.append)
    assert len(steps) == contents.n_steps(real_ring._fitted())


def test_cautions_name_empty_levels_and_bad_coverage(real_ring):
    fitted = real_ring._fitted()
    found = contents.gather(fitted, lambda _: None)
    shares = (np.array([0.0, 0.5]), *found.density.by_mode[1:])
    off = found.calibration._replace(observed=np.full(20, 0.7))
    said = " ".join(
        sections.cautions(
            fitted,
            found._replace(
                density=found.density._replace(by_mode=shares),
                calibration=off,
                scores=[Score("mean absolute error", 2.0, 1.5), Score("accuracy", 0.9, 0.5, True)],
            ),
        )
    )
    assert "the mean absolute error is 2.00, worse than 1.50 from predicting the average" in said
    assert "accuracy" not in said
    assert "1 of 2 levels of kind have no observation" in said
    assert "90 % intervals covered 70 % of the held-out values: they are too narrow" in said


def test_the_code_shown_makes_the_same_estimator(ring):
    names: dict = {}
    exec(again.code_again(ring.description_), names)
    made = names["ring"]
    ours, theirs = ring.get_params(), made.get_params()
    for name in ("warmup", "draws", "chains", "random_state", "max_memory", "update", "shape"):
        assert ours[name] == theirs[name]
    never_matter = {"n_jobs": 1, "progress": False, "order": None}
    used = from_plain(ring.description_["prior"], storable_classes())  # with modes in order
    assert resolve(theirs | never_matter) == resolve(ours | never_matter | {"prior": used})


def test_the_command_writes_the_same_bytes_every_time(real_ring, tmp_path):
    real_ring.save(tmp_path / "model.ring")
    for name in ("one.html", "two.html"):
        command = ["report", str(tmp_path / "model.ring"), "-o", str(tmp_path / name)]
        result = CliRunner().invoke(cli.app, command)
        assert result.exit_code == 0, result.output
        assert "report" in result.output
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert load(tmp_path / "model.ring").report(tmp_path / "three.html").is_file()
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "three.html").read_bytes()
    assert len(list(tmp_path.iterdir())) == 4
    assert "Are the intervals calibrated?" in (tmp_path / "one.html").read_text()


def test_what_it_says_comes_first_and_machinery_last(text):
    places = [text.index(f'href="#{name}"') for name in SECTIONS]
    assert places == sorted(places)
    trust, found = text.index('<section id="trust"'), text.index('<section id="found"')
    assert trust < text.index("Error on 400 values held out") < found
    assert text.index("R-hat is below") > found


def test_cells_are_told_by_their_labels(pages):
    said = words(parsed(pages["real"]))
    assert re.search(r"entry at kind \S+, place \d+, month 2001-\d\d-01, the worst of", said)
    assert not re.search(r"entry \(\d", said)


def test_correlations_diverge_from_white():
    white, red, blue = paint(np.array([0.5, 1.0, 0.0]), CORRELATIONS).tolist()
    assert min(white) > 240
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    for map_ in (charts, figures):
        assert map_.CORRELATIONS == CORRELATIONS


def test_the_map_of_similarity_is_white_at_zero(real_ring):
    found = Likeness(np.arange(2), np.array([[1.0, 0.0], [0.0, 1.0]]))
    picture = charts.likeness_map(real_ring._fitted(), 0, found)
    expected = svg.png(paint(np.array([[1.0, 0.5], [0.5, 1.0]]), CORRELATIONS))
    assert expected in picture


def test_a_label_that_is_cut_can_be_read_in_full():
    long = "a label of thirty <letters> or so"
    for picture in (
        svg.heatmap(np.ones((1, 1)), "alt", CORRELATIONS, [long], [long], "rows", "columns"),
        svg.chart([svg.Line(np.arange(3), np.arange(3.0))], "alt", "x", "y", x_ticks=[(1, long)]),
    ):
        tree = ElementTree.fromstring(picture)
        cut = [each for each in tree.iter("text") if (each.text or "").endswith("…")]
        assert cut
        assert all(each.find("title").text == long for each in cut)


@pytest.mark.parametrize("length", [1, 4, 10, 16, 40])
@pytest.mark.parametrize("n", [2, 5, 60])
def test_labels_along_a_chart_do_not_overlap(length, n):
    labels = [f"{place:0{length}}"[-length:] for place in range(n)]
    uneven = np.linspace(0, 1, n) ** 3
    for ticks, ends in (
        (svg.label_ticks(labels), (-0.5, n - 0.5)),
        (svg.apart(list(zip(uneven, labels, strict=True)), 0.0, 1.0), (0.0, 1.0)),
    ):
        assert ticks
        room = (svg.WIDTH - svg.LEFT - svg.RIGHT) / (ends[1] - ends[0])
        places = [room * place for place, _ in ticks]
        width = svg.LETTER * min(length, svg.LABEL_LENGTH)
        assert all(after - before > width for before, after in pairwise(places))


def test_traces_that_are_cut_say_so():
    calm, wild = np.linspace(0, 1, 200), np.append(1e3, np.linspace(0, 1, 199))
    assert not charts.is_cut([calm], 0)
    assert charts.is_cut([calm, wild], 0)
    assert not charts.is_cut([calm, wild], 1)


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(0, 9, "neither"), (1, 9, "min"), (0, 8, "max"), (1, 8, "both")],
)
def test_scales_of_pictures_show_where_they_are_cut(low, high, ends):
    assert figures.extend(np.append(np.arange(10.0), np.nan), low, high) == ends


def test_the_page_tells_command_and_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{a},{b},{c},{a + b * c}" for a in range(4) for b in range(3) for c in range(3)]
    (tmp_path / "my data.csv").write_text("\n".join(["kind,place,day,value", *rows]))
    fit = ["fit", "my data.csv", "--modes", "kind,place,day", "--value", "value", "--rank", "1"]
    options = ["--warmup", "20", "--draws", "9", "--chains", "1", "--jobs", "1", "-q"]
    for model, other in (("one.ring", []), ("two.ring", ["--checkpoint", "run"])):
        result = CliRunner().invoke(cli.app, [*fit, *options, *other, "-o", model])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "one.ring").read_bytes() == (tmp_path / "two.ring").read_bytes()
    page = load("one.ring").report("page.html", progress=False).read_text()
    said = words(parsed(page))
    assert (
        "bayesring fit 'my data.csv' --modes kind,place,day --value value --rank 1 --chains 1 "
        "--draws 9 --warmup 20 -o model.ring"
    ) in said
    digest = hashlib.sha256((tmp_path / "my data.csv").read_bytes()).hexdigest()
    assert f"SHA-256 {digest}" in said
    assert "ring.fit(table, modes=['kind', 'place', 'day'], value='value')" in said


def test_a_model_made_in_python_has_no_command(real_ring):
    said = words(parsed(render(real_ring._fitted(), lambda _: None)))
    assert "From a shell" not in said
    assert "200 observations of index by kind, place, month, given in Python" in said


@pytest.mark.parametrize("shape", [(6, 7), (3, 4, 2, 5), (1, 5, 2)])
def test_every_order_has_a_page(shape, tmp_path):
    rng = np.random.default_rng(0)
    coords = np.stack([rng.integers(0, size, 60) for size in shape], axis=1)
    ring = TensorRing(1, shape=shape, **QUICK).fit(coords, rng.standard_normal(60))
    parsed(ring.report(tmp_path / "page.html", progress=False).read_text())


def test_large_tensors_have_small_pages(tmp_path):
    rng = np.random.default_rng(0)
    coords = np.stack([rng.integers(0, size, 500) for size in (3000, 400, 2000)], axis=1)
    ring = TensorRing(2, **QUICK | {"draws": 4}).fit(coords, rng.standard_normal(500))
    page = ring.report(tmp_path / "page.html", progress=False)
    assert page.stat().st_size < 5e6
    assert "To keep the page small, it shows" in page.read_text()


def test_counts_are_compared_with_those_of_their_own_exposure():
    """A count of ten hours is no surprise beside the rate of one, and pictures show rates."""
    rng = np.random.default_rng(0)
    X = np.indices((6, 5, 4)).reshape(3, -1).T
    hours = rng.choice([1.0, 10.0], len(X))
    ring = TensorRing(1, likelihood="poisson", **QUICK)
    fitted = ring.fit(X, rng.poisson(5 * hours), exposure=hours)._fitted()
    found = contents.gather(fitted, lambda _: None)
    assert np.abs(found.surprises.distance).max() < 4
    np.testing.assert_array_equal(
        found.part.observed,
        (ring.observed_.values / ring.observed_.given.exposure).reshape(6, 5, 4),
    )
    page = render(fitted, lambda _: None)
    assert "counts are those of an exposure of one." in page
    assert "Expected counts are those of the exposure of each." in page


def test_repeated_observations_count_by_their_weight():
    X = np.indices((3, 3, 3)).reshape(3, -1).T
    X, y = np.concatenate([X, X[:1], X[:1], X[:1]]), np.concatenate([np.arange(27.0), [0, 0, 8]])
    ring = TensorRing(1, **QUICK).fit(X, y)
    found = contents.gather(ring._fitted(), lambda _: None)
    assert found.part.observed[0, 0, 0] == 2.0


def test_labels_along_charts_are_evenly_spread():
    for n in range(1, 60):
        steps = np.diff(svg.label_places([str(each) for each in range(n)]))
        assert len(set(steps.tolist())) <= 1
        assert len(steps) <= 5
