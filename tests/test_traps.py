"""What looks wrong in data is told; what is merely irregular is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, complete, datasets
from bayesring.data.inputs import observe
from bayesring.data.labels import Labels, plain_labels
from bayesring.data.observations import Observations
from bayesring.data.traps import DataWarning, find_traps, summarise_data

QUICK = {"rank": 1, "warmup": 2, "draws": 2, "chains": 1, "random_state": 0, "progress": False}
STATIONS = np.array(["Oslo", "Bergen", "Tromso", "Bodo", "Hamar", "Voss"])


def table_of(rng, days=20, hours=4):
    """One row per cell, as tables should be."""
    grid = np.indices((len(STATIONS), days, hours)).reshape(3, -1)
    table = pd.DataFrame({"station": STATIONS[grid[0]], "day": grid[1], "hour": grid[2]})
    return table.assign(t=rng.normal(10, 3, len(table)).round(2))


def traps_of(table, modes=("station", "day", "hour")):
    data, labels, _ = observe(table, None, None, list(modes), "t")
    return find_traps(data, labels)


def test_a_table_without_traps(rng):
    assert traps_of(table_of(rng)) == []


def with_spaces(table):
    table.loc[3, "station"] = "Oslo "
    table.loc[9, "station"] = "Oslo  "
    return table


def with_case(table):
    table.loc[table.index[::5], "station"] = table["station"].str.upper()
    return table


def with_accents(table):
    table["station"] = table["station"].replace("Bodo", "Bod\u00f8\u0301")
    table.loc[table["station"].str.startswith("Bod") & (table["day"] > 5), "station"] = "Bod\u01ff"
    return table


def with_code(table):
    table.loc[[3, 70], "t"] = -999
    return table


def with_code_among_large_values(table):
    table["t"] = 500 * table["t"].abs()
    table.loc[[3, 70], "t"] = -999
    return table


def with_dates_as_text(table):
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(table["day"], unit="D")
    return table.assign(day=days.dt.strftime("%d.%m.%Y"))


def with_decimal_commas(table):
    return table.assign(hour=(table["hour"] / 2).map(lambda each: f"{each:.1f}".replace(".", ",")))


def with_slip(table):
    table.loc[11, "t"] = 1230
    return table


def with_two_slips(table):
    table.loc[[11, 12], "t"] = 1230, 1100
    return table


def with_low_slip(table):
    table.loc[11, "t"] = -830.5
    return table


def with_misspelt(table):
    table.loc[5, "station"] = "Olso"
    return table


def with_conflict(table):
    return pd.concat([table, table.iloc[[7]].assign(t=3.25)], ignore_index=True)


def with_one_year(table):
    return table.assign(station="Oslo")


def with_one_value(table):
    return table.assign(t=2.5)


TRAPS = {
    with_spaces: "2 labels of 'station' differ from another only in spaces or case, such as 'Oslo'",
    with_case: "6 labels of 'station' differ from another only in spaces or case",
    with_accents: "1 label of 'station' differs from another only in spaces or case",
    with_dates_as_text: "Labels of 'day', such as '01.01.2024', look like dates but are text",
    with_decimal_commas: "Labels of 'hour', such as '0,0', look like numbers with a decimal comma",
    with_code: "2 values are -999, far from all others",
    with_code_among_large_values: "2 values are -999, while all others are zero or more",
    with_slip: "The value 1230 in row 11 of the known ones is far outside the rest",
    with_two_slips: "The value 1230 in row 11",
    with_low_slip: "The value -830.5 in row 11",
    with_misspelt: "1 label of 'station', such as Olso, has a single value, while every other has",
    with_conflict: "1 cell has several rows with different values, such as Oslo / 1 / 3 with 3.25",
    with_one_year: "'station' has one label only, Oslo",
    with_one_value: "All 480 values are 2.5",
}


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_each_trap_is_told(rng, trap):
    found = traps_of(trap(table_of(rng)))
    assert any(TRAPS[trap] in each for each in found), found
    expected = 2 if trap is with_one_year else 1  # then rows repeat cells, too
    assert len(found) <= expected, found


def test_a_mode_left_out_is_told(rng):
    (found,) = traps_of(table_of(rng), modes=("station", "day"))
    assert "480 values for 120 cells" in found
    assert "may have been left out of ['station', 'day']" in found


def test_repeats_of_a_measurement_are_no_trap(rng):
    table = table_of(rng)
    again = pd.concat([table, table.assign(t=table["t"] + rng.normal(0, 0.5, len(table)))])
    assert traps_of(again) == []
    ratings = table.assign(t=rng.integers(1, 6, len(table)))
    assert traps_of(pd.concat([ratings, ratings.assign(t=ratings["t"].to_numpy()[::-1])])) == []


def test_equal_rows_and_rows_of_some_weight_are_no_conflict(rng):
    table = table_of(rng)
    assert traps_of(pd.concat([table, table.iloc[[7, 8]]])) == []


@pytest.mark.parametrize(
    "names",
    [
        [*"abcdefABCDEF"],  # case means something
        ["aB3x", "Ab3x", "zQ71", "Zq71", "uu", "vv", "ww", "xx", "yy", "zz", "qq", "rr"],
    ],
)
def test_codes_in_mixed_case_are_no_trap(rng, names):
    table = table_of(rng)
    table["station"] = np.array(names)[np.arange(len(table)) // 40]
    assert traps_of(table) == []


@pytest.mark.parametrize(
    "names",
    [
        ["1.2.3", "1.2.4", "1.10.0", "2.0.1"],  # versions
        ["192.168.1.1", "192.168.1.2", "10.0.0.1", "10.0.0.2"],
        ["2024-01", "2024-02", "2024-03", "2024-04"],
        ["1,2", "1,3", "a", "b"],
        ["01.01.2024", "02.01.2024", "03.01.2024", "total"],
    ],
)
def test_labels_that_are_no_dates_or_numbers(rng, names):
    table = table_of(rng)
    table["hour"] = np.array(names)[table["hour"]]
    assert traps_of(table) == []


@pytest.mark.parametrize("n", [4, 12, 30, 47])
def test_codes_are_told_in_small_tables_too(rng, n):
    for values in (rng.normal(10, 3, n), 5000 * rng.random(n)):
        data = Observations(np.indices((n, 1)).reshape(2, -1).T, values, (n, 1))
        assert find_traps(data, plain_labels(2)) == []
        values[2] = -999
        (found,) = find_traps(data, plain_labels(2))
        assert found.startswith("1 value is -999, ")


def test_a_number_like_a_code_among_its_like_is_none(rng):
    coords = np.indices((40, 1)).reshape(2, -1).T
    for values in (rng.integers(-3000, 3000, 40), rng.integers(-1200, 100, 40)):
        values[5] = -999
        assert (
            find_traps(Observations(coords, values.astype(float), (40, 1)), plain_labels(2)) == []
        )


DISTRIBUTIONS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "lognormal": lambda rng, n: rng.lognormal(sigma=2.0, size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "heavier than Cauchy": lambda rng, n: rng.pareto(0.5, n),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "rounded": lambda rng, n: rng.normal(20, 5, n).round(1),
    "counts": lambda rng, n: rng.poisson(3.0, n).astype(float),
    "negative binomial": lambda rng, n: rng.negative_binomial(0.3, 0.01, n).astype(float),
    "few that are not zero": lambda rng, n: rng.poisson(3.0, n) * (rng.random(n) < 0.05),
    "binary": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "ratings": lambda rng, n: rng.integers(1, 6, n).astype(float),
    "two groups": lambda rng, n: rng.normal(100.0 * (rng.random(n) < 0.3), 1.0),
    "percent": lambda rng, n: (100 * rng.beta(0.3, 0.3, n)).round(),
    "up to 999": lambda rng, n: rng.integers(0, 1000, n).astype(float),
}
TABLES = 60


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_false_alarms_on_random_tables(name, seed):
    """At most one in `TABLES` of every kind; expected are three in 10,000, from heavy tails.

    Cells are drawn with and without replacement, evenly and not, densely and not.
    """
    rng = np.random.default_rng([seed, len(name)])
    alarms = []
    for number in range(TABLES):
        shape = tuple(rng.integers(2, 30, rng.integers(2, 5)).tolist())
        n = int(rng.integers(1, min(3 * np.prod(shape), 3000)))
        if number % 3 == 0:
            cells = rng.permutation(np.prod(shape))[:n]
            coords = np.stack(np.unravel_index(cells, shape), axis=1)
        else:
            weights = [rng.dirichlet(np.full(s, 1.0 if number % 3 == 1 else 1e3)) for s in shape]
            coords = np.stack([rng.choice(len(w), n, p=w) for w in weights], axis=1)
        values = DISTRIBUTIONS[name](rng, len(coords))
        data = Observations(coords, values, shape)
        constant = [each for each in find_traps(data, plain_labels(len(shape))) if "All" in each]
        alarms += [
            each for each in find_traps(data, plain_labels(len(shape))) if each not in constant
        ]
        assert not constant or np.ptp(values) == 0
    assert len(alarms) <= 1, alarms


@pytest.mark.parametrize("name", ["ushcn", "alog", "kinship", "enron", "server_room", "hangzhou"])
def test_no_alarm_on_public_data(data_folder, name):
    """As they are, and as they are trained on; the others are checked in continuous integration."""
    no_alarm(name)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["birmingham", "nyc", "dblp", "indian_pines"])
def test_no_alarm_on_more_public_data(data_folder, name):
    no_alarm(name)


def no_alarm(name):
    data = getattr(datasets, f"load_{name}")()
    labels = Labels(tuple(data.labels), tuple(map(np.asarray, data.labels.values())), "v")
    found = find_traps(Observations(*data.observations[:2], data.shape), labels)
    expected = ["All 193,982 values are 1: there is nothing to learn."] if name == "dblp" else []
    assert found == expected
    train = data.split(data.folds[0]).train
    values = train.values if hasattr(train, "values") else data.tensor[tuple(train.T)]
    coords = train.coords if hasattr(train, "coords") else train
    assert find_traps(Observations(coords, values, data.shape), labels) == []


def test_the_summary_is_one_line(rng, capsys):
    table = table_of(rng)
    data, labels, _ = observe(table, None, None, ["station", "day", "hour"], "t")
    line = summarise_data(data, labels)
    assert line.startswith("station (6) x day (20) x hour (4): 480 values for 480 cells, 100 %, ")
    TensorRing(**QUICK | {"progress": True}).fit(table, modes=list(labels.names), value="t")
    assert line in " ".join(capsys.readouterr().err.split())


def test_traps_are_warnings_of_fit_and_complete(rng):
    table = with_code(table_of(rng))
    gaps = table.copy()
    gaps.loc[100:110, "t"] = np.nan
    named = {"modes": ["station", "day", "hour"], "value": "t"}
    with pytest.warns(DataWarning, match="2 values are -999"):
        TensorRing(**QUICK).fit(table, **named)
    with pytest.warns(DataWarning, match="2 values are -999"):
        complete(gaps, **named, likelihood="gaussian", **QUICK)


def test_a_row_whose_cell_is_known_gets_the_known_value(rng):
    table = table_of(rng)
    asked = table.iloc[[3, 4, 5]].assign(t=np.nan)
    other = table.iloc[[4]].assign(t=table["t"].iloc[4] + 1)
    both = pd.concat([table.drop(index=40), asked, other, table.loc[[40]].assign(t=np.nan)])
    named = {"modes": ["station", "day", "hour"], "value": "t"}
    with pytest.warns(DataWarning, match="1 cell has several rows"):
        found = complete(both, **named, likelihood="gaussian", **QUICK)
    rows = found.table.iloc[479:482]
    for name in ("mean", "lower", "upper"):
        assert rows[name].iloc[0] == table["t"].iloc[3]
        assert rows[name].iloc[2] == table["t"].iloc[5]
    assert rows["std"].tolist()[::2] == [0.0, 0.0]
    assert rows["std"].iloc[1] > 0  # two values are known: it is predicted
    assert found.n_filled == 2
    assert any("2 rows without a value are in cells that other rows" in n for n in found.notes)
    only = complete(
        pd.concat([table, asked]), **named, likelihood="gaussian", **QUICK
    )  # nothing is left to predict
    np.testing.assert_array_equal(only.mean["t"].iloc[480:], table["t"].iloc[3:6])


def test_labels_of_files_are_looked_at_too(tmp_path, rng):
    """Data that are not in memory: their labels and counts are known before anything is learned."""
    sites = np.array(["north", "south", "South ", "east"])
    table = pd.DataFrame(
        {
            "site": sites[rng.integers(0, 4, 300)],
            "kind": [f"kind {k}" for k in rng.integers(0, 6, 300)],
            "year": rng.integers(2000, 2006, 300),
            "y": rng.standard_normal(300),
        }
    )
    table.to_parquet(tmp_path / "table.parquet")
    ring = TensorRing(1, inference="online-em", epochs=2, chains=1, draws=5, progress=False)
    with pytest.warns(DataWarning, match="differs from another only in spaces or case"):
        ring.fit(tmp_path / "table.parquet", modes=["site", "kind", "year"], value="y")
