"""The interactive slices: markup that the page's script fills, and its numbers."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import Any

import numpy as np

from bayesring.model.types import FloatArray, IntArray
from bayesring.priors import Circular, Smooth
from bayesring.report.cells import Part, default_axes
from bayesring.report.colours import ERRORS, VALUES, anchors
from bayesring.report.fitted import Fitted

MOST = 2**16 - 1
"""Numbers are encoded as integers from 1 to this; 0 means missing."""
CHOSEN = ' selected="selected"'
CUT = "Scales marked ≤ or ≥ are cut: some values lie beyond such an end."
TAIL = 0.01
"""Share of values beyond either end of the colour scale, so that outliers do not dominate it."""


def _exposed(fitted: Fitted) -> str:
    """What counts of different exposures are made comparable by."""
    if fitted.observed is None or fitted.observed.given.exposure is None:
        return ""
    return " Observed and expected counts are those of an exposure of one."


def skeleton(fitted: Fitted, part: Part) -> str:
    """Selectors, sliders and three pictures, empty until the script runs."""
    rows, columns = (_options(fitted, axis) for axis in default_axes(fitted.shape))
    titles = (
        "observed",
        "probability of 1" if fitted.is_binary else "completed",
        "error bar of the probability" if fitted.is_binary else "error bar",
    )
    panels = "".join(
        f'<figure class="panel"><figcaption>{title}</figcaption><div class="plot">'
        '<div class="row-ticks"></div><div class="stage" tabindex="0" role="img">'
        '<canvas></canvas><div class="cursor"></div></div><div class="column-ticks"></div></div>'
        '<div class="scale"></div></figure>'
        for title in titles
    )
    return (
        f'<div id="explorer"><h3>Slices</h3>{_cut(fitted, part)}<p class="hint">Choose which modes '
        "run down and across, and move through the others with the sliders. Click a cell, or focus "
        f"a picture and use the arrow keys, to read its numbers.{_exposed(fitted)}</p>"
        '<noscript><p class="note">The slices need JavaScript; the rest of the page does not.</p>'
        '</noscript><div class="controls">'
        f'<label>down <select id="rows">{rows}</select></label>'
        f'<label>across <select id="columns">{columns}</select></label>'
        '<span id="sliders"></span><label><input id="fit-colours" type="checkbox" '
        f'checked="checked"/> colours fit the slice</label></div><div class="panels">{panels}</div>'
        f'<p id="cut" class="note" hidden="hidden">{CUT}</p>'
        '<p id="readout" aria-live="polite"></p><figure id="profile"></figure></div>'
    )


def data(fitted: Fitted, part: Part) -> dict[str, Any]:
    """Data for the script: sizes, labels, numbers, colours."""
    known = part.observed[np.isfinite(part.observed)]
    together = np.concatenate([known, np.ravel(part.mean)])
    values = (0.0, 1.0) if fitted.is_binary else _ends(together)
    errors = _ends(part.deviation)
    low, high = _quantiles(part.deviation)
    return {
        "binary": fitted.is_binary,
        "least": 0.0 if fitted.posterior.likelihood.discrete else None,
        "whole": values[1] - values[0] < MOST / 2 and bool(np.all(known == np.round(known))),
        "ordered": [
            isinstance(getattr(own, "base", own), Smooth | Circular) for own in fitted.prior.modes
        ],
        "start": _start(fitted, part),
        "names": list(fitted.labels.names),
        "labels": [fitted.level_texts(mode, chosen) for mode, chosen in enumerate(part.levels)],
        "value": fitted.value_name,
        "values": {
            "range": values,
            "shown": values if fitted.is_binary else _quantiles(together),
            "colours": anchors(VALUES),
        },
        "errors": {
            "range": errors,
            "shown": (low if low > 1e-3 * high else 0.0, high),
            "colours": anchors(ERRORS),
        },
        "observed": _encode(part.observed, values),
        "mean": _encode(part.mean, values),
        "deviation": _encode(part.deviation, errors),
    }


def _start(fitted: Fitted, part: Part) -> list[int]:
    """Initial cell: in the middle of the slice with the most observations."""
    axes = default_axes(fitted.shape)
    known = np.isfinite(part.observed)
    return [
        size // 2
        if mode in axes
        else int(np.argmax(known.sum(axis=tuple(np.delete(np.arange(known.ndim), mode)))))
        for mode, size in enumerate(known.shape)
    ]


def place_in(part: Part, cell: IntArray) -> str:
    """Position of a cell among the levels shown, or None if it is not shown."""
    places = [
        int(np.searchsorted(chosen, index))
        for chosen, index in zip(part.levels, cell, strict=True)
        if index in chosen
    ]
    return ",".join(map(str, places)) if len(places) == len(cell) else ""


def _options(fitted: Fitted, chosen: int) -> str:
    return "".join(
        f'<option value="{mode}"{CHOSEN if mode == chosen else ""}>{escape(name)}</option>'
        for mode, name in enumerate(fitted.labels.names)
    )


def _cut(fitted: Fitted, part: Part) -> str:
    """Which modes are not shown in full."""
    shown = [
        f"{len(chosen):,} of {size:,} levels of {escape(name)}"
        for name, chosen, size in zip(fitted.labels.names, part.levels, fitted.shape, strict=True)
        if len(chosen) < size
    ]
    return f"<p>To keep the page small, it shows {', '.join(shown)}.</p>" if shown else ""


def _ends(numbers: FloatArray) -> tuple[float, float]:
    low, high = float(np.min(numbers)), float(np.max(numbers))
    return low, high if high > low else low + 1.0


def _quantiles(numbers: FloatArray) -> tuple[float, float]:
    """Ends of the colour scale."""
    low, high = np.quantile(numbers, [TAIL, 1 - TAIL]).tolist()
    return (low, high) if high > low else _ends(numbers)


def _encode(numbers: FloatArray, ends: tuple[float, float]) -> str:
    """Numbers between two ends encoded as text, 16 bits each."""
    low, high = ends
    with np.errstate(invalid="ignore"):
        codes = 1 + np.round((numbers - low) / (high - low) * (MOST - 1))
    whole = np.where(np.isfinite(numbers), codes, 0).astype("<u2")
    return b64encode(whole.tobytes()).decode()
