"""What the input holds, before any work: size, density, likely mistakes."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from bayesring.choosing import is_auto
from bayesring.command.noting import noting_warnings
from bayesring.data.containers import Container
from bayesring.data.featurecolumns import offers
from bayesring.data.kinds import Choice, choose_by_values
from bayesring.data.labels import label_texts
from bayesring.data.longtables import Long
from bayesring.data.traps import find_traps
from bayesring.likelihoods import Likelihood
from bayesring.sharing import together

FEW = 3
"""Observations per slice of a mode, on average, below which error bars will be wide."""


class Preview(NamedTuple):
    """What a completion would work on."""

    modes: dict[str, int]
    """Number of labels of each mode."""
    labels: dict[str, list[str]]
    """Some labels of each mode: the first, the second, the last."""
    value: str | None
    observed: int
    """Number of observations."""
    to_fill: int
    density: float
    """Share of all cells that were observed."""
    likelihood: str
    notes: list[str]
    troubles: list[str]
    """Likely mistakes, one sentence each."""


def preview(
    container: Container, likelihood: str | Likelihood = "auto", share: Any = None
) -> Preview:
    """Look at data without fitting anything; `share` is as for `TensorRing`."""
    observed = container.observations
    if not len(observed.values):
        raise ValueError("data holds no value at all: every cell is missing.")
    found = choose_by_values(observed.values) if is_auto(likelihood) else Choice(likelihood, [])
    chosen, notes = found
    if isinstance(container, Long):
        notes = [*notes, *offers(container.frame, container.labels.names, container.labels.value)]
    with noting_warnings() as noted:
        symmetric = together(observed, container.labels, share)[2]
    names = container.labels.names
    notes = [
        *notes,
        *(
            f"{names[one]!r} and {names[two]!r} are symmetric: a cell and its mirror image are one."
            for one, two in symmetric
        ),
    ]
    texts = label_texts(container.labels, observed.shape)
    distinct = len(np.unique(observed.coords, axis=0))
    return Preview(
        modes=dict(zip(names, observed.shape, strict=True)),
        labels={
            name: [*labels[:2], *labels[2:][-1:]] for name, labels in zip(names, texts, strict=True)
        },
        value=container.labels.value,
        observed=len(observed.values),
        to_fill=len(container.missing),
        density=distinct / prod(observed.shape),
        likelihood=chosen if isinstance(chosen, str) else type(chosen).__name__,
        notes=notes,
        troubles=[*noted, *find_troubles(container, distinct)],
    )


def find_troubles(container: Container, distinct: int) -> list[str]:
    """Sentences on what looks like a mistake; `distinct` is the number of cells observed."""
    observed = container.observations
    names, n = container.labels.names, len(observed.values)
    found = find_traps(observed, container.labels)
    for mode, (name, size) in enumerate(zip(names, observed.shape, strict=True)):
        empty = size - len(np.unique(observed.coords[:, mode]))
        if isinstance(container, Long) and size == len(container.frame) > 1:
            found.append(
                f"Every row has a label of its own in {name!r} ({size:,}): it looks like a row "
                "number or an identifier, not a key that rows share."
            )
        elif empty:
            found.append(
                f"{empty:,} of {size:,} labels of {name!r} have no value at all: what is filled in "
                "there rests on the other labels."
            )
        elif size > 1 and n < FEW * size:
            found.append(
                f"{name!r} has {size:,} labels but only {n / size:.1f} values per label: error "
                "bars will be wide."
            )
    if n > distinct:
        found.append(
            f"{n - distinct:,} values repeat a cell that has one already: they are taken as "
            "repeated measurements."
        )
    if len(names) == 2:
        found.append("There are two modes only: for a matrix, simpler methods may do.")
    if not len(container.missing):
        found.append("No value is missing, so there is nothing to fill; fill='all' may help.")
    return found
