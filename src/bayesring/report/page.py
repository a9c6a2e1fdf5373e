"""The report: a single HTML file without external resources."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from bayesring.data.writing import check_destination, replacing
from bayesring.progress import step_progress
from bayesring.report import explorer, sections
from bayesring.report.again import again_section
from bayesring.report.contents import gather, n_steps
from bayesring.report.fitted import Fitted
from bayesring.report.markup import listing, times


def write_page(fitted: Fitted, path: str | os.PathLike[str], progress: bool) -> Path:
    """Write the report of a fitted model; the same model gives the same bytes."""
    check_destination(path)
    with step_progress(progress, n_steps(fitted)) as step:
        page = render(fitted, step).encode()
    with replacing(path) as temporary:
        temporary.write_bytes(page)
    return Path(path)


def render(fitted: Fitted, step: Callable[[str], None]) -> str:
    """The page as text; `step` is called with the name of each step."""
    contents = gather(fitted, step)
    body = [
        sections.says_section(fitted, contents),
        sections.trust_section(fitted, contents),
        sections.data_section(fitted, contents),
        sections.found_section(fitted, contents),
        again_section(fitted),
    ]
    numbers = json.dumps(explorer.data(fitted, contents.part), separators=(",", ":"))
    return Template(_asset("page.html")).substitute(
        title=escape(f"{fitted.value_name} by {times(fitted.labels.names)}"),
        size=escape(f"{times(fitted.shape)}, completed by bayesring"),
        headlines=listing(sections.headlines(fitted, contents), "headlines"),
        style=_asset("page.css"),
        body="\n".join(body),
        data=numbers.replace("<", "\\u003c"),
        script=_asset("page.js"),
    )


def _asset(name: str) -> str:
    return files("bayesring.report").joinpath(name).read_text(encoding="utf-8")
