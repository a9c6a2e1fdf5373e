"""Every public name says what it returns and has an example, and the examples run.

Examples of methods go on from the example of their class; those of `compare` and `load` from that
of `TensorRing`, too.
"""

from __future__ import annotations

import doctest
import inspect
import os
from importlib import import_module
from pathlib import Path

import pytest

import bayesring
from bayesring import TensorRing, TensorRingClassifier

MODULES = ("bayesring", "bayesring.likelihoods", "bayesring.priors", "bayesring.datasets")
POLICIES = ("StrandGrowth", "Adaption", "Truncation", "FixedRank")
INTERNAL = {
    "fit_observations": "called by complete and by commands, with checked observations",
    "fit_rows": "the same, with Parquet data",
    "get_params": "scikit-learn's",
    "set_params": "scikit-learn's",
    "get_metadata_routing": "scikit-learn's",
}
"""Methods without an underscore that are not for users of the library, and why."""
OWN_CLASSES = (TensorRing, TensorRingClassifier, bayesring.Comparison)
"""Classes whose methods are described on the reference pages."""


def is_request(name):
    return name.startswith("set_") and name.endswith("_request")


def methods(cls):
    """Public methods and properties, inherited ones for `TensorRing` only."""
    own = dir(cls) if cls is TensorRing else vars(cls)
    for name in own:
        if name.startswith("_") or name in INTERNAL or is_request(name):
            continue
        found = inspect.getattr_static(cls, name)
        if inspect.isfunction(found) or isinstance(found, property):
            yield name, found
        elif hasattr(type(found), "__get__") and callable(getattr(cls, name)):
            yield name, getattr(cls, name)  # there under some settings only


def public():
    """Every public name, with its object and whether it returns something."""
    for module in MODULES:
        for name in import_module(module).__all__:
            if name == "__version__":
                continue
            found = getattr(import_module(module), name)
            yield f"{module}.{name}", found, inspect.isfunction(found)
    for name in POLICIES:
        yield name, getattr(import_module("bayesring.model.rank"), name), False
    for cls in OWN_CLASSES:
        for name, found in methods(cls):
            yield f"{cls.__name__}.{name}", found, True


PUBLIC = {name: (found, returns) for name, found, returns in public()}


def test_public_names_are_found():
    assert len(PUBLIC) > 80
    assert {"TensorRing.forecast", "TensorRing.partial_fit", "Comparison.scores"} <= set(PUBLIC)
    for name in INTERNAL:
        assert hasattr(TensorRing, name), f"take {name} off the list"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_documented(name):
    found, returns = PUBLIC[name]
    text = inspect.getdoc(found) or ""
    assert "Examples\n--------\n" in text, f"{name} lacks an example"
    assert not returns or "Returns\n-------\n" in text, f"{name} does not say what it returns"


@pytest.fixture(scope="module")
def going_on():
    """Names that the examples of both classes define."""
    names = {}
    for cls in (TensorRing, TensorRingClassifier):
        names[cls.__name__] = run(cls.__name__, cls, {"bayesring": bayesring})
    return names


def run(name, found, names):
    """Run the example of one docstring; return what it defines."""
    finder = doctest.DocTestParser()
    text = inspect.getdoc(getattr(found, "fget", None) or found)
    test = finder.get_doctest(text, dict(names), name, None, 0)
    assert test.examples, f"the example of {name} is empty"
    told = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=told.append, clear_globs=False)
    assert not runner.failures, "".join(told)
    return test.globs


def needs_data(name):
    last = name.split(".")[-1]
    return last.startswith("load_") or last in ("ushcn_table", "Dataset", "Description")


@pytest.mark.ci
@pytest.mark.parametrize("name", PUBLIC)
def test_an_example_runs(name, going_on, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if needs_data(name) and not Path(os.environ.get("BAYESRING_DATA", "none")).is_dir():
        pytest.skip("BAYESRING_DATA does not name a folder with the real data sets")
    if "plot_" in name:
        import matplotlib.pyplot as plt

        plt.switch_backend("Agg")
    owner = name.split(".")[0]
    run(name, PUBLIC[name][0], going_on.get(owner, going_on["TensorRing"]))
    if "plot_" in name:
        plt.close("all")


def test_a_wrong_example_is_noticed():
    def wrong():
        """Wrong.

        >>> 1 + 1
        3
        """

    with pytest.raises(AssertionError, match="Got:"):
        run("wrong", wrong, {})
