"""Expressions of every function and cast over values that break things; a device held against the CPU."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import INTERVAL, value_type
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.formulas.type_families import is_castable
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field
from tests.strategies import (
    ALL_TYPES,
    DECIMALS,
    FLOATS,
    INTEGERS,
    PLAIN_TYPES,
    TEMPORALS,
    TIMESTAMPS,
    array,
    specials,
)
from tests.values import plain, same

TEXT = pa.large_string()
BOOL = pa.bool_()
DOUBLE = pa.float64()

FAILING = 3
"""Failing rows that are asked for one by one."""


@dataclass(frozen=True)
class Case:
    """An expression over columns a, b, c, ...; floats may differ by the tolerance (relative)."""

    name: str
    expression: Expression
    columns: Sequence[pa.Array]
    tolerance: float = 0.0


def check(device: Device[Any], case: Case) -> None:
    """The device gives what the CPU gives, row by row, and fails in the same words."""
    names = [chr(ord("a") + i) for i in range(len(case.columns))]
    batch = pa.RecordBatch.from_arrays(list(case.columns), names)
    expected = expected_values(case.expression, batch)
    failing = [i for i, answer in enumerate(expected) if isinstance(answer, ExecutionError)]
    fine = batch.filter(pa.array([not isinstance(answer, ExecutionError) for answer in expected]))
    # Sliced, so that a column that does not begin at its buffers' beginning is met too.
    for start in (0, min(3, fine.num_rows)):
        given = _all(device, case.expression, fine.slice(start))
        wanted = [a for a in expected if not isinstance(a, ExecutionError)][start:]
        for row, (mine, other) in enumerate(zip(given, wanted, strict=True)):
            values = [plain(column)[0] for column in fine.slice(start + row, 1).columns]
            assert same(mine, other, case.tolerance), f"{case.name} of {values}: {mine!r}, not {other!r}"
    for row in failing[:FAILING]:
        mine = _one(device, case.expression, batch.slice(row, 1))
        assert str(mine) == str(expected[row])
    if failing:
        with pytest.raises(ExecutionError):
            _all(device, case.expression, batch)


def expected_values(expression: Expression, batch: pa.RecordBatch) -> list[Any]:
    """The CPU's values, errors for rows on which it fails."""
    try:
        return _all(CpuDevice(), expression, batch)
    except ExecutionError:
        return [_one(CpuDevice(), expression, batch.slice(i, 1)) for i in range(batch.num_rows)]


def _all(device: Device[Any], expression: Expression, batch: pa.RecordBatch) -> list[Any]:
    frame = device.evaluate([expression], device.from_arrow(batch))
    column = device.to_arrow(frame, [Field("x", expression.type)]).column(0)
    assert column.type == expression.type
    # A day has a 24:00:00 in SQL, of which Arrow knows nothing.
    column.validate(full=not pa.types.is_time64(column.type))
    return plain(column)


def _one(device: Device[Any], expression: Expression, batch: pa.RecordBatch) -> Any:
    try:
        return _all(device, expression, batch)[0]
    except ExecutionError as error:
        return error


def _column(index: int, kind: pa.DataType) -> ColumnRef:
    return ColumnRef(index, chr(ord("a") + index), kind)


def _literal(value: Any, kind: pa.DataType) -> Literal:
    return Literal(array([value], kind)[0])


def pairs(kind: pa.DataType, most: int = 400) -> list[pa.Array]:
    """Two columns of all pairs of special values, nulls among them."""
    values = [*specials(kind), None]
    both = [(a, b) for a in values for b in values]
    random.Random(0).shuffle(both)
    return [array([pair[i] for pair in both[:most]], kind) for i in (0, 1)]


def single(kind: pa.DataType) -> list[pa.Array]:
    """One column of special values and nulls."""
    return [array([None, *specials(kind), None, *specials(kind)], kind)]


def _binary(function: str, kind: pa.DataType, result: pa.DataType, tolerance: float = 0.0) -> Iterator[Case]:
    name = f"{function}-{type_name(kind)}"
    columns = pairs(kind)
    arguments = (_column(0, kind), _column(1, kind))
    yield Case(name, Call(function, arguments, result), columns, tolerance)
    some = [value for value in specials(kind)[:6] if value is not None]
    for value in (*some[:2], some[-1], None):
        constant = _literal(value, kind)
        given = f"{name}-{value}"
        yield Case(f"{given}-right", Call(function, (arguments[0], constant), result), columns[:1], tolerance)
        yield Case(f"{given}-left", Call(function, (constant, arguments[0]), result), columns[:1], tolerance)


