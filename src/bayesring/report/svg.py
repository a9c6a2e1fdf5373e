"""Charts as SVG text: numbers in, markup out. Colours come from the page's style sheet."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.model.types import FloatArray, IntArray
from bayesring.report.colours import anchors, paint

WIDTH, HEIGHT = 400, 240
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 10, 42
MAX_POINTS = 400
"""Maximum number of points drawn per line; longer lines are thinned."""
DASHES = ("none", "6 3", "2 2", "8 3 2 3")
"""Line styles that distinguish chains without colour."""
MAP_SIDE = 300
"""Longer side of a map."""
LETTER = 5.4
"""Width of a small letter."""
LABEL_LENGTH = 16
"""Maximum number of letters shown of a label."""
MAX_LABELS = 40
"""Maximum number of labels along one side of a map."""
NAME_LENGTH = 34
"""Maximum number of letters shown of the name of an axis."""
MOST_DIGITS = 10
"""Maximum number of letters of a number beside the vertical axis."""
GAP = 20
"""Space between two labels along a chart."""
SLANTED = 1.4
"""Space that slanted labels need, compared with those of rows."""

Ticks = Sequence[tuple[float, str]]


class Line(NamedTuple):
    """A line of a chart."""

    x: FloatArray | IntArray
    y: FloatArray
    colour: int = 0
    dash: int = 0
    label: str = ""
    steps: bool = False
    """Whether a value holds until the next one."""
    dots: bool = False


class Band(NamedTuple):
    """An area between two lines."""

    x: FloatArray
    lower: FloatArray
    upper: FloatArray


class Frame(NamedTuple):
    """The range of numbers that a chart shows."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, x: float) -> float:
        """Horizontal position of a number in the chart."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (x - self.x_low) / (self.x_high - self.x_low)

    def y(self, y: float) -> float:
        """Vertical position of a number in the chart."""
        share = (y - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def points(self, x: FloatArray | IntArray, y: FloatArray) -> str:
        """Positions of several points as text."""
        return " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(x, y, strict=True))


def chart(
    lines: Sequence[Line],
    alt: str,
    x_label: str,
    y_label: str,
    *,
    band: Band | None = None,
    bars: Sequence[tuple[float, float, float]] = (),
    shade: tuple[float, float] | None = None,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    x_ticks: Ticks | None = None,
    diagonal: bool = False,
) -> str:
    """Lines over a pair of axes.

    Parameters
    ----------
    alt : what the picture shows, in words
    band : an area behind the lines
    bars : vertical error bars (x, lower, upper)
    shade : range of x with a grey background
    diagonal : whether to draw the line where x = y
    """
    frame = Frame(
        *(x_range or _range([line.x for line in lines])),
        *(y_range or _range([line.y for line in lines])),
    )
    marks = []
    if shade is not None:
        left, right = frame.x(shade[0]), frame.x(shade[1])
        marks.append(
            f'<rect class="shade" x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" '
            f'height="{HEIGHT - TOP - BOTTOM}"/>'
        )
    if band is not None:
        there_and_back = np.concatenate([band.x, band.x[::-1]])
        outline = frame.points(there_and_back, np.concatenate([band.lower, band.upper[::-1]]))
        marks.append(f'<polygon class="band" points="{outline}"/>')
    marks += _axes(frame, x_ticks or ticks(frame.x_low, frame.x_high))
    marks += _names(x_label, y_label)
    if diagonal:
        ends = np.array([max(frame.x_low, frame.y_low), min(frame.x_high, frame.y_high)])
        marks.append(f'<polyline class="even" points="{frame.points(ends, ends)}"/>')
    for x, low, high in bars:
        bar = frame.points(np.array([x, x]), np.array([low, high]))
        marks.append(f'<polyline class="c0" points="{bar}"/>')
    for line in lines:
        marks += _line(frame, line)
    return _svg(WIDTH, HEIGHT, alt, marks) + _legend(lines)


def heatmap(
    shares: FloatArray,
    alt: str,
    colours: str,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    row_name: str,
    column_name: str,
    most_labels: int = MAX_LABELS,
) -> str:
    """A matrix of numbers between 0 and 1 as coloured cells."""
    rows, columns = shares.shape
    cell = MAP_SIDE / max(rows, columns)
    width, height = max(cell * columns, 60), max(cell * rows, 60)
    left, below = 26 + _length(row_labels), 26 + 0.87 * _length(column_labels)
    marks = [
        f'<image class="cells" x="{left:.1f}" y="4" width="{width:.1f}" height="{height:.1f}" '
        f'preserveAspectRatio="none" href="{png(paint(shares, colours))}"/>'
    ]
    for place, text in _some_labels(row_labels, height, most_labels):
        y = 4 + height * (place + 0.5) / rows
        marks.append(
            f'<text class="small end" x="{left - 5:.1f}" y="{y + 3:.1f}">{_short(text)}</text>'
        )
    for place, text in _some_labels(column_labels, width / SLANTED, most_labels):
        x = left + width * (place + 0.5) / columns
        marks.append(
            f'<text class="small end" transform="translate({x + 3:.1f} {height + 12:.1f}) '
            f'rotate(-60)">{_short(text)}</text>'
        )
    bottom = 4 + height + below
    marks.append(
        f'<text class="name" x="{left + width / 2:.1f}" y="{bottom - 4:.1f}">'
        f"{_short(column_name, NAME_LENGTH)}</text>"
        f'<text class="name" transform="translate(11 {4 + height / 2:.1f}) rotate(-90)">'
        f"{_short(row_name, NAME_LENGTH)}</text>"
    )
    return _svg(left + width + 8, bottom, alt, marks)


def colour_bar(colours: str, low: str, high: str) -> str:
    """Legend of a map: the colours between two numbers."""
    stops = ", ".join(f"rgb({red},{green},{blue})" for red, green, blue in anchors(colours))
    return (
        f'<div class="scale"><span>{escape(low)}</span>'
        f'<i style="background:linear-gradient(to right, {stops})"></i>'
        f"<span>{escape(high)}</span></div>"
    )


def label_ticks(labels: Sequence[str]) -> list[tuple[float, str]]:
    """As many evenly spread labels of levels as fit along a chart, with their positions."""
    return [(place, labels[place]) for place in label_places(labels)]


def label_places(labels: Sequence[str]) -> list[int]:
    """Evenly spread places of labels that fit along a chart."""
    n = int((WIDTH - LEFT - RIGHT) / (_length(labels) + GAP))
    step = -(-(len(labels) - 1) // (min(max(n, 2), 6) - 1))
    return list(range(0, len(labels), max(step, 1)))


def ticks(low: float, high: float, n: int = 5) -> list[tuple[float, str]]:
    """About `n` round numbers between two ends, with their texts."""
    raw = (high - low) / n
    unit = 10.0 ** floor(log10(raw))
    step = next(size * unit for size in (1, 2, 5, 10) if size * unit >= 0.999 * raw)
    digits = max(0, -floor(log10(step) + 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [(k * step, _tick(k * step, digits)) for k in range(first, last + 1)]


def _tick(value: float, digits: int) -> str:
    """A number along an axis, short enough to stand beside it."""
    text = f"{value + 0.0:,.{digits}f}"
    return text if len(text) <= MOST_DIGITS else f"{value:.4g}"


def apart(labels: Ticks, first: float, last: float) -> list[tuple[float, str]]:
    """As many of the labels, evenly spread in number, as stand side by side between two ends.

    Their positions may be uneven, so that each must be clear of the one before.
    """
    room = (WIDTH - LEFT - RIGHT) / max(abs(last - first), 1e-300)
    kept: list[tuple[float, str]] = []
    for place in label_places([text for _, text in labels]):
        at, text = labels[place]
        if not kept or abs(at - kept[-1][0]) * room > _length([text, kept[-1][1]]) + GAP:
            kept.append((at, text))
    return kept


def number(value: float | np.floating[Any]) -> str:
    """A number in readable form, to three significant figures."""
    if value == 0:
        return "0"
    size = abs(float(value))
    if not 1e-3 <= size < 1e9:
        return f"{value:.3g}"
    return f"{value:,.{max(0, 2 - floor(log10(size)))}f}"


def percent(share: float | np.floating[Any]) -> str:
    """A percentage, to three significant figures."""
    return f"{100 * share:.3g} %"


def png(pixels: NDArray[np.uint8]) -> str:
    """A picture (rows, columns, 3) as a data URL."""
    rows, columns, _ = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    return f"data:image/png;base64,{b64encode(content).decode()}"


def _svg(width: float, height: float, alt: str, marks: Sequence[str]) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width:{1.35 * width:.0f}px"><title>{escape(alt)}</title>'
        f"{''.join(marks)}</svg>"
    )


def _line(frame: Frame, line: Line) -> list[str]:
    """A line, thinned, with its dots."""
    every = -(-len(line.x) // MAX_POINTS)
    x, y = line.x[::every], np.clip(line.y[::every], frame.y_low, frame.y_high)
    corners = (np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]) if line.steps else (x, y)
    marks = [
        f'<polyline class="c{line.colour}" stroke-dasharray="{DASHES[line.dash % len(DASHES)]}" '
        f'points="{frame.points(*corners)}"/>'
    ]
    if line.dots:
        marks += [
            f'<circle class="d{line.colour}" cx="{frame.x(a):.1f}" cy="{frame.y(b):.1f}" r="3"/>'
            for a, b in zip(x, y, strict=True)
        ]
    return marks


def _axes(frame: Frame, x_ticks: Ticks) -> list[str]:
    """Grid, frame and the numbers along both axes."""
    bottom = HEIGHT - BOTTOM
    marks = []
    for place, text in x_ticks:
        x = frame.x(place)
        marks.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
            f'<text class="small {"end" if x > WIDTH - 30 else "mid"}" '
            f'x="{min(x, WIDTH - 2):.1f}" y="{bottom + 14}">{_short(text)}</text>'
        )
    for place, text in ticks(frame.y_low, frame.y_high):
        y = frame.y(place)
        marks.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="small end" x="{LEFT - 5}" y="{y + 3:.1f}">{text}</text>'
        )
    return marks


def _names(x_label: str, y_label: str) -> list[str]:
    return [
        f'<text class="name" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}">'
        f"{_short(x_label, NAME_LENGTH)}</text>",
        f'<text class="name" transform="translate(11 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)">'
        f"{_short(y_label, NAME_LENGTH)}</text>",
    ]


def _legend(lines: Sequence[Line]) -> str:
    """Legend of the lines that have names."""
    items = [
        f'<span><svg class="key" viewBox="0 0 26 8" aria-hidden="true"><polyline '
        f'class="c{line.colour}" stroke-dasharray="{DASHES[line.dash % len(DASHES)]}" '
        f'points="0,4 26,4"/></svg>{escape(line.label)}</span>'
        for line in lines
        if line.label
    ]
    return f'<div class="legend">{"".join(items)}</div>' if items else ""


def _range(numbers: Sequence[FloatArray | IntArray]) -> tuple[float, float]:
    """Range of all the numbers, with a margin."""
    together = np.concatenate(numbers)
    together = together[np.isfinite(together)]
    if not together.size:
        return 0.0, 1.0
    low, high = float(together.min()), float(together.max())
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 0.5
    return low - margin, high + margin


def _some_labels(labels: Sequence[str], length: float, most: int) -> list[tuple[int, str]]:
    """As many evenly spread labels as fit along a side of a map."""
    most = max(1, min(most, int(length / 9)))
    every = -(-len(labels) // most)
    return [(place, labels[place]) for place in range(0, len(labels), every)]


def _length(labels: Sequence[str]) -> float:
    """Space that the longest label takes."""
    return LETTER * min(max(map(len, labels)), LABEL_LENGTH)


def _short(text: str, most: int = LABEL_LENGTH) -> str:
    """A label, cut if it is long; the whole of it appears when pointed at."""
    if len(text) <= most:
        return escape(text)
    return f"{escape(text[: most - 1])}…<title>{escape(text)}</title>"
