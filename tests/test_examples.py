"""The examples run, with short chains, and their pages have text, code, output and pictures."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "examples"


def load_renderer():
    spec = importlib.util.spec_from_file_location("render", ROOT / "examples" / "render.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


renderer = load_renderer()
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem != "render")


LONGER = ("bridge_sensor_outages", "complete_a_log_on_a_cluster", "fill_missing_stripes")
"""Examples that take some ten seconds even with short chains."""


def test_there_are_examples():
    assert EXAMPLES == [
        "bridge_sensor_outages",
        "complete_a_log_on_a_cluster",
        "fill_a_climate_table",
        "fill_missing_stripes",
        "find_likely_links",
        "forecast_a_metro_line",
        "more_data_than_memory",
        "restore_an_image",
    ]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.ci if name in LONGER else ()) for name in EXAMPLES],
)
def test_an_example_runs_and_is_rendered(name, tmp_path, monkeypatch, data_folder):
    monkeypatch.setenv("BAYESRING_QUICK", "1")
    script = ROOT / "examples" / f"{name}.py"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Labels that the fit did not know")
        page = renderer.render(script, tmp_path).read_text()
    pictures = sorted(tmp_path.glob("*.png"))
    assert len(pictures) >= 2
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert f"]({picture.name})" in page
    assert page.startswith("# ")
    assert "```text" in page
    # the page that is shown is of this script: same code, same headings, same pictures
    shown = (PAGES / f"{name}.md").read_text()
    for line in script.read_text().splitlines():
        if line.startswith("# %% ##"):
            assert line.removeprefix("# %% ") in shown
    assert code_of(page) == code_of(shown)
    for picture in pictures:
        assert (PAGES / picture.name).exists()
        assert (PAGES / picture.name).stat().st_size < 400_000


def code_of(page):
    return [part.split("```")[0] for part in page.split("```python\n")[1:]]


SCRIPT = '''"""Title.

More."""

import os

# %% ## Head
# text

x = 1
# note
# %% only text
'''


def test_text_and_code_are_told_apart():
    docstring, *blocks = renderer.split(SCRIPT)
    assert docstring == "Title.\n\nMore."
    assert blocks == [("", "import os"), ("## Head\n\ntext", "x = 1\n# note"), ("only text", "")]