def _unary(function: str, kind: pa.DataType, result: pa.DataType, tolerance: float = 0.0) -> Case:
    call = Call(function, (_column(0, kind),), result)
    return Case(f"{function}-{type_name(kind)}", call, single(kind), tolerance)


def arithmetic() -> Iterator[Case]:
    """Functions of numbers."""
    for kind in (*INTEGERS, *FLOATS, *DECIMALS):
        for function in ("add", "subtract", "modulo"):
            yield from _binary(function, kind, kind)
        for function in ("negate", "abs"):
            yield _unary(function, kind, kind)
        if not pa.types.is_decimal(kind):
            yield from _binary("multiply", kind, kind)
            yield from _binary("floor_divide", kind, kind)
        for digits in (None, 0, 1, 2, -1, -2, -20, 40):
            yield _rounded(kind, digits)
    yield from _binary("floor_divide", pa.decimal128(38, 0), pa.decimal128(38, 0))
    yield from _products()
    for kind in (*FLOATS, *DECIMALS):
        result = pa.decimal128(kind.precision, 0) if pa.types.is_decimal(kind) else kind
        yield _unary("floor", kind, result)
        yield _unary("ceil", kind, result)
    for function in ("sqrt", "ln", "exp"):
        yield _unary(function, DOUBLE, DOUBLE, 1e-14)
    yield from _binary("power", DOUBLE, DOUBLE, 1e-13)
    yield from _binary("divide", DOUBLE, DOUBLE)


def _rounded(kind: Any, digits: int | None) -> Case:
    result = kind
    if pa.types.is_decimal(kind) and digits is not None:
        result = pa.decimal128(kind.precision, min(kind.scale, max(digits, 0)))
    call = Call("round", (_column(0, kind), _literal(digits, pa.int32())), result)
    return Case(f"round-{type_name(kind)}-{digits}", call, single(kind), 1e-15)


def _products() -> Iterator[Case]:
    for left, right in ((4, 5), (9, 9), (18, 18), (19, 19), (38, 38)):
        kinds = (pa.decimal128(left, 1), pa.decimal128(right, 0))
        result = pa.decimal128(min(left + right, 38), 1)
        values = [[*specials(kind), None] for kind in kinds]
        both = [(a, b) for a in values[0] for b in values[1]]
        columns = [array([pair[i] for pair in both], kinds[i]) for i in (0, 1)]
        call = Call("multiply", (_column(0, kinds[0]), _column(1, kinds[1])), result)
        yield Case(f"multiply-{left}-{right}", call, columns)


def comparisons() -> Iterator[Case]:
    """Tests of two values of any type, and membership."""
    names = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    for kind in ALL_TYPES:
        for function in (*names, "is_distinct_from", "is_not_distinct_from"):
            yield from _binary(function, kind, BOOL)
        yield _unary("is_null", kind, BOOL)
        yield _unary("is_not_null", kind, BOOL)
        for count in (1, 3, 12):
            for extra in ((), (None,)):
                plain_kind = value_type(kind)
                literals = tuple(_literal(v, plain_kind) for v in (*specials(kind)[:count], *extra))
                call = Call("in", (_column(0, kind), *literals), BOOL)
                yield Case(f"in-{type_name(kind)}-{count}-{len(extra)}", call, single(kind))


