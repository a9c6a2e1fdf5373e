"""The page in a real browser, offline: Chromium without a window, from Debian's packages
``chromium`` and ``chromium-driver``.
"""

from __future__ import annotations

import json
import shutil
from itertools import combinations

import pytest

from tests.report.conftest import SHAPE
from tests.report.test_hostile_labels import HOSTILE, NAMES, ring_of

selenium = pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None,
        reason="needs Debian's packages chromium and chromium-driver",
    ),
    pytest.mark.xdist_group("browser"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, ring, tmp_path):
    browser.get(ring.report(tmp_path / "report.html", progress=False).as_uri())
    return browser


def pictures(page):
    """What the three panels show."""
    script = "return [...document.querySelectorAll('canvas')].map((one) => one.toDataURL())"
    return page.execute_script(script)


def texts(page, selector):
    return [each.text for each in page.find_elements(By.CSS_SELECTOR, selector)]


def test_no_errors_and_no_requests(page):
    assert page.get_log("browser") == []
    events = [json.loads(each["message"])["message"] for each in page.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
        and event["params"]["documentURL"].startswith(page.current_url)
    ]
    assert asked, "the page itself"
    assert all(address.startswith(("file:", "data:")) for address in asked)
    assert len({address for address in asked if address.startswith("file:")}) == 1


def test_the_slider_moves_the_picture_by_keyboard(page):
    slider = page.find_element(By.CSS_SELECTOR, "#sliders input")
    before, shown = pictures(page), texts(page, "#sliders output")
    assert len(set(before)) == 3
    at_end = slider.get_attribute("value") == slider.get_attribute("max")
    slider.send_keys(Keys.ARROW_LEFT if at_end else Keys.ARROW_RIGHT)
    assert all(old != new for old, new in zip(before[1:], pictures(page)[1:], strict=True))
    assert texts(page, "#sliders output") != shown
    assert slider.get_attribute("aria-valuetext") == texts(page, "#sliders output")[0]


def test_colours_fit_the_slice_or_all_slices(page):
    before = pictures(page)
    page.find_element(By.ID, "fit-colours").send_keys(Keys.SPACE)
    assert pictures(page)[2] != before[2]


def test_scales_say_when_they_are_cut(page):
    """By the numbers themselves: the ends of the values against those of the slice shown."""
    cut = page.execute_script(
        """
        return panels.map(({panel, numbers, colours}) => {
          const known = [...sliceOf(numbers)].filter((one) => !Number.isNaN(one));
          const [low, high] = endsOf(numbers, colours);
          const ends = [...panel.querySelectorAll(".scale span")].map((one) => one.textContent);
          return [Math.min(...known) < low - 1e-3 * (high - low), ends[0].startsWith("≤"),
                  Math.max(...known) > high + 1e-3 * (high - low), ends[1].startsWith("≥")];
        })
        """
    )
    for below, told_below, above, told_above in cut:
        assert below <= told_below
        assert above <= told_above
    hidden = page.find_element(By.ID, "cut").get_attribute("hidden") is not None
    assert hidden == (not page.find_elements(By.CSS_SELECTOR, ".scale.cut"))


BOXES = """
const bottom = document.querySelector("#profile svg").getBoundingClientRect().bottom;
const groups = [...document.querySelectorAll(".row-ticks, .column-ticks")];
const labels = [...document.querySelectorAll("#profile text.small")];
return [
  ...groups.map((one) => [...one.children]),
  labels.filter((one) => one.getBoundingClientRect().top > bottom - 45),
].map((group) => group.map((one) => {
  const box = one.getBoundingClientRect();
  return [box.left, box.right, box.top, box.bottom];
}));
"""
TITLES = """
const ticks = document.querySelectorAll(".row-ticks span, .column-ticks span");
return [...ticks].map((one) => one.title);
"""


@pytest.mark.parametrize("width", [400, 1280])
def test_labels_do_not_overlap(browser, tmp_path, width):
    """Those beside the slices and below the profile, with labels as long as they come."""
    long = ring_of(("a", "b", "c"), lambda place: f"a rather long label of level {place}", "v")
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(long.report(tmp_path / "report.html", progress=False).as_uri())
    groups, titles = browser.execute_script(BOXES), browser.execute_script(TITLES)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(groups) == 7
    assert all(len(group) >= 2 for group in groups)
    for group in groups:
        for one, other in combinations(group, 2):
            across = one[1] <= other[0] or other[1] <= one[0]
            assert across or one[3] <= other[2] or other[3] <= one[2], group
    assert titles
    assert all(title.startswith("a rather long label") for title in titles)


