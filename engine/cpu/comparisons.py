"""Comparisons: NaN equals NaN and is greater than every number, -0.0 equals 0.0, false is less than true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.data_types.type_groups import INTERVAL
from bamquery.engine.cpu.kernels import (
    Column,
    Constant,
    Datum,
    Implementation,
    as_column,
    compute,
    constant,
    nulls,
    where,
)
from bamquery.engine.cpu.numeric.small_comparisons import compare_small
from bamquery.engine.cpu.temporal.interval_columns import comparable

_MANY = 64
"""Literals from which it matters how IN looks them up."""
_SPAN = 1 << 24
"""Between the least and the greatest of them, where there is a bit for each value."""
_FEW = 4
"""Float literals up to which IN compares one by one rather than hashes."""
_FEW_TEXTS = 3
"""Strings for which that holds: to compare lengths and bytes takes a tenth of the time of hashing."""


def _is_float(datum: Datum) -> bool:
    return bool(pa.types.is_floating(datum.type))


def _may_be_nan(datum: Datum) -> bool:
    if isinstance(datum, pa.Array):
        return bool(pc.any(compute("is_nan", datum)).as_py())
    return bool(datum.is_valid and datum.as_py() != datum.as_py())


def _is_nan(datum: Datum, rows: int) -> Column:
    return compute("is_nan", as_column(datum, rows))


def _rows(*data: Datum) -> int:
    return next(len(d) for d in data if isinstance(d, pa.Array))


def _compare(name: str, a: Datum, b: Datum) -> Column:
    found = compare_small(name, a, b)
    return compute(name, a, b) if found is None else found


def equal(a: Datum, b: Datum) -> Column:
    """A = b; null where either is null."""
    a, b = comparable(a), comparable(b)
    plain = _compare("equal", a, b)
    if not _is_float(a) or not (_may_be_nan(a) and _may_be_nan(b)):
        return plain
    rows = _rows(a, b)
    return compute("or", plain, compute("and", _is_nan(a, rows), _is_nan(b, rows)))


def less(a: Datum, b: Datum) -> Column:
    """A < b; null where either is null."""
    a, b = comparable(a), comparable(b)
    if not _is_float(a):
        return _compare("less", a, b)
    if isinstance(a, pa.Scalar) and not _may_be_nan(a):
        return compute("invert", compute("less_equal", b, a))  # true where b is NaN
    if not _may_be_nan(b):
        return compute("less", a, b)  # a NaN on the left is less than nothing
    # Not (a >= b) is a < b, or either is NaN; a NaN on the left is less than nothing.
    return compute("and_not", compute("invert", compute("greater_equal", a, b)), _is_nan(a, _rows(a, b)))


def less_equal(a: Datum, b: Datum) -> Column:
    """A <= b; null where either is null."""
    a, b = comparable(a), comparable(b)
    if not _is_float(a):
        return _compare("less_equal", a, b)
    return compute("invert", less(b, a))


def not_equal(a: Datum, b: Datum) -> Column:
    """A <> b; null where either is null."""
    return compute("invert", equal(a, b))


def is_not_distinct_from(a: Datum, b: Datum) -> Column:
    """A = b, where two nulls are equal; never null."""
    rows = _rows(a, b)
    known = compute("coalesce", equal(a, b), constant(False, pa.bool_()))
    both_null = compute("and", *(compute("is_null", as_column(datum, rows)) for datum in (a, b)))
    return compute("or", known, both_null)


def is_in(value: Datum, candidates: Sequence[Datum]) -> Column:
    """Whether the value equals a candidate; null where it is null, or equals none and one is null."""
    if len(candidates) > _MANY and isinstance(value, pa.Array) and not _is_float(value):
        members = _same_type(value, candidates)
        if members is not None:
            return _member(value, members)
    value, candidates = comparable(value), [comparable(candidate) for candidate in candidates]
    rows = _rows(value, *candidates)
    literals = [c for c in candidates if isinstance(c, pa.Scalar)]
    column = as_column(value, rows)
    tests = [equal(column, c) for c in candidates if not isinstance(c, pa.Scalar)]
    tests += _test_membership(column, [c for c in literals if c.is_valid])
    if any(not c.is_valid for c in literals):
        tests.append(nulls(rows, pa.bool_()))
    return reduce(lambda x, y: compute("or_kleene", x, y), tests)


def _same_type(column: Column, candidates: Sequence[Datum]) -> Column | None:
    """Many literals as one array, if they are nothing but values of the column's type."""
    kind = column.type
    if kind == INTERVAL or not all(isinstance(c, pa.Scalar) and c.type == kind for c in candidates):
        return None
    members: Column = pa.array(candidates, kind)
    return None if members.null_count else members


