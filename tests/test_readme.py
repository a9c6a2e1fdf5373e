"""The README's example runs and does what the text says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np


def test_the_example_runs():
    text = (Path(__file__).parent.parent / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    names: dict = {}
    exec(code, names)
    assert len(names["ring"].predict([[0, 0, 0]])) == 1
    error = names["filled"] - names["table"]
    assert np.sqrt(np.mean(error**2)) < 0.03
    assert np.all(names["low"] < names["high"])
