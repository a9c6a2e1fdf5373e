"""Loads many altered model files and asks each for all it can say: run as a program of its own.

The kernels do no bounds checks, so what goes wrong here may end the interpreter. One line per file:
its number, what was altered, and "works" or "refused"; anything else is a failure.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np

from bayesring import TensorRing, load

HOSTILE = [
    None,
    True,
    -1,
    0,
    1,
    10**400,
    2**63,
    -(2**70),
    1e200,
    -0.5,
    float("inf"),
    "",
    "x" * 5000,
    "\x00\n",
    "a\ud800",
    [],
    [[]],
    {},
    {"class": "RingPrior"},
    {"class": "CorePrior"},
    {"class": "ModePrior"},
    [{"class": "Fixed"}],
    [{"class": "Fixed"}] * 3,
    {"class": ["Gaussian"]},
    [1, 2, 3],
    ["a", "b", "c"],
]
"""What a field of the description may be replaced by."""


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive with the right checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def flip(rng: np.random.Generator, content: bytes) -> bytes:
    changed = bytearray(content)
    for place in rng.integers(0, len(changed), rng.integers(1, 4)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(rng: np.random.Generator, content: bytes) -> bytes:
    return content[: rng.integers(len(content))]


def flip_member(rng: np.random.Generator, content: bytes) -> bytes:
    """Bits of one member, header or data, under a right checksum."""
    members = members_of(content)
    name = str(rng.choice(list(members)))
    members[name] = flip(rng, members[name])
    return zipped(members)


def alter_array(rng: np.random.Generator, content: bytes) -> bytes:
    """Numbers, type or shape of one array."""
    members = members_of(content)
    names = [name for name in members if name.endswith(".npy")]
    if rng.random() < 0.5:  # those by which kernels find their way
        names = [name for name in names if name.endswith(("starts.npy", "bonds.npy"))]
    name = str(rng.choice(names))
    array = np.load(io.BytesIO(members[name]))
    flat = array.reshape(-1).copy()
    choice = rng.integers(6)
    if choice == 0 and flat.dtype.kind in "iuf" and flat.size:
        wild = [0, -1, 1, 7, 2**31, -(2**40), 2**40, 2**62]
        wild += [np.nan, np.inf, 1e200, -1e30] if flat.dtype.kind == "f" else []
        with np.errstate(all="ignore"):
            flat[rng.integers(flat.size)] = np.array(wild[rng.integers(len(wild))]).astype(
                flat.dtype
            )
        array = flat.reshape(array.shape)
    elif choice == 1:
        types = ["U9", "?"] if array.dtype.kind == "U" else ["f4", "c16", "U9", "i1", "u8", ">f8"]
        with np.errstate(all="ignore"):
            array = array.astype(str(rng.choice(types)))
    elif choice == 2:
        array = array[None]
    elif choice == 3:
        array = array.reshape(-1)[:-1]
    elif choice == 4:
        array = array.T
    else:
        members[f"{rng.integers(9)}/{name}"] = members[name]
        del members[name]
        return zipped(members)
    buffer = io.BytesIO()
    np.save(buffer, array)
    members[name] = buffer.getvalue()
    return zipped(members)


def alter_description(rng: np.random.Generator, content: bytes) -> bytes:
    """One field, at any depth, replaced, removed or added."""
    members = members_of(content)
    description = json.loads(members["description.json"])
    places = []

    def walk(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(description)
    node, key = places[rng.integers(len(places))]
    choice = rng.integers(8)
    if choice == 0:
        del node[key]
    elif choice == 1 and isinstance(node, dict):
        node["surprise"] = 1
    else:
        node[key] = HOSTILE[rng.integers(len(HOSTILE))]
    members["description.json"] = json.dumps(description).encode()
    return zipped(members)


CHANGES = (
    lambda numbers: -numbers,
    lambda numbers: numbers[..., ::-1],
    lambda numbers: numbers * 0,
    lambda numbers: numbers + 1,
    lambda numbers: numbers * 0.01,
    lambda numbers: numbers * 1e6,
    lambda numbers: numbers * 1e99,
    lambda numbers: numbers * 1e300,
    lambda numbers: np.sign(numbers) * 1e-99,
)
"""Numbers of the right type and shape, which may not be what they should."""


def mislead_by_array(rng: np.random.Generator, content: bytes) -> bytes:
    """All numbers of one array changed alike."""
    members = members_of(content)
    names = [name for name in members if name.endswith(".npy")]
    name = str(rng.choice(names))
    array = np.load(io.BytesIO(members[name]))
    if array.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            changed = CHANGES[rng.integers(len(CHANGES))](np.atleast_1d(array))
            array = changed.reshape(array.shape).astype(array.dtype)
    buffer = io.BytesIO()
    np.save(buffer, array)
    members[name] = buffer.getvalue()
    return zipped(members)


def mislead_by_description(rng: np.random.Generator, content: bytes) -> bytes:
    """One number, or a list of numbers, changed."""
    members = members_of(content)
    description = json.loads(members["description.json"])
    places = []

    def walk(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            found = node[key] if isinstance(node[key], list) else [node[key]]
            if found and all(type(each) in (int, float) for each in found):
                places.append((node, key))
            elif isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(description)
    node, key = places[rng.integers(len(places))]
    numbers = np.atleast_1d(node[key])
    with np.errstate(all="ignore"):
        changed = CHANGES[rng.integers(len(CHANGES))](numbers)
    if numbers.dtype.kind == "i" and np.abs(changed).max() < 2**53:
        changed = np.rint(changed).astype(int)
    node[key] = changed.tolist() if isinstance(node[key], list) else changed.tolist()[0]
    members["description.json"] = json.dumps(description).encode()
    return zipped(members)


MUTATIONS = (
    flip,
    cut,
    flip_member,
    alter_array,
    alter_array,
    alter_description,
    mislead_by_array,
    mislead_by_description,
)


def check_answers(model, cells: np.ndarray) -> None:
    """Numbers that a distribution can have."""
    binary, n = model.posterior_.likelihood.binary, len(cells)
    mean, std = TensorRing.predict(model, cells, return_std=True)
    ends = [end for level in (0.98, 0.9, 0.1) for end in model.predict_interval(cells, level)]
    for numbers in (mean, std, *ends):
        assert numbers.shape == (n,)
        assert np.isfinite(numbers).all(), numbers
        assert not binary or ((numbers >= 0) & (numbers <= 1)).all(), numbers
    assert (std >= 0).all(), std
    lowest, low, lower, upper, high, highest = (*ends[::2], *ends[::-2])
    steps = np.diff([lowest, low, lower, upper, high, highest], axis=0)
    assert (steps >= -1e-9 * np.abs(ends).max(axis=0)).all(), ends
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(cells), np.stack([1 - mean, mean], axis=1))


def judge(path: Path, cells: np.ndarray) -> str:
    try:
        model = load(path)
    except ValueError as error:
        message = str(error)
        named = message.startswith(f"{path} ") and not isinstance(error, UnicodeError)
        one_sentence = message.endswith(".") and "\n" not in message and len(message) < 1000
        return "refused" if named and one_sentence else f"refused badly: {message}"
    check_answers(model, cells % np.array(model.shape_))
    model.diagnostics()
    model.report(path.with_suffix(".html"), progress=False)
    return "works"


def main(seed: int, n: int, folder: str, *sources: str) -> None:
    warnings.simplefilter("ignore")
    contents = [Path(source).read_bytes() for source in sources]
    cells = np.random.default_rng(0).integers(0, 1000, (20, 3))
    path = Path(folder) / "altered.ring"
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        mutate = MUTATIONS[number % len(MUTATIONS)]
        path.write_bytes(mutate(rng, contents[rng.integers(len(contents))]))
        outcome = judge(path, cells)
        sys.stdout.write(f"{number} {mutate.__name__} {outcome}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
