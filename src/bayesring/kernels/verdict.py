"""Whether the vector building blocks can be used, checked once per machine and cached.

They are checked in a separate process, because broken code may crash the process it runs in. The
verdict is a small file next to the kernels that Numba caches on disk. Its name encodes everything
it depends on: these sources, the versions of Python, Numba and llvmlite, and the CPU.
"""

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import llvmlite
import llvmlite.binding
import numba
from numba import config, njit

VARIABLE = "BAYESRING_PLAIN_KERNELS"
"""Environment variable that requests plain loops unless it is empty or 0."""
PATIENCE = 120.0
"""Time limit in seconds for the check in a separate process."""
_PROGRAM = """
import runpy, sys, types
package = types.ModuleType("bayesring")  # without all that importing the package would do
package.__path__ = sys.argv[1:]
sys.modules["bayesring"] = package
runpy.run_module("bayesring.kernels.selftest", run_name="__main__")
"""
_HERE = Path(__file__).resolve().parent
_CRASHES = {
    -getattr(signal, name)
    for name in ("SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE", "SIGABRT", "SIGTRAP")
    if hasattr(signal, name)
} | {0xC0000005, 0xC000001D}
"""Exit codes of a process that crashed on bad code; the last two are from Windows."""


@njit(cache=True)
def _anything():
    """Never called; the verdict is kept where Numba would cache this function."""


def use_vectors():
    """Whether kernels are built from vectors; warns once per process if they cannot be."""
    if os.environ.get(VARIABLE, "0") not in ("", "0") or config.DISABLE_JIT:
        return False
    reason = remembered_failure()
    if reason:
        warnings.warn(
            f"vector code does not work with numba {numba.__version__} and llvmlite "
            f"{llvmlite.__version__} on this machine ({reason}); bayesring uses plain loops, "
            "which are slower",
            RuntimeWarning,
            stacklevel=2,
        )
    return not reason


def sources(*names):
    """Digest of these files in this folder, or of all files that kernels are compiled from."""
    digest = hashlib.sha256()
    for path in [_HERE / name for name in names] or sorted(_HERE.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def environment():
    """Everything that a verdict depends on."""
    return {
        "sources": sources("vectors.py", "masked.py", "selftest.py"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "cpu": config.CPU_NAME or llvmlite.binding.get_host_cpu_name(),
        "features": config.CPU_FEATURES or llvmlite.binding.get_host_cpu_features().flatten(),
    }


def remembered_failure():
    """Why vectors do not work here, empty if they do; runs the check if there is no file."""
    here = environment()
    name = hashlib.sha256(json.dumps(here, sort_keys=True).encode()).hexdigest()[:16]
    path = Path(_anything.stats.cache_path) / f"vectors-{name}.json"
    try:
        return str(json.loads(path.read_text())["failure"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    # If nothing can be cached, every process checks, and a second process each time is expensive.
    reason = check_apart() if os.access(path.parent, os.W_OK) else None
    if reason is None:
        from bayesring.kernels import selftest

        reason = selftest.failure()
    remember(path, {"failure": reason, "environment": here})
    return reason


def check_apart():
    """Run the check in a separate process: what fails, or None if the check could not run.

    A program that embeds Python may not be able to start another Python; its name shows that.
    """
    from bayesring.kernels import selftest

    program = Path(sys.executable or "")
    if getattr(sys, "frozen", False) or not program.stem.lower().startswith(("python", "pypy")):
        return None
    paths = os.pathsep.join(filter(None, sys.path))
    try:
        done = subprocess.run(
            [program, "-P", "-W", "ignore", "-c", _PROGRAM, str(_HERE.parent)],
            env=os.environ | {"PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode == selftest.WORKS:
        return ""
    if done.returncode == selftest.FAILS:
        return (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    if done.returncode in _CRASHES:
        return f"the check crashed with code {done.returncode}"
    return None


def remember(path, verdict):
    """Write the file atomically; without it, the next process checks again."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(verdict, file)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
    except OSError:
        pass
