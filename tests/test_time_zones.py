"""Keys that are times with a time zone."""

from __future__ import annotations

import datetime
import json
import re
import zipfile
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesring import TensorRing, complete, load
from bayesring.data.labels import Zone
from bayesring.data.parquet import Coding, ParquetRows
from tests.hostile_models import members_of, zipped

QUICK = {"rank": 1, "warmup": 2, "draws": 3, "chains": 1, "random_state": 0, "progress": False}
BERLIN = ZoneInfo("Europe/Berlin")
TIMES = [datetime.datetime(2024, 7, 1, hour, tzinfo=BERLIN) for hour in (2, 5, 2, 8)]
ITEMS, VALUES = ["x", "y", "y", "x"], [1.0, 2.0, 3.0, 4.0]
COLUMNS = {"t": TIMES, "i": ITEMS, "v": VALUES}
UTC = ["2024-07-01T00", "2024-07-01T03", "2024-07-01T06"]


def in_pandas(unit="ns"):
    frame = pd.DataFrame(COLUMNS)
    return frame.assign(t=pd.to_datetime(frame["t"]).dt.as_unit(unit))


def in_polars():
    return pl.DataFrame(COLUMNS, schema_overrides={"t": pl.Datetime("us", "Europe/Berlin")})


def in_pyarrow():
    return pa.table({**COLUMNS, "t": pa.array(TIMES, pa.timestamp("ms", "Europe/Berlin"))})


TABLES = {"pandas": in_pandas, "polars": in_polars, "pyarrow": in_pyarrow}


def type_of(table):
    return table.schema.field("t").type if isinstance(table, pa.Table) else table["t"].dtype


def listed(table, name="t"):
    column = table[name]
    return column.to_pylist() if isinstance(table, pa.Table) else list(column)


@pytest.mark.parametrize("kind", TABLES)
def test_labels_remember_the_zone_and_tables_have_it_again(tmp_path, kind):
    table = TABLES[kind]()
    TensorRing(**QUICK).fit(table, modes=["t", "i"], value="v").save(tmp_path / "x.ring")
    ring = load(tmp_path / "x.ring")
    levels = ring.labels_.levels[0]
    np.testing.assert_array_equal(levels, np.array(UTC, dtype="M8[s]"))
    unit = {"pandas": "ns", "polars": "us", "pyarrow": "ms"}[kind]
    assert ring.labels_.zones == (Zone("Europe/Berlin", unit), None)
    for made in (ring.suggest(2), ring.predict_table(table)):
        assert type(made) is type(table)
        assert type_of(made) == type_of(table)
    assert set(listed(ring.suggest(9))) == {TIMES[1], TIMES[3]}  # the other cells are known
    assert listed(ring.predict_table(table)) == TIMES


@pytest.mark.parametrize("kind", TABLES)
def test_any_zone_may_be_asked_for(kind):
    table = TABLES[kind]()
    ring = TensorRing(**QUICK).fit(table, modes=["t", "i"], value="v")
    expected = listed(ring.predict_table(table), "mean")
    tokyo = in_pandas("us").assign(t=lambda frame: frame["t"].dt.tz_convert("Asia/Tokyo"))
    objects = pd.DataFrame(COLUMNS).astype({"t": object})
    for other in (*(make() for make in TABLES.values()), tokyo, objects):
        assert listed(ring.predict_table(other), "mean") == expected
    assert type_of(ring.predict_table(tokyo)) == tokyo["t"].dtype


def naive(table):
    return table.assign(t=table["t"].dt.tz_localize(None))


