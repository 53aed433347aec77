"""Columns of every stored type, with everything that is hard about them; and what it means to be equal."""

from __future__ import annotations

import decimal
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.fragments.choose_packing import FORCED
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.writer import BatchRows, write_fragment

PLAIN_TYPES = [
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64()),
    *(pa.decimal128(5, 2), pa.decimal128(38, 10), pa.decimal128(18, 0)),
    pa.date32(),
    *(pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp(unit, zone) for unit, zone in (("us", "UTC"), ("ns", "America/New_York"))),
    *(pa.large_string(), pa.large_binary()),
]
DICTIONARY_TYPES = [
    pa.dictionary(pa.int8(), pa.large_string()),
    pa.dictionary(pa.int32(), pa.large_string()),
    pa.dictionary(pa.int16(), pa.float64()),
    pa.dictionary(pa.int32(), pa.decimal128(9, 1)),
    pa.dictionary(pa.int32(), pa.bool_()),
    pa.dictionary(pa.int32(), pa.timestamp("us", "UTC")),
    pa.dictionary(pa.int32(), pa.large_binary()),
]
ALL_TYPES = PLAIN_TYPES + DICTIONARY_TYPES
ENCODINGS = ["plain", "auto", "packed"]
SIZES = [0, 1, 7, 1023, 1024, 1025, 2048, 4096, 5000]
STRINGS = [
    *("", "a", "b", "ab", "zebra", "Ωμέγα", "naïve", "日本語のとても長い文字列です", "\U0001f695" * 6),
    *("\U0010ffff" * 5, "x" * 16, "x" * 17, "x" * 16 + "y", "\ud7ff" * 9, "\x7f" * 20, "long " * 300),
]


def values(type_: Any, rows: int, random: np.random.Generator) -> pa.Array:
    """`rows` values without nulls: often few different ones, now and then the type's extremes."""
    few = random.random() < 0.5
    if pa.types.is_dictionary(type_):
        own = values(type_.value_type, int(random.integers(1, 50)), random)
        if random.random() < 0.3:
            own = pa.concat_arrays([own, pa.nulls(1, own.type)])
        indices = pa.array(random.integers(0, len(own), rows), type_.index_type)
        return pa.DictionaryArray.from_arrays(indices, own)
    if pa.types.is_boolean(type_):
        return pa.array(random.random(rows) < random.choice([0.0, 0.5, 1.0]))
    if pa.types.is_floating(type_):
        dtype = np.dtype(type_.to_pandas_dtype())
        pool = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, -2.25, 1e-40], dtype)
        bits = random.integers(0, 256, (rows, dtype.itemsize), np.uint8).view(dtype).ravel()
        return pa.array(random.choice(pool, rows) if few else bits)
    if pa.types.is_decimal128(type_):
        top = 10 ** min(type_.precision, 18) - 1
        scale = decimal.Decimal(1).scaleb(-type_.scale)
        context = decimal.Context(prec=60)
        numbers = random.integers(-top, top, rows, endpoint=True)
        return pa.array([context.multiply(decimal.Decimal(int(n)), scale) for n in numbers], type_)
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        chosen = [STRINGS[i] for i in random.integers(0, len(STRINGS), rows)]
        if pa.types.is_large_string(type_):
            return pa.array(chosen, type_)
        return pa.array([s.encode() + bytes([255] * int(random.integers(0, 20))) for s in chosen], type_)
    width = type_.bit_width // 8
    if pa.types.is_time64(type_):
        limit = 86_400 * (10**6 if type_.unit == "us" else 10**9)
        integers = random.integers(0, limit, rows).astype(np.int64)
    elif few:
        integers = random.integers(0, 100, rows).astype(f"i{width}")
    else:
        integers = random.integers(0, 256, (rows, width), np.uint8).view(f"i{width}").ravel()
        if pa.types.is_timestamp(type_):  # which reach as far in any unit
            integers //= {"s": 10**6, "ms": 10**3}.get(type_.unit, 1)
    return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(integers)])


def column(type_: Any, rows: int, random: np.random.Generator) -> pa.Array:
    """A slice of a longer array, with nulls here and there, nowhere, everywhere or in whole vectors."""
    before = int(random.integers(0, 70))
    array = values(type_, before + rows, random)
    pattern = random.integers(0, 5)
    if pattern == 0:
        mask = random.random(len(array)) < 0.2
    elif pattern == 1:
        mask = np.ones(len(array), np.bool_)
    elif pattern == 2:
        mask = (np.arange(len(array)) - before) // 1024 % 2 == 0
    elif pattern == 3:
        mask = np.zeros(len(array), np.bool_)
        mask[-1:] = True
    else:
        return array.slice(before)
    return with_nulls(array, mask).slice(before)


def with_nulls(array: pa.Array, mask: np.ndarray) -> pa.Array:
    """The array with nulls where `mask` is set; whatever it had there stays in its buffers."""
    if pa.types.is_dictionary(array.type):
        indices = with_nulls(array.indices, mask)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary)
    bitmap = pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]])


@dataclass(frozen=True)
class Sample:
    """A table in one piece, and the batches it came in."""

    whole: pa.RecordBatch
    batches: Sequence[pa.RecordBatch]


@st.composite
def samples(draw: st.DrawFn, types: Sequence[Any] = tuple(ALL_TYPES), most_columns: int = 5) -> Sample:
    """Random tables of random types, cut into batches anywhere."""
    chosen = draw(st.lists(st.sampled_from(list(types)), min_size=1, max_size=most_columns))
    rows = draw(st.sampled_from(SIZES))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    arrays = [column(type_, rows, random) for type_ in chosen]
    schema = pa.schema([(f"c{i} {array.type}", array.type) for i, array in enumerate(arrays)])
    whole = pa.RecordBatch.from_arrays(arrays, schema=schema)
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=4)))
    edges = [0, *cuts, rows]
    return Sample(whole, [whole.slice(a, b - a) for a, b in itertools.pairwise(edges)])


@contextmanager
def written(
    batches: Sequence[pa.RecordBatch], schema: pa.Schema | None = None, encoding: str = "plain"
) -> Iterator[Fragment]:
    """A fragment of those batches, in a folder of its own; "packed": whatever can be is."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        schema = schema or batches[0].schema
        patch.setitem(FORCED, "pack", encoding == "packed")
        asked = "plain" if encoding == "plain" else "auto"
        entry = write_fragment(POSIX, Path(folder), "f", schema, BatchRows(batches), encoding=asked)
        yield Fragment.open(Path(folder), entry, schema)


def assert_same(found: pa.Array, expected: pa.Array) -> None:
    """Equal to the last bit: NaN payloads and signs of zero too; dictionaries by value."""
    found.validate(full=True)
    assert found.type == expected.type
    if pa.types.is_dictionary(found.type):
        found, expected = found.dictionary_decode(), expected.dictionary_decode()
    if pa.types.is_floating(found.type):
        assert found.is_null().equals(expected.is_null())
        integer = f"i{found.type.bit_width // 8}"
        left, right = (a.drop_null().to_numpy(zero_copy_only=False).view(integer) for a in (found, expected))
        assert np.array_equal(left, right)
    else:
        assert found.equals(expected)
