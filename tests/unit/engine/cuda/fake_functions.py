"""What libcudf does with columns: elementwise, by rows, by groups."""

# ruff: noqa: PLR0124, PLR0917  (NaN differs from itself; signatures are libcudf's)

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tests.unit.engine.cuda.fake_columns import (
    BOOL,
    FLOATS,
    INT32,
    UNITS,
    BinaryOperator,
    Column,
    NullOrder,
    Order,
    OutOfBoundsPolicy,
    Table,
    TypeId,
    UnaryOperator,
    _bits,
)

# Elementwise.


def _spread(side: Any, rows: int) -> list[Any]:
    return side.values() if isinstance(side, Column) else [side.value] * rows


def _ieee(function, a, b):
    with np.errstate(all="ignore"):
        return float(function(np.float64(a), np.float64(b)))


def _quotient(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return _ieee(np.divide, a, b)
    return 0xDEAD if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a, b):
    if isinstance(a, float):
        return _ieee(np.fmod, a, b)
    return 0xDEAD if b == 0 else a - b * _quotient(a, b)


def _arithmetic(python, numpy):
    return lambda a, b: _ieee(numpy, a, b) if isinstance(a, float) else python(a, b)


_PLAIN = {
    "ADD": _arithmetic(operator.add, np.add),
    "SUB": _arithmetic(operator.sub, np.subtract),
    "MUL": _arithmetic(operator.mul, np.multiply),
    "DIV": _quotient,
    "MOD": _remainder,
    "ATAN2": lambda a, b: _ieee(np.arctan2, a, b),
    "POW": lambda a, b: _ieee(np.power, a, b),
    "SHIFT_LEFT": operator.lshift,
    "SHIFT_RIGHT": operator.rshift,
    "SHIFT_RIGHT_UNSIGNED": lambda a, b: (a & 0xFFFFFFFFFFFFFFFF) >> b,
    "BITWISE_AND": operator.and_,
    "BITWISE_OR": operator.or_,
    "BITWISE_XOR": operator.xor,
    "LOGICAL_AND": lambda a, b: a and b,
    "LOGICAL_OR": lambda a, b: a or b,
    "EQUAL": operator.eq,
    "NOT_EQUAL": operator.ne,
    "LESS": operator.lt,
    "GREATER": operator.gt,
    "LESS_EQUAL": operator.le,
    "GREATER_EQUAL": operator.ge,
}


def _kleene(settled):
    def apply(a, b):
        if a is settled or b is settled:
            return settled
        return None if a is None or b is None else not settled

    return apply


def binary_operation(lhs, rhs, op, output_type, stream=None, mr=None):
    assert isinstance(lhs, Column) or isinstance(rhs, Column)
    rows = lhs.size() if isinstance(lhs, Column) else rhs.size()
    name = BinaryOperator(op).name
    comparable = lhs.type() == rhs.type()
    assert comparable, f"{name} of {lhs.type().id()!r} and {rhs.type().id()!r}"
    if name in ("EQUAL", "NOT_EQUAL", "LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL") or "LOGICAL" in name:
        assert output_type.id() == TypeId.BOOL8
    else:
        assert output_type == lhs.type(), f"{name} of {lhs.type().id()!r} to {output_type.id()!r}"
    if name.startswith("NULL_LOGICAL"):
        function = _kleene(name.endswith("OR"))
        return Column.from_values(list(map(function, _spread(lhs, rows), _spread(rhs, rows))), output_type)
    pairs = zip(_spread(lhs, rows), _spread(rhs, rows), strict=True)
    return Column.from_values(
        [None if a is None or b is None else _PLAIN[name](a, b) for a, b in pairs], output_type
    )


def _float_function(numpy):
    def apply(value):
        with np.errstate(all="ignore"):
            return float(numpy(np.float64(value)))

    return apply


_UNARY = {
    "EXP": _float_function(np.exp),
    "LOG": _float_function(np.log),
    "SQRT": _float_function(np.sqrt),
    "CEIL": _float_function(np.ceil),
    "FLOOR": _float_function(np.floor),
    "RINT": _float_function(np.rint),
    "ABS": abs,
    "NOT": operator.not_,
    "BIT_INVERT": operator.invert,
    "CBRT": _float_function(np.cbrt),
    **{name: _float_function(getattr(np, name.lower())) for name in ("SIN", "COS", "TAN")},
    **{name: _float_function(getattr(np, name.lower())) for name in ("SINH", "COSH", "TANH")},
    **{name: _float_function(getattr(np, name.lower())) for name in ("ARCSIN", "ARCCOS", "ARCTAN")},
    **{name: _float_function(getattr(np, name.lower())) for name in ("ARCSINH", "ARCCOSH", "ARCTANH")},
}


def unary_operation(column, op, stream=None, mr=None):
    name = UnaryOperator(op).name
    assert name in ("ABS", "NOT", "BIT_INVERT") or column.type().id() in FLOATS
    return Column.from_values(
        [None if v is None else _UNARY[name](v) for v in column.values()], column.type()
    )


def _flags(test):
    return lambda column, stream=None, mr=None: Column.from_values([test(v) for v in column.values()], BOOL)


def cast(column, kind, stream=None, mr=None):
    own = column.type()
    assert TypeId.STRING not in (own.id(), kind.id())
    assert own.id() not in (*UNITS, TypeId.TIMESTAMP_DAYS)
    decimals = {TypeId.DECIMAL64, TypeId.DECIMAL128}
    assert not decimals & {own.id(), kind.id()} or own.scale() == kind.scale()
    assert not own.scale() or decimals >= {own.id(), kind.id()}, "libcudf would scale"
    assert not (own.id() == TypeId.BOOL8 and kind.id() == TypeId.DECIMAL128)
    return Column.from_values(column.values(), kind)


