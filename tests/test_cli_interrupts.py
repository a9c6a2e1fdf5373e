"""Commands that are interrupted: what they write, and how they go on."""

from __future__ import annotations

import json

import pytest

from bayesring.infer import chains
from tests.shell import KEYS, QUICK, call_main, run, small_table


@pytest.fixture(scope="module")
def text():
    return small_table()


@pytest.fixture
def source(text, tmp_path):
    (tmp_path / "in.csv").write_text(text)
    return tmp_path / "in.csv"


@pytest.fixture
def interrupted(monkeypatch):
    """Fits that are interrupted, as by Ctrl-C, after eleven scans; three of them are kept."""
    step = chains.Chain.step

    def end(self, *arguments):
        if self.scan == 11:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(chains.Chain, "step", end)


@pytest.mark.parametrize("command", ["complete", "fit"])
def test_an_interrupted_command_writes_only_if_asked(
    monkeypatch, capsys, source, interrupted, command
):
    target = source.with_name("out.csv" if command == "complete" else "out.ring")
    arguments = [command, source, *KEYS, "-o", target, *QUICK]
    assert call_main(monkeypatch, *arguments) == 130
    assert "interrupted; no result was written." in capsys.readouterr().err
    assert not target.exists()
    assert call_main(monkeypatch, *arguments[:-1], "--keep-partial", "--json") == 130
    found = json.loads(capsys.readouterr().out)
    assert found["interrupted"]
    assert any("its chains have 3 draws of the 6 asked for" in each for each in found["notes"])
    assert target.exists()


@pytest.mark.parametrize("command", ["complete", "fit"])
def test_commands_go_on_from_their_checkpoint(monkeypatch, capsys, source, interrupted, command):
    """With the scans that were done, and the bytes of a run that nobody disturbed."""
    folder = source.with_name("kept")
    names = ["one", "two"] if command == "fit" else ["one.csv", "two.csv"]
    first, second = (source.with_name(name) for name in names)
    arguments = [command, source, *KEYS, "-o", first, *QUICK]
    kept = ["--checkpoint", folder, "--checkpoint-every", "0"]
    assert call_main(monkeypatch, *arguments, *kept) == 130
    assert f"resume from {folder}" in " ".join(capsys.readouterr().err.split())
    monkeypatch.undo()
    scans, step = [], chains.Chain.step
    monkeypatch.setattr(
        chains.Chain, "step", lambda self, *rest: scans.append(self.scan) or step(self, *rest)
    )
    assert run(*arguments, *kept).exit_code == 0
    assert scans == [11, 12, 13]
    assert run(command, source, *KEYS, "-o", second, *QUICK).exit_code == 0
    assert first.read_bytes() == second.read_bytes()
