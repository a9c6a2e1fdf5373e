"""Compare the bits of the code as it stands with those of the recorded commit, on this machine.

Run by `make same-bits`; `hashes.json` names the commit.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def hashes(source: Path, target: Path) -> dict[str, dict]:
    """What the fits give with the library found in `source`."""
    command = [sys.executable, str(HERE / "fits.py"), str(target)]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(source)})
    return json.loads(target.read_text())["fits"]


def main() -> None:
    """Build, run, compare, and say which fits differ in what."""
    commit = json.loads((HERE / "hashes.json").read_text())["commit"]
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        sys.exit(f"commit {commit} is not in this clone; fetch the whole history first.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        before = hashes(folder / "src", folder / "before.json")
        after = hashes(ROOT / "src", folder / "after.json")
    differing = [name for name in before if before[name] != after.get(name)]
    for name in differing:
        print(f"{name}\n  {commit[:7]}: {before[name]}\n  now:     {after.get(name)}")
    print(f"{len(before) - len(differing)} of {len(before)} fits give the bits of {commit[:7]}.")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
