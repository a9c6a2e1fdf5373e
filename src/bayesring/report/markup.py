"""Small pieces of HTML shared by pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple


def times(factors: Iterable[object]) -> str:
    """Sizes, ranks or names as a product."""
    return " × ".join(f"{each:,}" if isinstance(each, int) else str(each) for each in factors)


class Cell(NamedTuple):
    """A cell of a table: its text, and its sort key if that differs."""

    text: str
    key: float | None = None
    is_number: bool = True


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    caption: str,
    jumps: Sequence[str] = (),
) -> str:
    """A table that readers can sort by any column.

    Parameters
    ----------
    jumps : for each row the position of a cell that the slices can show, or None
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    lines = ""
    for place, row in enumerate(rows):
        jump = f' data-jump="{jumps[place]}"' if jumps and jumps[place] else ""
        lines += f"<tr{jump}>{''.join(_cell(cell) for cell in row)}</tr>"
    return (
        f'<div class="wide"><table class="sortable"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def facts(rows: Mapping[str, str]) -> str:
    """A table of names and values."""
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f'<table class="facts"><tbody>{lines}</tbody></table>'


def listing(items: Sequence[str], css: str) -> str:
    """Sentences as a list, or nothing if there are none."""
    if not items:
        return ""
    lines = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<ul class="{css}">{lines}</ul>'


def paragraph(text: str, css: str = "") -> str:
    """A paragraph."""
    return f'<p class="{css}">{escape(text)}</p>' if css else f"<p>{escape(text)}</p>"


def figure(title: str, picture: str, note: str = "") -> str:
    """A picture, made of trusted markup, with its title and a note below."""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<figure><figcaption>{escape(title)}</figcaption>{picture}{below}</figure>"


def group(*parts: str) -> str:
    """Figures side by side, as space allows."""
    return f'<div class="group">{"".join(parts)}</div>'


def kept_together(*parts: str) -> str:
    """Parts that belong on one printed page, such as a heading and its table."""
    return f'<div class="keep">{"".join(parts)}</div>'


def section(name: str, title: str, *parts: str) -> str:
    """A section of the page that can be linked to."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{escape(title)}</h2>{"".join(parts)}</section>'
    )


def _cell(cell: Cell) -> str:
    if cell.key is None:
        return f"<td>{escape(cell.text)}</td>"
    look = ' class="number"' if cell.is_number else ""
    return f'<td{look} data-key="{cell.key:.9g}">{escape(cell.text)}</td>'