def test_arrow_keys_read_out_the_next_cell(page):
    stage = page.find_element(By.CSS_SELECTOR, ".stage")
    assert "place = 6, month = 2001-05-01" in texts(page, "#readout")[0]
    stage.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP)
    assert "place = 5, month = 2001-06-01" in texts(page, "#readout")[0]
    assert page.find_elements(By.CSS_SELECTOR, "#profile svg polyline")


def test_gaps_of_ordered_modes_are_shaded(page):
    """Runs of two or more missing dots, unless nearly all are; nothing of modes without order."""
    rows = page.execute_script(
        """
        data.ordered = data.ordered.map(() => true);
        const found = [], [one, other] = [...sizes.keys()].filter((mode) => mode !== columns);
        for (let i = 0; i < sizes[one]; i++)
          for (let j = 0; j < sizes[other]; j++) {
            moveCell(one, i);
            moveCell(other, j);
            drawProfile();
            const places = [...Array(sizes[columns]).keys()].map((k) => placeOf({[columns]: k}));
            const dots = places.map((place) => (Number.isNaN(observed(place)) ? "." : "x"));
            found.push([dots.join(""), document.querySelectorAll("#profile .gap").length]);
          }
        return found;
        """
    )
    sparse = {dots.count("x") <= len(dots) / 4 for dots, _ in rows}
    assert sparse == {True, False}, "both kinds of rows are there"
    for dots, shaded in rows:
        runs = [run for run in dots.split("x") if len(run) > 1]
        assert shaded == (len(runs) if dots.count("x") > len(dots) / 4 else 0), dots
    page.execute_script("data.ordered = data.ordered.map(() => false); drawProfile();")
    assert not page.find_elements(By.CSS_SELECTOR, "#profile .gap")


def test_other_modes_can_be_shown(page):
    Select(page.find_element(By.ID, "rows")).select_by_visible_text("month")
    across = Select(page.find_element(By.ID, "columns")).first_selected_option.text
    assert across == "place", "the two have changed places"
    Select(page.find_element(By.ID, "columns")).select_by_visible_text("kind")
    size = page.execute_script(
        "const c = document.querySelector('canvas'); return [c.height, c.width]"
    )
    assert size == [SHAPE[2], SHAPE[0]]
    assert texts(page, "#sliders label")[0].startswith("place")


def test_tables_sort_both_ways(page):
    table = page.find_element(By.CSS_SELECTOR, "#says table.sortable")
    head = table.find_elements(By.CSS_SELECTOR, "th button")[4]

    def column():
        cells = table.find_elements(By.CSS_SELECTOR, "td:nth-child(5)")
        return [float(cell.get_attribute("data-key")) for cell in cells]

    head.send_keys(Keys.ENTER)
    assert column() == sorted(column())
    head.send_keys(Keys.ENTER)
    assert column() == sorted(column(), reverse=True)
    assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == "descending"


def test_a_row_shows_its_cell(page):
    row = page.find_element(By.CSS_SELECTOR, "#says tr[data-jump]")
    kind, place, month = (cell.text for cell in row.find_elements(By.TAG_NAME, "td")[:3])
    row.find_element(By.CSS_SELECTOR, "button.jump").send_keys(Keys.ENTER)
    assert f"kind = {kind}, place = {place}, month = {month}" in texts(page, "#readout")[0]


@pytest.mark.parametrize("width", [380, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_window_in_light_and_dark(page, width, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide = page.execute_script("return document.documentElement.scrollWidth")
    ground = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width
    assert (sum(map(int, ground[4:-1].split(","))) < 300) == (scheme == "dark")


def test_hostile_labels_do_nothing(browser, tmp_path):
    """No script of a label runs, in the page as it is and after moving through the slices."""
    hostile = ring_of(NAMES, HOSTILE.__getitem__, "<script>value</script>")
    browser.get(hostile.report(tmp_path / "report.html", progress=False).as_uri())
    assert browser.get_log("browser") == []
    for choice in ("rows", "columns"):
        options = Select(browser.find_element(By.ID, choice))
        for place in range(len(options.options)):
            options.select_by_index(place)
            browser.execute_script(
                "document.querySelector('.stage').dispatchEvent("
                "new MouseEvent('click', {bubbles: true, clientX: 5, clientY: 5}))"
            )
    assert browser.execute_script("return document.scripts.length") == 2
    assert not browser.find_elements(By.CSS_SELECTOR, "img, iframe, [onerror], [onload], [onclick]")
    assert browser.get_log("browser") == []
