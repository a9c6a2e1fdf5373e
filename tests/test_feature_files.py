"""Features in model files: they come back as they were, and damaged ones are refused."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from bayesring import load
from tests.described_stations import KNOWN, fitted_with, simulated_stations


@pytest.fixture(scope="module")
def simulated():
    return simulated_stations()


@pytest.fixture(scope="module")
def fitted(simulated):
    table, _, features = simulated
    return fitted_with(table, features)


@pytest.fixture(scope="module")
def fitted_to_known(simulated):
    table, _, features = simulated
    return fitted_with(table, features[:KNOWN])


def test_a_model_file_holds_the_features(simulated, fitted, fitted_to_known, tmp_path):
    _, cells, features = simulated
    fitted.save(tmp_path / "a.model")
    found = load(tmp_path / "a.model")
    np.testing.assert_array_equal(found.predict(cells), fitted.predict(cells))
    fitted_to_known.save(tmp_path / "b.model")
    found = load(tmp_path / "b.model").fold_in(None, features={"station": features})
    expected = fitted_to_known.fold_in(None, features={"station": features})
    np.testing.assert_array_equal(found.predict(cells), expected.predict(cells))


def damaged(path, change, out):
    """A copy of a model file whose description was changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "description.json":
                described = json.loads(data)
                change(described)
                data = json.dumps(described).encode()
            new.writestr(item, data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("features"), "is unknown"),
        (lambda d: d["features"].update({"9": {}}), "an object of modes"),
        (lambda d: d["features"]["0"].update(names=["a"]), "at most|0.0 is allowed|0 is allowed"),
        (lambda d: d["features"]["0"]["columns"].pop(), "do not make up"),
        (lambda d: d["features"]["0"]["columns"][0].update(mean="x"), "must be a finite number"),
        (lambda d: d["prior"].update(modes=[d["prior"]["modes"][1]]), "whose prior uses them"),
        (lambda d: d["prior"]["modes"][0].update(features=[[1]]), "must be null"),
    ],
)
def test_a_damaged_file_is_refused(change, message, fitted, tmp_path):
    fitted.save(tmp_path / "whole.model")
    damaged(tmp_path / "whole.model", change, tmp_path / "broken.model")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "broken.model")
