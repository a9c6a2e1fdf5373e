"""Cases over the command line: options, files and their mistakes, in this process."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from random import Random
from unittest import mock

from bayesring.command import cli
from tests.fuzz.files import MODELS, refuse, valid
from tests.fuzz.hostile import TEXTS, altered
from tests.fuzz.judging import is_sentence

TABLE = "a,b,v\n" + "".join(
    f"s{i},{j},{i + j if i != j else ''}\n" for i in range(4) for j in range(3)
)
OPTIONS = {
    "--modes": ["a,b", "a", "b,a", "x", "", "a,a", "a,v"],
    "--value": ["v", "a", "w", ""],
    "--fill": ["missing", "all", "some"],
    "--level": ["0.5", "0", "1", "nan", "x", "-1", "1e-9"],
    "--likelihood": ["auto", "gaussian", "bernoulli", "gausian", ""],
    "--rank": ["1", "2", "0", "-1", "1,1", "1,2,1", "1.5", "auto", "\u0663", "99999999999", ""],
    "--chains": ["1", "0", "-1", "x"],
    "--draws": ["1", "2", "0", "x"],
    "--warmup": ["0", "2", "-1"],
    "--seed": ["0", "1", "-1", "99999999999999999999999"],
    "--jobs": ["1", "0", "-1", "2"],
    "--checkpoint-every": ["0", "-1", "nan"],
    "--inference": ["gibbs", "online-em", "magic"],
    "--sep": [",", ";", "tab", "::", "", "\n", "a"],
    "--decimal": [".", ",", "", "x"],
    "--encoding": ["utf-8", "latin-1", "utf-16", "utf-7", "idna", "punycode", "base64", "no", ""],
    "--na": ["-999", "x,y", "", ",", "nan", "1e400", "0"],
    "--sheet": ["a", ""],
    "--mask": ["a", "a,b", "", "x"],
}
FLAGS = ["--dry-run", "--json", "--quiet", "--keep-partial", "--help", "--nothing"]
KNOWN = {
    "complete": ["--modes", "--value", "--fill", "--level", "--likelihood", "--rank", "--chains",
                 "--draws", "--warmup", "--seed", "--jobs", "--checkpoint-every"],
    "fit": ["--modes", "--value", "--likelihood", "--rank", "--inference", "--chains", "--draws",
            "--warmup", "--seed", "--jobs"],
    "predict": ["--level"],
    "report": [],
}  # fmt: skip
QUICK = ["--draws", "2", "--warmup", "2", "--chains", "1", "--rank", "1", "--jobs", "1", "-q"]


def command(rng: Random, folder: Path) -> None:
    """One call with some of its options wrong."""
    name = rng.choice(
        ["complete", "complete", "complete", "fit", "fit", "predict", "predict", "report"]
    )
    own = [option for option in KNOWN[name] if rng.randrange(5) == 0]
    words = [name, *_places(rng, name, folder)]
    if name in ("complete", "fit"):
        words += QUICK
    for option in own:
        words += [option, rng.choice(OPTIONS[option])]
    if rng.randrange(6) == 0:
        words.append(rng.choice(FLAGS))
    if rng.randrange(12) == 0:
        words.insert(rng.randrange(len(words)), rng.choice(TEXTS))
    code, said = call(words, TABLE.encode())
    if code == 0:
        return
    assert code == 2, (words, code, said)
    assert "Traceback" not in said, said
    assert "a fault of bayesring" not in said, (words, said)
    words_of_refusal = ("error: ", "Error", "Usage", '"error":')
    assert any(each in said for each in words_of_refusal), (words, said)
    if "error: " in said:
        sentence = said[said.index("error: ") :].strip()
        assert is_sentence(sentence), (words, said)
    refuse()


def _places(rng: Random, name: str, folder: Path) -> list[str]:
    """Input and output files."""
    ending = rng.choice([".csv", ".csv", ".csv", ".parquet", ".npy", ".npz", ".nc"])
    source = folder / f"in{ending}"
    content = TABLE.encode() if ending == ".csv" else rng.choice(valid(ending))
    source.write_bytes(altered(rng, content) if rng.randrange(4) == 0 else content)
    given = rng.choice([str(source)] * 8 + ["-", str(folder), str(folder / "none.csv")])
    model = folder / "model.ring"
    content = rng.choice(MODELS).read_bytes()
    model.write_bytes(altered(rng, content) if rng.randrange(8) == 0 else content)
    if name == "report":
        return [str(model), "-o", str(folder / rng.choice(["r.html", "none/r.html"])), "-q"]
    table = ending in (".csv", ".parquet")
    out = folder / rng.choice([f"out{ending}"] * 4 + ["out.csv", "out.txt", "none/out.csv", ""])
    target = rng.choice([str(out)] * 9 + ["-"])
    if name == "fit":
        out = folder / rng.choice(["out.ring", "out.ring", "none/x", f"in{ending}"])
        return [given, "-o", str(out), *(["--modes", "a,b", "--value", "v"] if table else [])]
    if name == "predict":
        return [str(model), given, "-o", target]
    named = ["--modes", "a,b", "--value", "v"] if table and rng.randrange(4) else []
    return [given, "-o", target, *named]


def call(words: list[str], standard_input: bytes = b"") -> tuple[int, str]:
    """Exit code of a command, and what it wrote to standard error."""
    said, printed = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(standard_input))
    with (
        mock.patch.object(sys, "argv", ["bayesring", *words]),
        mock.patch.object(sys, "stdin", given),
        mock.patch.dict(os.environ, {"COLUMNS": "200", "NO_COLOR": "1"}),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(printed),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
            return code, said.getvalue() + (printed.getvalue() if "--json" in words else "")
    return 0, said.getvalue()