def test_naive_and_aware_times_are_refused_for_each_other():
    table = in_pandas()
    aware = TensorRing(**QUICK).fit(table, modes=["t", "i"], value="v")
    message = (
        "column 't' holds times without a time zone, but the model was fitted with times in the "
        "time zone Europe/Berlin; give both with a zone or both without."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        aware.predict(naive(table))
    plain = TensorRing(**QUICK).fit(naive(table), modes=["t", "i"], value="v")
    assert plain.labels_.zones == (None, None)
    message = "holds times in the time zone Europe/Berlin, but the model was fitted with times with"
    with pytest.raises(ValueError, match=message):
        plain.predict(table)
    with pytest.raises(ValueError, match=message):
        plain.predict(pd.DataFrame(COLUMNS).astype({"t": object}))
    plain.predict(naive(table))


def test_python_times_of_several_zones_are_the_same_times():
    mixed = [TIMES[0], *(time.astimezone(ZoneInfo("Asia/Tokyo")) for time in TIMES[1:])]
    table = pd.DataFrame({**COLUMNS, "t": pd.Series(mixed, dtype=object)})
    ring = TensorRing(**QUICK).fit(table, modes=["t", "i"], value="v")
    np.testing.assert_array_equal(ring.labels_.levels[0], np.array(UTC, dtype="M8[s]"))
    assert ring.labels_.zones[0] == Zone("Europe/Berlin", "us")
    table.loc[2, "t"] = datetime.datetime(2024, 7, 1)
    with pytest.raises(ValueError, match="holds a time without a time zone in row 2, but one with"):
        TensorRing(**QUICK).fit(table, modes=["t", "i"], value="v")


def test_differences_to_utc_are_zones():
    hours = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    times = pd.Series([time.astimezone(hours) for time in TIMES], dtype=object)
    ring = TensorRing(**QUICK).fit(pd.DataFrame({**COLUMNS, "t": times}), modes=["t", "i"])
    assert set(ring.suggest(9)["t"]) == {TIMES[1], TIMES[3]}
    assert {time.utcoffset() for time in ring.suggest(9)["t"]} == {hours.utcoffset(None)}


class Local(datetime.tzinfo):
    """A zone that has no name by which it could be found again, such as those of dateutil."""

    def utcoffset(self, when):
        return datetime.timedelta(hours=5)

    def dst(self, when):
        return datetime.timedelta(0)


def test_times_of_a_zone_without_a_name_are_given_in_utc(tmp_path):
    times = pd.Series([time.astimezone(Local()) for time in TIMES], dtype=object)
    ring = TensorRing(**QUICK).fit(pd.DataFrame({**COLUMNS, "t": times}), modes=["t", "i"])
    assert ring.labels_.zones[0] == Zone("UTC", "us")
    ring.save(tmp_path / "model.ring")
    assert set(load(tmp_path / "model.ring").suggest(9)["t"]) == {TIMES[1], TIMES[3]}


def test_completed_tables_keep_their_zone():
    settings = {name: each for name, each in QUICK.items() if name != "rank"}
    table = complete(in_pandas(), modes=["t", "i"], value="v", fill="all", rank=1, **settings).table
    assert len(table) == 6
    assert table["t"].dtype == in_pandas()["t"].dtype


def test_zones_of_parquet_files(tmp_path):
    parquet.write_table(in_pyarrow(), tmp_path / "aware.parquet")
    parquet.write_table(pa.Table.from_pandas(naive(in_pandas("ms"))), tmp_path / "naive.parquet")
    aware, plain = (
        ParquetRows(tmp_path / f"{name}.parquet", ["t", "i"], "v") for name in ("aware", "naive")
    )
    labels = aware.survey().labels
    assert labels.zones == (Zone("Europe/Berlin", "ms"), None)
    np.testing.assert_array_equal(labels.levels[0], np.array(UTC, dtype="M8[s]"))
    assert plain.survey().labels.zones == (None, None)
    with pytest.raises(ValueError, match="'t' holds times without a time zone, but the model was"):
        list(plain.chunks(Coding(labels), 0, 0))
    with pytest.raises(ValueError, match="'t' holds times in the time zone Europe/Berlin, but the"):
        list(aware.chunks(Coding(plain.survey().labels), 0, 0))
    settings = {"inference": "online-em", "rank": 1, "epochs": 1, "draws": 2}
    ring = TensorRing(**settings, random_state=0, progress=False)
    ring.fit(tmp_path / "aware.parquet", modes=["t", "i"], value="v")
    assert listed(ring.predict_table(in_polars()), "mean") == listed(
        ring.predict_table(in_pandas()), "mean"
    )


@pytest.fixture
def path(tmp_path):
    TensorRing(**QUICK).fit(in_pandas(), modes=["t", "i"], value="v").save(tmp_path / "x.ring")
    return tmp_path / "x.ring"


def with_zones(path, change):
    """Rewrite the file with a change to what it says of labels."""
    members = members_of(path.read_bytes())
    description = json.loads(members["description.json"])
    change(description["labels"])
    members["description.json"] = json.dumps(description).encode()
    path.write_bytes(zipped(members))


def test_files_from_before_zones_were_kept_take_any_times(path):
    with_zones(path, lambda labels: labels.pop("zones"))
    ring = load(path)
    assert ring.labels_.zones == ()
    shifted = in_pandas().assign(t=pd.to_datetime(UTC)[[0, 1, 0, 2]])
    assert listed(ring.predict_table(in_pandas()), "mean") == listed(
        ring.predict_table(shifted), "mean"
    )


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        ([["Europe/Berlin", "ns"]], "the labels must have 2 time zones"),
        ([["Europe/Berlin", "h"], None], "must be names and units"),
        ([["../../etc/passwd", "ns"], None], "must be names and units"),
        ([None, ["UTC", "ns"]], "labels of mode 1 have a time zone, but are not times"),
        ({"a": 1}, "must be names and units"),
    ],
)
def test_zones_of_files_are_checked(path, zones, message):
    with_zones(path, lambda labels: labels.update(zones=zones))
    assert zipfile.is_zipfile(path)
    with pytest.raises(ValueError, match=f"x.ring is not a complete bayesring model: .*{message}"):
        load(path)
