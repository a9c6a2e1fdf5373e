"""Files that are not left alone while a fit reads them: one sentence, never other numbers."""

from __future__ import annotations

import os
import signal

import pytest

from bayesring.data.parquet.reading import ParquetFiles
from bayesring.engine.dask import Cluster
from bayesring.engine.spread import spread_over
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import NormalWishart, RingPrior
from tests.cluster.local import MODES, long_table, make_whole

PLAIN = {"compression": "none", "write_statistics": False, "use_dictionary": False}
"""Files of the same rows with other values have the same size and the same footer."""


@pytest.fixture
def log(tmp_path, rng):
    frame = long_table(rng, 400)
    for name in ("a", "b"):
        frame.to_parquet(tmp_path / f"{name}.parquet", row_group_size=100, **PLAIN)
    return frame


def read_all(files):
    return [
        part.batch.column("y").to_pylist() for each in files.groups for part in files.read(each)
    ]


def replace(frame, path):
    frame.assign(y=2.0 * frame["y"]).to_parquet(path, row_group_size=100, **PLAIN)


def test_other_values_of_the_same_size(log, tmp_path):
    opened = ParquetFiles(tmp_path, MODES, "y")
    before = [own.stat().st_size for own in sorted(tmp_path.iterdir())]
    replace(log, tmp_path / "b.parquet")
    assert [own.stat().st_size for own in sorted(tmp_path.iterdir())] == before
    for again in (lambda: opened, lambda: ParquetFiles(tmp_path, MODES, "y", opened.stamps)):
        with pytest.raises(ValueError, match=r"^File b.parquet was changed after .* has ended\.$"):
            read_all(again())
    (tmp_path / "b.parquet").unlink()
    for again in (lambda: opened, lambda: ParquetFiles(tmp_path, MODES, "y", opened.stamps)):
        with pytest.raises(ValueError, match=r"^File b.parquet was there .* \(No such file or"):
            read_all(again())


def test_a_file_that_is_put_in_the_place_of_another(log, tmp_path):
    """Older than the data, as after mv."""
    other = tmp_path / "other"
    replace(log, other)
    os.utime(other, (1, 1))
    opened = ParquetFiles(tmp_path, MODES, "y")
    other.rename(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"^File a.parquet was changed after the data were open"):
        read_all(opened)


def test_a_file_that_is_changed_while_it_is_read(log, tmp_path):
    opened = ParquetFiles(tmp_path, MODES, "y")
    batches = opened.read(opened.groups[0])
    next(batches)
    replace(log, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"^File a.parquet was changed after the data were open"):
        list(batches)


def test_copies_on_other_machines_and_files_that_come_later(log, tmp_path):
    """Times may differ if the copy was made before; a log may go on to grow."""
    opened = ParquetFiles(tmp_path, MODES, "y")
    elsewhere = [
        own._replace(modified=own.modified - 10**9, opened=own.opened + 10**9)
        for own in opened.stamps
    ]
    (tmp_path / "aa.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    again = ParquetFiles(tmp_path, MODES, "y", elsewhere)
    assert again.groups == opened.groups
    assert str(read_all(again)) == str(read_all(opened))
    other = [own._replace(footer=own.footer + 1) for own in elsewhere]
    with pytest.raises(ValueError, match=r"^File a.parquet was changed"):
        ParquetFiles(tmp_path, MODES, "y", other)


@pytest.mark.ci
@pytest.mark.parametrize("gone", [True, False])
def test_a_worker_is_lost_after_a_file(client, log, tmp_path, gone):
    """Its blocks cannot be made again."""
    streams = Streams.of_chain(7, 0)
    with Cluster(client) as engine:
        read = engine.read_files(tmp_path, tuple(MODES), "y")
        data = spread_over(engine, read, MODES, "y")[0].standardised(1.0, 1.0)
        problem = make_problem(data, Gaussian(), RingPrior.of(NormalWishart()), engine=engine)
        state = gibbs.init(streams, problem, RingSize(1, (2, 3, 2)))
        state, _ = gibbs.step(streams, 1, state, problem, engine)
        replace(log, tmp_path / "a.parquet")
        if gone:
            (tmp_path / "a.parquet").unlink()
        for process in client.run(os.getpid).values():
            os.kill(process, signal.SIGKILL)
        with pytest.raises(ValueError, match=r"^File a.parquet was (there|changed)"):
            gibbs.step(streams, 2, state, problem, engine)
    make_whole(client)
