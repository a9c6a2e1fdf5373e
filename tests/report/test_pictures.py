"""Pictures with matplotlib, and what notebooks show."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bayesring import TensorRing, complete
from tests.report.conftest import QUICK

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_a_slice_has_observed_completed_and_error_bar(real_ring):
    figure = real_ring.plot_slice({"kind": "sun"}, rows="place", columns="month")
    observed, completed, deviation = (axes.images[0].get_array() for axes in figure.axes[:3])
    cells = np.stack(np.meshgrid([1], np.arange(12), np.arange(9), indexing="ij"), axis=-1)[0]
    mean, std = real_ring.predict(cells.reshape(-1, 3), return_std=True)
    np.testing.assert_allclose(completed, mean.reshape(12, 9))
    np.testing.assert_allclose(deviation, std.reshape(12, 9))
    here = real_ring.observed_.coords[:, 0] == 1
    known = np.isfinite(np.ma.filled(observed, np.nan))
    assert known.sum() == len(np.unique(real_ring.observed_.coords[here], axis=0))
    assert figure.get_suptitle() == "index at kind sun"


def test_slices_choose_what_is_left_open(ring):
    figure = ring.plot_slice({"place": 3})
    assert figure.axes[0].get_xlabel() == "month"
    assert figure.axes[0].get_ylabel() == "kind"
    assert ring.plot_slice(rows=2).axes[0].get_ylabel() == "month"
    assert ring.plot_slice({"month": "2001-03-01"}).get_suptitle() == "index at month 2001-03-01"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows": "town"}, "there is no mode 'town'; the modes are kind, place, month"),
        ({"at": {"kind": "hail"}}, "kind has no level hail; the first is rain, the last snow"),
        ({"rows": "kind", "columns": "kind"}, "needs two different modes"),
        ({"at": {"kind": "sun"}, "rows": "kind"}, "needs two different modes"),
        ({"at": {"kind": "sun", "place": 1}}, "needs two different modes"),
    ],
)
def test_wrong_names_are_told(real_ring, settings, message):
    with pytest.raises(ValueError, match=message):
        real_ring.plot_slice(**settings)


def test_each_picture_is_drawn(ring):
    _, axis = plt.subplots()
    assert ring.plot_rank(ax=axis) is axis
    assert len(ring.plot_trace().axes) == 3
    assert ring.plot_calibration().get_xlabel() in ("nominal level", "predicted probability of 1")
    assert ring.plot_density("kind", "month").get_ylabel() == "kind"
    assert ring.plot_similarity("place").get_title() == "place"


def test_calibration_needs_held_out_values():
    small = TensorRing(1, **QUICK).fit([[0, 0], [1, 1], [0, 1]], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="nothing was held out"):
        small.plot_calibration()


def test_a_missing_matplotlib_is_named(real_ring, monkeypatch):
    monkeypatch.delitem(sys.modules, "bayesring.report.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'bayesring\[plot\]'"):
        real_ring.plot_rank()


def test_importing_and_reporting_needs_no_matplotlib(real_ring, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert real_ring.report(tmp_path / "report.html", progress=False).is_file()


def test_notebooks_show_the_model_at_a_glance(ring):
    html = ring._repr_html_()
    for said in ("kind (5) × place (12) × month (9)", "200 for 540 cells", "2 × 2 × 2", "held-out"):
        assert said in html
    assert html.split("<style>")[0] in ring._repr_mimebundle_()["text/html"]
    unfitted = TensorRing()._repr_html_()
    assert "TensorRing" in unfitted
    assert "cells" not in unfitted


def test_completions_have_the_same_methods(tmp_path):
    table = np.add.outer(np.arange(6.0), np.arange(8.0) ** 2)
    table[::2, ::3] = np.nan
    completion = complete(table, rank=1, **QUICK)
    assert "9 cells filled, with 90% intervals." in completion._repr_html_()
    assert completion.plot_rank().get_ylabel() == "rank"
    assert completion.report(tmp_path / "report.html", progress=False).is_file()
