"""Features of labels named on the command line: files, or columns of the table itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from bayesring.data.containers import Container
from bayesring.data.dialects import PLAIN, Dialect
from bayesring.data.featurecolumns import from_columns
from bayesring.data.featuresources import read_features, with_types
from bayesring.data.longtables import Long
from bayesring.data.positions import mode_of


def described_by(
    features: Mapping[str, str] | None, container: Container, dialect: Dialect = PLAIN
) -> dict[str | int, Any] | None:
    """What `TensorRing.fit` takes as features."""
    if not features:
        return None
    labels = container.labels
    found: dict[str | int, Any] = {}
    for name, source in features.items():
        mode = mode_of(name, labels.names, "features")
        listed = [each.strip() for each in source.split(",")]
        if isinstance(container, Long) and set(listed) <= set(container.frame.columns):
            table = container.frame.to_native().select(list(dict.fromkeys([name, *listed])))
            found |= from_columns(with_types(table, name), {name: listed})
        elif source != "-" and not os.path.exists(source):
            columns = container.frame.columns if isinstance(container, Long) else []
            raise ValueError(
                f"--features names {source!r} for {name!r}, which is neither a file nor columns of "
                f"the data, which are {columns}."
            )
        else:
            found[name] = read_features(source, name, labels.levels[mode], dialect)
    return found