def copy_if_else(lhs, rhs, mask, stream=None, mr=None):
    assert lhs.type() == rhs.type(), (lhs.type().id(), rhs.type().id())
    assert mask.type() == BOOL
    rows = mask.size()
    triples = zip(mask.values(), _spread(lhs, rows), _spread(rhs, rows), strict=True)
    return Column.from_values([a if m else b for m, a, b in triples], lhs.type())


def replace_nulls(column, other, stream=None, mr=None):
    assert column.type() == other.type()
    return Column.from_values([other.value if v is None else v for v in column.values()], column.type())


def normalize(column, inplace=False, stream=None, mr=None):
    return Column.from_values(
        [None if v is None else (math.nan if v != v else v + 0.0) for v in column.values()], column.type()
    )


# Rows.


def gather(table, positions, policy, stream=None, mr=None):
    places = positions.values()
    assert None not in places
    rows = table.num_rows()
    if policy == OutOfBoundsPolicy.DONT_CHECK:
        assert all(0 <= p < rows for p in places)
    return Table(
        [c.made([v[p] if 0 <= p < rows else None for p in places])
         for c in table.columns() for v in [c.values()]]
    )  # fmt: skip


def scatter(source, positions, target, stream=None, mr=None):
    columns = []
    for column, into in zip(source.columns(), target.columns(), strict=True):
        assert column.type() == into.type()
        values = into.values()
        for place, value in zip(positions.values(), column.values(), strict=True):
            values[place] = value
        columns.append(Column.from_values(values, column.type()))
    return Table(columns)


def slice_column(column, indices, stream=None):
    kind, size, data, mask, _, offset = column._parts
    start, end = indices
    assert 0 <= start <= end <= size
    cut = Column(kind, end - start, data, mask, 0, offset + start, column._children)
    cut._parts = (*cut._parts[:4], cut.values().count(None), offset + start)
    return [cut]


def concatenate(columns, stream=None, mr=None):
    assert len({c.type() for c in columns}) == 1
    return columns[0].made([v for c in columns for v in c.values()])


def apply_retention_mask(table, mask, stream=None, mr=None):
    kept = [i for i, keep in enumerate(mask.values()) if keep]
    return gather(table, Column.from_values(kept, INT32), OutOfBoundsPolicy.DONT_CHECK)


def sequence(size, init, step, stream=None):
    return Column.from_values([init.value + i * step.value for i in range(size)], init.kind)


def repeat(table, counts, stream=None):
    assert counts.type() == INT32
    times = counts.values()
    return Table([c.made([v for v, n in zip(c.values(), times, strict=True) for _ in range(n)])
                  for c in table.columns()])  # fmt: skip


def count_elements(lists, stream=None, mr=None):
    return Column.from_values(list(map(len, lists.values())), INT32)


def interleave_columns(table, stream=None, mr=None):
    return Column.from_values([v for row in table.rows() for v in row], table.columns()[0].type())


def _rank(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value + 0.0)
    return value


def _hashable(row):
    return tuple("NaN" if v != v else v for v in row)


def stable_sorted_order(table, orders, nulls, stream=None, mr=None):
    positions = list(range(table.num_rows()))
    for column, order, where in reversed(list(zip(table.columns(), orders, nulls, strict=True))):
        values = column.values()
        low = where == NullOrder.BEFORE

        def key(i, values=values, low=low):
            missing = values[i] is None
            return (missing != low, 0 if missing else _rank(values[i]))

        positions.sort(key=key, reverse=order == Order.DESCENDING)  # stable, also in reverse
    return Column.from_values(positions, INT32)


def sort(table, orders, nulls, stream=None, mr=None):
    order = stable_sorted_order(table, orders, nulls)
    return gather(table, order, OutOfBoundsPolicy.DONT_CHECK)


def contains(haystack, needles, stream=None, mr=None):
    assert haystack.type() == needles.type()
    known = {_hashable([v]) for v in haystack.values()}
    return Column.from_values(
        [None if v is None else _hashable([v]) in known for v in needles.values()], BOOL
    )


def encode(table, stream=None, mr=None):
    rows = [_hashable(row) for row in table.rows()]
    first: dict[Any, int] = {}
    for i, row in enumerate(rows):
        first.setdefault(row, i)
    distinct = sorted(first, key=repr)  # any order but that of appearance
    codes = {row: i for i, row in enumerate(distinct)}
    places = Column.from_values([first[row] for row in distinct], INT32)
    return gather(table, places, OutOfBoundsPolicy.DONT_CHECK), Column.from_values(
        [codes[r] for r in rows], INT32
    )


def hash_partition(table, keys, count, hash_function=None, seed=0, stream=None, mr=None):
    parts: list[list[int]] = [[] for _ in range(count)]
    chosen = keys.rows() if isinstance(keys, Table) else ([row[k] for k in keys] for row in table.rows())
    for i, row in enumerate(chosen):
        parts[hash(repr((seed, _hashable(list(row))))) % count].append(i)
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    order = Column.from_values([i for part in parts for i in part], INT32)
    return gather(table, order, OutOfBoundsPolicy.DONT_CHECK), starts[:-1]


def copy_bitmask(column, stream=None, mr=None):
    """From the column's first row on."""
    return _bits(column.values())
