"""Copies that several threads make are those of Arrow: values, types, nulls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery import _native as native
from bamquery.engine.cpu.kernels import concatenate, take, take_present, take_rows
from bamquery.engine.cpu.shared_copies import append, append_numbers, gather
from bamquery.statement_context.thread_budget import ThreadBudget, working_for
from tests.unit.shared_threads import THREADS, by_each

ROWS = 3 * (1 << 16) + 77
WORDS = pa.array(["", "ä", "twelve bytes", None, "more than sixteen bytes of them"], pa.large_string())


def _random() -> np.random.Generator:
    return np.random.default_rng(5)


def _numbers(most: int = 100) -> np.ndarray:
    return _random().integers(0, most, ROWS)


def _column(kind: pa.DataType, mask: np.ndarray | None) -> Any:
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            pa.array(_numbers(len(WORDS)), kind.index_type, mask=mask), WORDS, ordered=kind.ordered
        )
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        places = pa.array(_numbers(len(WORDS)), mask=mask)
        return (WORDS if mask is not None else WORDS.fill_null("x")).take(places).cast(kind)
    numbers = pa.array(_numbers(), pa.int64(), mask=mask)
    if pa.types.is_boolean(kind):
        return pa.array(_numbers() % 3 == 0, mask=mask)
    if pa.types.is_decimal(kind):
        return numbers.cast(pa.decimal128(21, kind.scale)).cast(kind)
    if pa.types.is_temporal(kind):
        return numbers.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return numbers.cast(kind)


KINDS: list[Any] = [
    *(pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.date32(), pa.time64("us"), pa.timestamp("us", "UTC"), pa.decimal128(15, 2), pa.decimal128(38, 0)),
    *(pa.large_string(), pa.large_binary()),
    *(
        pa.dictionary(pa.int32(), pa.large_string()),
        pa.dictionary(pa.int8(), pa.large_string(), ordered=True),
    ),
]


def _check(found: Any, expected: Any) -> None:
    found.validate(full=True)
    assert found.type == expected.type
    assert found.null_count == expected.null_count
    assert found.equals(expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("first", [0, 13])
def test_values_at_places(kind: pa.DataType, *, nulls: bool, first: int) -> None:
    column = _column(kind, _random().random(ROWS) < 0.3 if nulls else None).slice(first)
    plain = _random().integers(0, len(column), ROWS)
    missing = _random().random(ROWS) < 0.1
    for places in (
        pa.array(plain),
        pa.array(np.sort(plain).astype(np.int32)),
        pa.array(np.where(missing, -1, plain), mask=missing).slice(5),
        pa.array(plain.astype(np.int32), mask=missing),
    ):
        expected = column.take(places)
        for found in by_each(lambda: gather([column], places)):  # noqa: B023 (called at once)
            assert found is not None
            _check(found[0], expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("nulls", [False, True])
def test_columns_one_after_the_other(kind: pa.DataType, *, nulls: bool) -> None:
    column = _column(kind, _random().random(ROWS) < 0.3 if nulls else None)
    edges = [3, 3, 4, 70, 70_001, 70_002, 150_000, ROWS - 1]
    parts = [column.slice(start, stop - start) for start, stop in pairwise(edges)]
    expected = pa.concat_arrays(parts)
    for found in by_each(lambda: append(parts)):
        if pa.types.is_boolean(kind) or pa.types.is_dictionary(kind):
            assert found is None
        else:
            _check(found, expected)


def test_rows_of_batches() -> None:
    """Of types that only Arrow copies, too."""
    masks = [None, _random().random(ROWS) < 0.5]
    columns = [_column(kind, masks[i % 2]) for i, kind in enumerate(KINDS)]
    columns.append(pa.nulls(ROWS))
    columns.append(pa.array(_numbers()).cast(pa.string()))
    schema = pa.schema(
        [pa.field(str(i), column.type, metadata={"a": "b"}) for i, column in enumerate(columns)]
    )
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    places: Any = pa.array(_random().integers(0, ROWS, 40_000))
    expected = batch.take(places)
    for found in by_each(lambda: take_rows(batch, places)):
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.equals(expected)


def test_whoever_copies_columns_comes_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """And small ones, or ones without rows, go to Arrow."""
    asked: list[str] = []
    for name in ("gather_columns", "append_values"):
        function = getattr(native, name)

        def note(*arguments: Any, name: str = name, function: Any = function) -> Any:
            asked.append(name)
            return function(*arguments)

        monkeypatch.setattr(native, name, note)
    long, short = pa.array(_numbers()), pa.array([1, 2])
    places = pa.array(_random().integers(0, ROWS, ROWS))
    assert take_present(long, places).equals(long.take(places))
    assert take(long, places).equals(long.take(places))
    assert concatenate([long, long]).equals(pa.concat_arrays([long, long]))
    assert asked == ["gather_columns", "gather_columns", "append_values"]
    assert take_present(short, pa.array([1])).to_pylist() == [2]
    assert concatenate([short, short]).to_pylist() == [1, 2, 1, 2]
    none = pa.nulls(ROWS, pa.int64())
    assert take_present(short.slice(2), none).null_count == ROWS
    assert len(asked) == 3


@pytest.mark.parametrize("place", [-1, ROWS, 1 << 40])
@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.large_string()], ids=str)
@pytest.mark.parametrize("row", [0, ROWS - 1])
def test_a_place_outside(kind: pa.DataType, place: int, row: int) -> None:
    places = _random().integers(0, ROWS, ROWS)
    places[row] = place
    for threads in THREADS:
        with working_for(ThreadBudget(threads)), pytest.raises(ValueError, match="outside"):
            gather([_column(kind, None)], pa.array(places))


def test_strings_that_are_none() -> None:
    """Offsets that fall, or that the data has no bytes for, are not followed."""
    data = pa.py_buffer(b"x" * 100)
    for wrong in (-8, 101, 1 << 40):
        offsets: Any = np.minimum(np.arange(ROWS + 1), 100)
        offsets[ROWS // 2] = wrong
        buffers = [None, pa.py_buffer(offsets), data]
        broken: Any = pa.Array.from_buffers(pa.large_string(), ROWS, buffers, 0)
        places = pa.array(np.arange(ROWS))
        for threads in THREADS:
            with working_for(ThreadBudget(threads)):
                with pytest.raises(ValueError, match="outside"):
                    gather([broken], places)
                with pytest.raises(ValueError, match="outside"):
                    append([broken, broken])


VALUES: Any = (None, np.arange(8), 0, 8)
PLACES = (None, np.arange(8), 0, 8)
OUT = np.zeros(8, np.int64)
STRINGS: Any = (None, np.arange(9), b"12345678", 0, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: native.gather_columns([VALUES], [7], PLACES, 8, [OUT], [None]), "width"),
        (lambda: native.gather_columns([VALUES], [64], PLACES, 2, [OUT], [None]), "4 or 8"),
        (lambda: native.gather_columns([VALUES], [64], PLACES, 8, [OUT[:7]], [None]), "no room"),
        (lambda: native.gather_columns([VALUES], [64], PLACES, 8, [OUT], []), "as many"),
        (lambda: native.gather_columns([VALUES], [128], PLACES, 8, [OUT], [None]), "too few"),
        (lambda: native.gather_columns([(None, OUT, 1, 8)], [64], PLACES, 8, [OUT], [None]), "too few"),
        (lambda: native.gather_columns([(None, OUT, -1, 8)], [64], PLACES, 8, [OUT], [None]), "no such rows"),
        (lambda: native.gather_columns([(None, None, 0, 8)], [1], PLACES, 8, [OUT], [None]), "no values"),
        (lambda: native.gather_columns([(b"\0", OUT, 1, 7)], [64], PLACES, 8, [OUT], [None]), "no bitmap"),
        (lambda: native.gather_columns([(b"\0", OUT, 1, 8)], [64], PLACES, 8, [OUT], [b""]), "too small"),
        (lambda: native.gather_columns([VALUES[:3]], [64], PLACES, 8, [OUT], [None]), "a column is"),
        (lambda: native.gather_columns([VALUES], [64], (None, b"12345", 1, 1), 4, [OUT], [None]), "too few"),
        (
            lambda: native.gather_columns(
                [VALUES, (None, OUT, 0, 7)], [64] * 2, PLACES, 8, [OUT] * 2, [None] * 2
            ),
            "equally long",
        ),
        (lambda: native.gather_strings(STRINGS, PLACES, 8, OUT, None, bytearray), "no room"),
        (lambda: native.gather_strings(STRINGS[:4], PLACES, 8, OUT, None, bytearray), "strings are"),
        (lambda: native.gather_strings((*STRINGS[:4], 9), PLACES, 8, OUT, None, bytearray), "too few"),
        (
            lambda: native.gather_strings(
                STRINGS, PLACES, 8, np.zeros(9, np.int64), None, lambda _: bytearray(7)
            ),
            "no room",
        ),
        (lambda: native.append_values([], 64, OUT, None), "no values"),
        (lambda: native.append_values([VALUES], 1, OUT, None), "whole bytes"),
        (lambda: native.append_values([VALUES, VALUES], 64, OUT, None), "no room"),
        (lambda: native.append_values([(b"\0", OUT, 0, 8)], 64, OUT, None), "no bitmap"),
        (lambda: native.append_strings([], OUT, None, bytearray), "no columns"),
        (lambda: native.append_strings([STRINGS], OUT, None, bytearray), "no room"),
        (lambda: native.append_strings([(b"\0", *STRINGS[1:])], OUT, None, bytearray), "no bitmap"),
    ],
)
def test_arguments_that_do_not_fit(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("kind", ["bool", "int32", "int64", "float64", "M8[us]", "longdouble"])
def test_numbers(kind: str) -> None:
    """Also where they have gaps, or are few."""
    numbers = _numbers().astype(kind)
    for parts in ([numbers, numbers[::2], numbers[:0], numbers[:3]], [numbers[:5], numbers[7:9]]):
        for found in by_each(lambda parts=parts: append_numbers(parts)):
            assert found.dtype == numbers.dtype
            assert np.array_equal(found, np.concatenate(parts))
    mixed = append_numbers([numbers, np.ones(3, "float32" if kind != "M8[us]" else "M8[s]")])
    assert len(mixed) == ROWS + 3
