"""Hash tables: the codes of a dictionary of Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bayesring.data.parquet.keycoding import NumberCoder, TextCoder

SHIFTED = st.integers(0, 9).map(lambda number: number << 32)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | SHIFTED


def check(coder, keys, known):
    """Codes count in the order of learning; other keys are unknown."""
    expected = [known.index(key) if key in known else -1 for key in keys]
    out = np.empty((len(keys), 2), dtype=np.int32)
    column = pa.array(keys, pa.int64() if isinstance(coder, NumberCoder) else pa.string())
    unknown = coder.code(column, out[:, 1])
    assert out[:, 1].tolist() == expected
    assert unknown == (expected.index(-1) if -1 in expected else -1)


@given(st.lists(NUMBERS, max_size=40), st.lists(NUMBERS, unique=True, max_size=40))
def test_numbers(keys, levels):
    check(NumberCoder(np.array(levels, dtype=np.int64)), keys + levels, levels)


@given(st.lists(st.text(max_size=4)), st.lists(st.text(max_size=4), unique=True))
def test_texts(keys, levels):
    coder = TextCoder(pa.array(levels, pa.string()))
    check(coder, keys + levels, levels)
    new = pa.array(sorted(set(keys) - set(levels)), pa.string())
    coder.learn(new)
    check(coder, keys + levels, levels + new.to_pylist())
    assert coder.levels.tolist() == levels + new.to_pylist()


def test_tables_grow(rng):
    """More keys than the first table has slots; slices of a column and of a dictionary."""
    keys = rng.permutation(np.arange(0, 5000 << 40, 1 << 40))
    numbers, texts = NumberCoder(keys[:10]), TextCoder(pa.array(keys[:10].astype(str).tolist()))
    numbers.learn(pa.array(keys[10:]))
    texts.learn(pa.array(keys[10:].astype(str).tolist()))
    check(numbers, numbers.levels.tolist()[::-1], numbers.levels.tolist())
    check(texts, texts.levels.tolist()[::-1], texts.levels.tolist())
    column = pa.array(texts.levels.tolist())
    for each in (column[100:200], column.dictionary_encode()[100:200]):
        out = np.empty(100, dtype=np.int32)
        assert texts.code(each, out) == -1
        np.testing.assert_array_equal(out, np.arange(100, 200))
