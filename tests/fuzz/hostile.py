"""Generated input, from harmless to hostile; every choice is made by a `random.Random`.

Hypothesis can provide that generator, so that a failing case is shrunk; so can a seed, which is
quicker.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np

NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    5e-324,
    -5e-324,
    2.2e-308,
    1e-300,
    -1e-300,
    1e300,
    -1e300,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    1e16 + 2,
    2.0**53,
    2.0**53 + 2,
    1e12,
]
"""Finite values at the edges of what a float can hold."""
INTEGERS = [0, 1, -1, 2**31 - 1, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
TEXTS = [
    "",
    " ",
    "NA",
    "nan",
    "None",
    "-",
    "007",
    "1e5",
    "=1+1",
    "+x",
    "-x",
    "@x",
    "a,b",
    'a"b',
    "a\nb",
    "a\r\nb",
    "a\rb",
    "a\tb",
    ";",
    "\u2028",
    "\u202eabc",
    "\ufeff",
    "e\u0301",
    "\u00e9",
    "\U0001f600",
    "<script>",
    "2001-01-01",
    "2001-01-01T00:00:00",
    "True",
    "x" * 300,
    "\x1b[31m",
    "'",
    "[red]",
]
WRONG: list[Callable[[Random], Any]] = [
    lambda rng: None,
    lambda rng: rng.choice([True, False]),
    lambda rng: rng.choice(INTEGERS),
    lambda rng: 10**400,
    lambda rng: rng.choice([*NUMBERS, float("nan"), float("inf"), float("-inf")]),
    lambda rng: rng.choice(TEXTS),
    lambda rng: b"bytes",
    lambda rng: 1j,
    lambda rng: [],
    lambda rng: (),
    lambda rng: {},
    lambda rng: [[]],
    lambda rng: [None],
    lambda rng: ["a", 1],
    lambda rng: [1, [2, 3]],
    lambda rng: {"a": 1},
    lambda rng: {1, 2},
    lambda rng: object(),
    lambda rng: object,
    lambda rng: Decimal("1.5"),
    lambda rng: datetime.date(2001, 2, 3),
    lambda rng: np.array(rng.choice(NUMBERS)),
    lambda rng: np.array([]),
    lambda rng: np.zeros((2, 0)),
    lambda rng: np.zeros((0, 2)),
    lambda rng: np.zeros((2, 2, 2)),
    lambda rng: np.array([["a", "b"]]),
    lambda rng: np.array([[1, 2], [3, 4]], dtype=object),
    lambda rng: np.array([[1, 2]], dtype="m8[s]"),
    lambda rng: np.array([[1, 2]], dtype="M8[D]"),
    lambda rng: np.array([[1 + 1j, 2]]),
    lambda rng: np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    lambda rng: np.ma.masked_array([[1, 2]], mask=[[True, False]]),
    lambda rng: np.array([[rng.choice(INTEGERS), 0]]),
    lambda rng: np.array([[0.0, rng.choice([*NUMBERS, float("nan"), float("inf")])]]),
    lambda rng: np.array([[2**64 - 1, 0]], dtype=np.uint64),
    lambda rng: range(3),
    lambda rng: iter([1, 2]),
    lambda rng: lambda x: x,
]
"""What nobody should give, whatever the argument."""


def wrong(rng: Random) -> Any:
    """Something of the wrong kind, or at its edge."""
    return rng.choice(WRONG)(rng)


def numpy_rng(rng: Random) -> np.random.Generator:
    """For arrays too long to be chosen number by number."""
    return np.random.default_rng(rng.getrandbits(32))


def values(rng: Random, n: int) -> np.ndarray:
    """Finite values of one of many kinds."""
    kind = rng.randrange(11)
    normal = numpy_rng(rng).standard_normal(n)
    if kind == 0:
        return np.array([rng.choice(NUMBERS) for _ in range(n)])
    if kind == 1:
        return np.full(n, rng.choice(NUMBERS))
    if kind == 2:
        return normal * rng.choice([5e-324, 1e-310, 1e-300, 1e-150, 1e150, 1e300])
    if kind == 3:
        return normal + rng.choice([1e6, 1e12, 1e16, -1e100])
    if kind == 4:
        return (normal > 0) * 1.0
    if kind == 5:
        normal[rng.randrange(n)] = rng.choice([1e12, -1e12, 1e200])
        return normal
    if kind == 6:
        return np.round(normal * 100).astype(
            rng.choice([np.int8, np.int16, np.int32, np.int64, np.float32])
        )
    return normal


def keys(rng: Random, n: int) -> list[Any]:
    """A key for each of `n` rows, all of one kind, most of them repeated."""
    day = datetime.date(2001, 1, 1)
    kinds: list[list[Any]] = [
        ["a", "b", "c"],
        [*rng.sample(TEXTS, 4), "z"],
        [chr(rng.randrange(32, 0xD800)) for _ in range(3)],
        [0, 1, 2],
        rng.sample(INTEGERS, 3),
        [0.5, 1.0, -2.25],
        rng.sample(NUMBERS, 3),
        [day + datetime.timedelta(rng.randrange(9)) for _ in range(3)],
        [datetime.datetime(2001, 1, 1, rng.randrange(24), 5, 6, 7) for _ in range(3)],
        [datetime.timedelta(rng.randrange(9), 5) for _ in range(3)],
        [True, False],
    ]
    few = rng.choice(kinds)
    return [rng.choice(few) for _ in range(n)]


def altered(rng: Random, content: bytes) -> bytes:
    """A file with some of its bytes flipped, replaced, cut, repeated or added."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(changed) + 1)
        kind = rng.randrange(8)
        if kind <= 2 and place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == 3 and place < len(changed):
            changed[place] = rng.choice([0, 1, 127, 128, 255, 34, 44, 10, 13])
        elif kind == 4:
            del changed[place:]
        elif kind == 5:
            del changed[place : place + rng.randrange(1, 20)]
        elif kind == 6:
            changed[place:place] = changed[place : place + rng.randrange(1, 40)]
        else:
            word = rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1])
            width = 8 if word >= 2**32 else rng.choice([4, 8])
            changed[place : place + width] = word.to_bytes(width, "little")
    return bytes(changed)
