"""What is loaded when: nothing slow before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import bayesring

SLOW = ("rich", "matplotlib", "scipy.cluster", "sklearn.metrics", "typer", "xarray", "pooch")


def loaded_by(statement: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_estimator_loads_no_bars_and_no_pictures():
    found = loaded_by("from bayesring import TensorRing, TensorRingClassifier, complete, load")
    assert not found & set(SLOW)
    assert not {
        name for name in found if name.startswith(("bayesring.report.", "bayesring.command"))
    }


def test_data_sets_load_no_engine():
    found = loaded_by("import bayesring.datasets")
    assert "numba" not in found
    assert not {name for name in found if name.startswith(("bayesring.engine", "bayesring.infer"))}


@pytest.mark.parametrize("name", bayesring.__all__)
def test_public_names(name):
    assert getattr(bayesring, name) is not None
    assert name in dir(bayesring)


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'TensorRang'"):
        bayesring.TensorRang  # noqa: B018