def conditions() -> Iterator[Case]:
    """Logic, and what decides which rows count."""
    values = [(a, b) for a in (True, False, None) for b in (True, False, None)]
    columns = [array([pair[i] for pair in values], BOOL) for i in (0, 1)]
    a, b = _column(0, BOOL), _column(1, BOOL)
    for function in ("and", "or", "equal"):
        yield Case(function, Call(function, (a, b), BOOL), columns)
        yield Case(f"{function}-null", Call(function, (a, _literal(None, BOOL)), BOOL), columns[:1])
    yield Case("not", Call("not", (a,), BOOL), columns[:1])
    numbers = array([0, 1, -1, None, 2**62, -(2**63)], pa.int64())
    x, zero, one = _column(0, pa.int64()), _literal(0, pa.int64()), _literal(1, pa.int64())
    negated = Call("negate", (x,), pa.int64())
    positive = Call("greater", (x, zero), BOOL)
    yield Case("case", Call("case", (positive, one, x), pa.int64()), [numbers])
    yield Case("case-guard", Call("case", (positive, negated, zero), pa.int64()), [numbers])
    yield Case("case-fails", Call("case", (positive, zero, negated), pa.int64()), [numbers])
    small = Call("greater", (negated, zero), BOOL)
    yield Case("and-guard", Call("and", (positive, small), BOOL), [numbers])
    yield Case("or-guard", Call("or", (Call("not", (positive,), BOOL), small), BOOL), [numbers])
    for kind in ALL_TYPES:
        arguments = (_column(0, kind), _column(1, kind))
        yield Case(f"coalesce-{type_name(kind)}", Call("coalesce", arguments, kind), pairs(kind, 100))
        test = Call("is_null", arguments[:1], BOOL)
        both = Call("case", (test, arguments[1], arguments[0]), kind)
        yield Case(f"case-{type_name(kind)}", both, pairs(kind, 100))


def strings() -> Iterator[Case]:
    """Functions of text."""
    texts = single(TEXT)
    a = _column(0, TEXT)
    for function in ("lower", "upper", "trim"):
        yield Case(function, Call(function, (a,), TEXT), texts)
    yield Case("length", Call("length", (a,), pa.int64()), texts)
    yield Case("concat", Call("concat", (a, _column(1, TEXT)), TEXT), pairs(TEXT))
    yield Case("concat-constant", Call("concat", (a, _literal("é-", TEXT)), TEXT), texts)
    for pattern in ("a%", "%b", "%a%", "_", "a_b", "%", "", "ab", "A%\n_", "%ß%", "_👍%", "a\\%", None):
        for function in ("like", "ilike"):
            call = Call(function, (a, _literal(pattern, TEXT)), BOOL)
            yield Case(f"{function}-{pattern}", call, texts)
    for part in ("", "a", "ab", "👍", "%", None):
        for function in ("starts_with", "contains"):
            yield Case(f"{function}-{part}", Call(function, (a, _literal(part, TEXT)), BOOL), texts)
    for start in (None, 0, 1, 2, -1, -3, 100, -100):
        for length in (None, 0, 1, 2, -1, -2, 100):
            arguments = (a, _literal(start, pa.int64()), _literal(length, pa.int64()))
            yield Case(f"substring-{start}-{length}", Call("substring", arguments, TEXT), texts)


_UNITS = (
    *("year", "quarter", "month", "day", "hour", "minute", "second"),
    *("dayofweek", "isodow", "dayofyear", "week"),
    *("isoyear", "yearweek", "decade", "century", "millennium", "era", "millisecond", "microsecond"),
)
_WITHOUT_TRUNCATION = ("dayofweek", "isodow", "dayofyear", "yearweek", "era")


def temporal() -> Iterator[Case]:
    """Functions of dates and times."""
    for kind in TEMPORALS:
        units = ("hour", "minute", "second", "millisecond") if pa.types.is_time64(kind) else _UNITS
        for unit in (*units, None):
            arguments = (_literal(unit, TEXT), _column(0, kind))
            yield Case(
                f"part-{unit}-{type_name(kind)}", Call("date_part", arguments, pa.int64()), single(kind)
            )
            if unit not in _WITHOUT_TRUNCATION and not pa.types.is_time64(kind):
                call = Call("date_trunc", arguments, kind)
                yield Case(f"trunc-{unit}-{type_name(kind)}", call, single(kind))
    for kind in (pa.date32(), *TIMESTAMPS):
        yield _unary("epoch", kind, DOUBLE)
    days = [array([0, 18_262, -1, None, 2**31 - 1, -(2**31) + 1], pa.date32())]
    for count in (0, 1, -1, 2**31 - 1, None):
        call = Call("add_days", (_column(0, pa.date32()), _literal(count, pa.int32())), pa.date32())
        yield Case(f"add_days-{count}", call, days)
    yield from _binary("days_between", pa.date32(), pa.int64())