def _member(column: Column, members: Column) -> Column:
    """Whether values are among the members; null where they are null."""
    if not pa.types.is_integer(column.type) or pc.max(members).as_py() - pc.min(members).as_py() > _SPAN:
        (found,) = _look_up_hashed(column, [members])
        return found
    # A table of bits by value is far faster than hashing.
    values = (column.fill_null(0) if column.null_count else column).to_numpy()
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(np.isin(values, members.to_numpy(), kind="table"), mask=mask)


def _test_membership(column: Column, literals: Sequence[Constant]) -> list[Column]:
    if not literals:
        return []
    if _is_float(column):
        # Hashing tells NaNs, and zeros, of different bits apart.
        if len(literals) <= _FEW:
            return [equal(column, literal) for literal in literals]
        found = [as_column(literal, 1) for literal in literals if literal.as_py() not in (0.0,)]
        tests = [equal(column, constant(0.0, column.type))] if len(found) < len(literals) else []
        nan = constant(float("nan"), column.type)
        if any(literal.as_py() != literal.as_py() for literal in literals):
            tests.append(equal(column, nan))
        return [*tests, *_look_up_hashed(column, found)]
    if len(literals) <= _FEW_TEXTS and pa.types.is_large_string(column.type):
        return [equal(column, literal) for literal in literals]
    return _look_up_hashed(column, [as_column(literal, 1) for literal in literals])


def _look_up_hashed(column: Column, candidates: Sequence[Column]) -> list[Column]:
    if not candidates:
        return []
    return [is_in_set(column, pa.concat_arrays(list(candidates)))]


def is_in_set(column: Column, members: Column) -> Column:
    """Whether each value is one of those without nulls, by their bits; null where it is null."""
    found = compute("is_in", column, options=pc.SetLookupOptions(value_set=members, skip_nulls=True))
    if not column.null_count:
        return found
    return where(compute("is_valid", column), found, constant(None, pa.bool_()))


def _extreme(better: Callable[[Datum, Datum], Column]) -> Implementation:
    """The best of values that are not null; null where all are."""

    def choose_better(a: Datum, b: Datum) -> Column:
        rows = _rows(a, b)
        a, b = as_column(a, rows), as_column(b, rows)
        choose = compute("coalesce", better(b, a), compute("is_null", a))
        return where(choose, b, a)

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        first = as_column(arguments[0], _rows(*arguments))
        return reduce(choose_better, arguments[1:], first)

    return apply


def _binary(test: Callable[[Datum, Datum], Column]) -> Implementation:
    return lambda arguments, kind: test(arguments[0], arguments[1])


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "equal": _binary(equal),
        "not_equal": _binary(not_equal),
        "less": _binary(less),
        "less_equal": _binary(less_equal),
        "greater": _binary(lambda a, b: less(b, a)),
        "greater_equal": _binary(lambda a, b: less_equal(b, a)),
        "is_distinct_from": _binary(lambda a, b: compute("invert", is_not_distinct_from(a, b))),
        "is_not_distinct_from": _binary(is_not_distinct_from),
        "greatest": _extreme(lambda a, b: less(b, a)),
        "least": _extreme(less),
        "in": lambda arguments, kind: is_in(arguments[0], arguments[1:]),
    }
)
