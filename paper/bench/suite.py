"""All measurements together: table, JSON, page, and the check that nothing got slower."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paper.bench import epochs, error_curves, peers, processes, scans
from paper.bench.timing import Measurement, machine

SLOWER = 1.3
"""Factor by which a kept row may exceed the committed figure."""
REPEATS = (15, 60)
"""Repeats of the first and, if a scan looks slow, of the second measurement of `check`."""
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def measure(quick: bool = False, large: bool = False) -> Iterator[Measurement]:
    """Rows of the table, one after another."""
    yield from scans.kept()
    yield from scans.kinds()
    yield from scans.conditionals()
    yield from peers.smurff_scan()
    yield from scans.peak_share(quick)
    yield from scans.threads(10**6)
    yield from scans.growth(quick, large)
    yield from scans.predictions()
    yield from scans.mixing(quick)
    yield from peers.nuts(quick)
    yield from processes.first_fits()
    yield from processes.memory(10**6, *([] if quick else [10**7]), *([10**8] if large else []))
    yield from epochs.epochs()
    yield from epochs.stream(2 * 10**6 if quick else 10**8 if large else 2 * 10**7)
    if not quick:
        yield from error_curves.measure()
    if large:
        yield from epochs.against_gibbs()


def to_json(rows: list[Measurement]) -> dict[str, Any]:
    """The machine and all rows as plain data."""
    return {"machine": machine(), "rows": [row._asdict() | {"met": row.met} for row in rows]}


def check(committed: Path) -> list[str]:
    """Measure the kept scans again; messages about those slower than the committed figures.

    Anything that looks slow is measured again for longer: other work on the machine can disturb all
    of a few repeats, but hardly all of many.
    """
    rows = json.loads(committed.read_text())["rows"]
    before = {row["name"]: row["value"] for row in rows if row["unit"] == scans.KEPT}
    if not before:
        return [f"{committed} has no scans {scans.KEPT}: measure them with `make bench`."]
    complaints: list[str] = []
    for repeats in REPEATS:
        complaints = []
        for row in scans.kept(repeats):
            if row.unit != scans.KEPT or row.name not in before or row.value is None:
                continue
            slower = row.value / before[row.name]
            if slower > SLOWER:
                complaints.append(
                    f"{row.name}: {row.value:.2f} {row.unit}, {slower:.2f} times the committed "
                    "figure."
                )
        if not complaints:
            break
    return complaints


def markdown(result: dict[str, Any]) -> str:
    """The rows with a goal, as a table for the page on speed."""
    about = result["machine"]
    lines = [
        f"{about['processor']}, {about['cores']} cores, numba {about['numba']}, with a load of "
        f"{about['load when it began'] or 0:.1f} from other work at the start:",
        "",
        "| | measured | goal |",
        "|---|---|---|",
    ]
    for row in result["rows"]:
        if row["goal"] is None:
            continue
        sign = "at least" if row["at_least"] else "at most"
        value = "not measured" if row["value"] is None else f"{row['value']:.3g} {row['unit']}"
        missed = " (missed)" if row["met"] is False else ""
        lines.append(f"| {row['name']} | {value}{missed} | {sign} {row['goal']:g} |")
    return "\n".join(lines)


def write_page(page: Path, result: dict[str, Any]) -> None:
    """Put the table between the markers of a page."""
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{markdown(result)}\n{END}{after}")