def mathematics() -> Iterator[Case]:
    """Functions of floats, tests of them, bits."""
    names = ("cbrt", "sin", "cos", "tan", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh")
    for function in (*names, "acosh", "atanh"):
        yield _unary(function, DOUBLE, DOUBLE, 1e-12)
    yield from _binary("atan2", DOUBLE, DOUBLE, 1e-12)
    for kind in FLOATS:
        for function in ("isnan", "isinf", "isfinite"):
            yield _unary(function, kind, BOOL)
        yield _unary("sign", kind, pa.int8())
    for kind in INTEGERS:
        yield _unary("sign", kind, pa.int8())
        yield _unary("bit_not", kind, kind)
        for function in ("bit_and", "bit_or", "bit_xor"):
            yield from _binary(function, kind, kind)
    for kind in PLAIN_TYPES:
        for function in ("greatest", "least"):
            yield from _binary(function, kind, kind)


def texts() -> Iterator[Case]:
    """Functions of text with constants."""
    columns = single(TEXT)
    a = _column(0, TEXT)
    for function in ("ltrim", "rtrim"):
        yield _unary(function, TEXT, TEXT)
    for function in ("strlen", "bit_length"):
        yield _unary(function, TEXT, pa.int64())
    for part in ("", "a", "ab", "👍", "%", None):
        for function, kind in (("ends_with", BOOL), ("position", pa.int64()), ("trim_of", TEXT)):
            yield Case(f"{function}-{part}", Call(function, (a, _literal(part, TEXT)), kind), columns)
        for function in ("ltrim_of", "rtrim_of"):
            yield Case(f"{function}-{part}", Call(function, (a, _literal(part, TEXT)), TEXT), columns)
        for by in ("", "xyz", None):
            call = Call("replace", (a, _literal(part, TEXT), _literal(by, TEXT)), TEXT)
            yield Case(f"replace-{part}-{by}", call, columns)
    for count in (None, 0, 1, 2, -1, -3, 100, -100):
        for function in ("left", "right"):
            call = Call(function, (a, _literal(count, pa.int64())), TEXT)
            yield Case(f"{function}-{count}", call, columns)


_HOURS = 13 * 3600 * 10**9
_SPANS = (
    *((0, 0, 0), (1, 0, 0), (-13, 0, 0), (0, 3, -1), (0, 0, 86_400 * 10**9 + 1000), (1200, -1, 1000)),
    *((-1, 0, -_HOURS), (-1, 0, _HOURS), (1, 1, _HOURS), (1, -30, _HOURS), (71_600_000, -(2**31), 0)),
)


def instants() -> Iterator[Case]:
    """Functions of dates and times that count, name and move."""
    for kind in (pa.date32(), *TIMESTAMPS):
        yield _unary("last_day", kind, pa.date32())
        yield _unary("dayname", kind, TEXT)
        yield _unary("monthname", kind, TEXT)
        yield _unary("julian", kind, DOUBLE)
    for kind in (pa.time64("us"), pa.time64("ns"), *TIMESTAMPS):
        yield _unary("to_count", kind, pa.int64())
    for kind in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        for unit in ("year", "quarter", "month", "week", "day", "hour", "second", "century", "isoyear"):
            arguments = (_column(0, kind), _column(1, kind), _literal(unit, TEXT))
            call = Call("date_diff", arguments, pa.int64())
            yield Case(f"date_diff-{unit}-{type_name(kind)}", call, pairs(kind))
    for kind in (pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        for parts in (*_SPANS, None):
            span = Literal(pa.scalar(parts, INTERVAL))
            for function in ("add_interval", "subtract_interval"):
                call = Call(function, (_column(0, kind), span), kind)
                yield Case(f"{function}-{parts}-{type_name(kind)}", call, single(kind))


def casts(device: Device[Any]) -> Iterator[Case]:
    """Casts between all types that the device does not refuse."""
    for source in (*PLAIN_TYPES, *ALL_TYPES[-2:]):
        for target in (*PLAIN_TYPES, *ALL_TYPES[-2:]):
            if source == target or not is_castable(source, target):
                continue
            for try_ in (False, True):
                expression = Cast(_column(0, source), target, try_)
                if device.capabilities.expression_refusals(expression):
                    continue
                columns = single(source)
                tolerance = 0.0
                if pa.types.is_floating(target) and pa.types.is_decimal(source):
                    tolerance = 1e-15 if target == DOUBLE else 1e-7
                name = f"cast-{type_name(source)}-{type_name(target)}-{try_}"
                yield Case(name, expression, columns, tolerance)
