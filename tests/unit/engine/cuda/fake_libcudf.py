"""As much of pylibcudf and rmm as the cuda device calls, over Python values.

So what the device asks is tested without a GPU; what libcudf answers is tested on one (tests/gpu/engine).
Columns keep raw buffers, since the device looks at the stored values of one type as another.
"""

# ruff: noqa: PLR0124, PLR0917  (NaN differs from itself; signatures are libcudf's)

from __future__ import annotations

import math
import operator
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa


def _enum(name: str, *members: str) -> Any:
    return IntEnum(name, {member: i for i, member in enumerate(members)})


TypeId = _enum(
    "TypeId",
    *("EMPTY", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("FLOAT32", "FLOAT64", "BOOL8", "TIMESTAMP_DAYS", "TIMESTAMP_SECONDS", "TIMESTAMP_MILLISECONDS"),
    *("TIMESTAMP_MICROSECONDS", "TIMESTAMP_NANOSECONDS", "STRING", "DECIMAL128"),
)
_BINARY = (
    *("ADD", "SUB", "MUL", "DIV", "MOD", "POW", "SHIFT_LEFT", "SHIFT_RIGHT", "SHIFT_RIGHT_UNSIGNED"),
    *("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "LOGICAL_AND", "LOGICAL_OR", "EQUAL", "NOT_EQUAL"),
    *("LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL", "NULL_LOGICAL_AND", "NULL_LOGICAL_OR"),
)
BinaryOperator = _enum("BinaryOperator", *_BINARY)
UnaryOperator = _enum("UnaryOperator", "EXP", "LOG", "SQRT", "CEIL", "FLOOR", "ABS", "RINT", "NOT")
Order = _enum("Order", "ASCENDING", "DESCENDING")
NullOrder = _enum("NullOrder", "AFTER", "BEFORE")
NullPolicy = _enum("NullPolicy", "EXCLUDE", "INCLUDE")
OutOfBoundsPolicy = _enum("OutOfBoundsPolicy", "NULLIFY", "DONT_CHECK")
SideType = _enum("SideType", "LEFT", "RIGHT", "BOTH")

_FLOATS = {TypeId.FLOAT32: np.float32, TypeId.FLOAT64: np.float64}
_STORED = {
    TypeId.INT8: np.int8,
    TypeId.INT16: np.int16,
    TypeId.INT32: np.int32,
    TypeId.INT64: np.int64,
    TypeId.UINT8: np.uint8,
    TypeId.UINT16: np.uint16,
    TypeId.UINT32: np.uint32,
    TypeId.UINT64: np.uint64,
    **_FLOATS,
    TypeId.BOOL8: np.uint8,
    TypeId.TIMESTAMP_DAYS: np.int32,
    TypeId.TIMESTAMP_SECONDS: np.int64,
    TypeId.TIMESTAMP_MILLISECONDS: np.int64,
    TypeId.TIMESTAMP_MICROSECONDS: np.int64,
    TypeId.TIMESTAMP_NANOSECONDS: np.int64,
}
_UNITS = {
    TypeId.TIMESTAMP_SECONDS: "s",
    TypeId.TIMESTAMP_MILLISECONDS: "ms",
    TypeId.TIMESTAMP_MICROSECONDS: "us",
    TypeId.TIMESTAMP_NANOSECONDS: "ns",
}
_IDS = {unit: kind for kind, unit in _UNITS.items()}


class DataType:
    def __init__(self, type_id: Any, scale: int = 0) -> None:
        self._id, self._scale = TypeId(type_id), scale

    def id(self) -> Any:
        return self._id

    def scale(self) -> int:
        return self._scale

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and (self._id, self._scale) == (other._id, other._scale)

    def __hash__(self) -> int:
        return hash((self._id, self._scale))


class Buffer:
    def __init__(self, array: Any) -> None:
        self.array = array
        self.ptr, self.size = id(array), array.nbytes if array.dtype != object else sum(map(len, array))


class Scalar:
    def __init__(self, kind: DataType, value: Any) -> None:
        self.kind, self.value = kind, value

    def type(self) -> DataType:
        return self.kind

    def to_py(self, stream: Any = None) -> Any:
        return self.value


def _wrapped(value: Any, kind: DataType) -> Any:
    if value is None or kind.id() == TypeId.STRING:
        return value
    if kind.id() in _FLOATS:
        with np.errstate(all="ignore"):
            return float(_FLOATS[kind.id()](value))
    if kind.id() == TypeId.BOOL8:
        return bool(value)
    bits = 128 if kind.id() == TypeId.DECIMAL128 else 8 * _STORED[kind.id()]().itemsize
    value = int(value) & ((1 << bits) - 1)
    signed = kind.id() == TypeId.DECIMAL128 or np.issubdtype(_STORED[kind.id()], np.signedinteger)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


class Column:
    def __init__(self, data_type, size, data, mask, null_count, offset, children, validate=True):
        self._parts = (data_type, size, data, mask, null_count, offset)
        self._children = list(children)

    @classmethod
    def of(cls, values: list[Any], kind: DataType) -> Column:
        stored = [_wrapped(value, kind) for value in values]
        mask = np.array([value is not None for value in stored], bool)
        nulls = int((~mask).sum())
        if kind.id() == TypeId.STRING:
            texts = np.empty(len(stored), object)
            texts[:] = [b"" if v is None else v for v in stored]
            offsets = cls.of([0] * (len(stored) + 1), DataType(TypeId.INT32))
            return cls(kind, len(stored), Buffer(texts), Buffer(mask) if nulls else None, nulls, 0, [offsets])
        if kind.id() == TypeId.DECIMAL128:
            raw = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in stored)
        else:
            raw = np.array([0 if v is None else v for v in stored], _STORED[kind.id()]).tobytes()
        buffer = Buffer(np.frombuffer(raw, np.uint8))
        return cls(kind, len(stored), buffer, Buffer(mask) if nulls else None, nulls, 0, [])

    def values(self) -> list[Any]:
        kind, size, data, mask, _, offset = self._parts
        if kind.id() == TypeId.STRING:
            found = list(data.array[offset : offset + size])
        elif kind.id() == TypeId.DECIMAL128:
            raw = data.array.tobytes()[16 * offset : 16 * (offset + size)]
            found = [int.from_bytes(raw[i : i + 16], "little", signed=True) for i in range(0, len(raw), 16)]
        else:
            stored = np.frombuffer(data.array.tobytes(), _STORED[kind.id()])[offset : offset + size]
            found = [bool(v) for v in stored] if kind.id() == TypeId.BOOL8 else stored.tolist()
        assert len(found) == size
        if mask is None:
            return found
        return [v if ok else None for v, ok in zip(found, mask.array[offset : offset + size], strict=True)]

    def type(self):
        return self._parts[0]

    def size(self):
        return self._parts[1]

    def data(self):
        return self._parts[2]

    def null_mask(self):
        return self._parts[3]

    def null_count(self):
        return self._parts[4]

    def offset(self):
        return self._parts[5]

    def num_children(self):
        return len(self._children)

    def child(self, index):
        return self._children[index]

    @staticmethod
    def from_scalar(scalar, size, stream=None, mr=None):
        return Column.of([scalar.value] * size, scalar.kind)

    @staticmethod
    def all_null_like(like, size, stream=None, mr=None):
        return Column.of([None] * size, like.type())

    def to_scalar(self, stream=None, mr=None):
        assert self.size() == 1
        return Scalar(self.type(), self.values()[0])

    @staticmethod
    def from_arrow(array, stream=None, mr=None):
        kind = _from_arrow_type(array.type)
        if kind.id() == TypeId.STRING:
            return Column.of(array.cast(pa.large_binary()).to_pylist(), kind)
        if kind.id() == TypeId.DECIMAL128:
            return Column.of(
                [None if v is None else int(v.scaleb(-kind.scale(), _WIDE)) for v in array.to_pylist()], kind
            )
        if pa.types.is_temporal(array.type):
            array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
        return Column.of(array.to_pylist(), kind)

    def to_arrow(self, metadata=None, stream=None):
        kind, values = self.type(), self.values()
        if kind.id() == TypeId.STRING:
            return pa.array(values, pa.binary()).view(pa.string())
        if kind.id() == TypeId.DECIMAL128:
            scale = -kind.scale()
            return pa.array(
                [None if v is None else Decimal(v).scaleb(-scale, _WIDE) for v in values],
                pa.decimal128(38, scale),
            )
        if kind.id() == TypeId.BOOL8:
            return pa.array(values, pa.bool_())
        array = pa.array(values, pa.from_numpy_dtype(_STORED[kind.id()]))
        if kind.id() == TypeId.TIMESTAMP_DAYS:
            return array.view(pa.date32())
        return array.view(pa.timestamp(_UNITS[kind.id()])) if kind.id() in _UNITS else array


_WIDE = __import__("decimal").Context(prec=80)


def _from_arrow_type(kind: Any) -> DataType:
    if pa.types.is_decimal128(kind):
        return DataType(TypeId.DECIMAL128, -kind.scale)
    if pa.types.is_timestamp(kind):
        assert kind.tz is None
        return DataType(_IDS[kind.unit])
    if pa.types.is_date32(kind):
        return DataType(TypeId.TIMESTAMP_DAYS)
    if pa.types.is_boolean(kind):
        return DataType(TypeId.BOOL8)
    if kind in (pa.string(), pa.large_string()):
        return DataType(TypeId.STRING)
    return DataType(TypeId[{"float": "FLOAT32", "double": "FLOAT64"}.get(str(kind), str(kind).upper())])


class Table:
    def __init__(self, columns, num_rows=None):
        self._columns = list(columns)
        assert len({c.size() for c in self._columns}) == 1, [c.size() for c in self._columns]

    def columns(self):
        return tuple(self._columns)

    def num_rows(self):
        return self._columns[0].size()

    def rows(self):
        return list(zip(*(c.values() for c in self._columns), strict=True))


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
        return Column.of(list(map(function, _spread(lhs, rows), _spread(rhs, rows))), output_type)
    pairs = zip(_spread(lhs, rows), _spread(rhs, rows), strict=True)
    return Column.of([None if a is None or b is None else _PLAIN[name](a, b) for a, b in pairs], output_type)


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
}


def unary_operation(column, op, stream=None, mr=None):
    name = UnaryOperator(op).name
    assert name in ("ABS", "NOT") or column.type().id() in _FLOATS
    return Column.of([None if v is None else _UNARY[name](v) for v in column.values()], column.type())


def _flags(test):
    return lambda column, stream=None, mr=None: Column.of([test(v) for v in column.values()], _BOOL)


_BOOL = DataType(TypeId.BOOL8)
_INT32 = DataType(TypeId.INT32)


def cast(column, kind, stream=None, mr=None):
    own = column.type()
    assert TypeId.STRING not in (own.id(), kind.id())
    assert own.id() not in (*_UNITS, TypeId.TIMESTAMP_DAYS)
    assert TypeId.DECIMAL128 not in (own.id(), kind.id()) or (own.scale() == kind.scale() == 0)
    assert not (own.id() == TypeId.BOOL8 and kind.id() == TypeId.DECIMAL128)
    return Column.of(column.values(), kind)


def copy_if_else(lhs, rhs, mask, stream=None, mr=None):
    assert lhs.type() == rhs.type(), (lhs.type().id(), rhs.type().id())
    assert mask.type() == _BOOL
    rows = mask.size()
    triples = zip(mask.values(), _spread(lhs, rows), _spread(rhs, rows), strict=True)
    return Column.of([a if m else b for m, a, b in triples], lhs.type())


def replace_nulls(column, other, stream=None, mr=None):
    assert column.type() == other.type()
    return Column.of([other.value if v is None else v for v in column.values()], column.type())


def normalize(column, inplace=False, stream=None, mr=None):
    return Column.of(
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
        [Column.of([v[p] if 0 <= p < rows else None for p in places], c.type())
         for c in table.columns() for v in [c.values()]]
    )  # fmt: skip


def scatter(source, positions, target, stream=None, mr=None):
    columns = []
    for column, into in zip(source.columns(), target.columns(), strict=True):
        assert column.type() == into.type()
        values = into.values()
        for place, value in zip(positions.values(), column.values(), strict=True):
            values[place] = value
        columns.append(Column.of(values, column.type()))
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
    return Column.of([v for c in columns for v in c.values()], columns[0].type())


def apply_boolean_mask(table, mask, stream=None, mr=None):
    kept = [i for i, keep in enumerate(mask.values()) if keep]
    return gather(table, Column.of(kept, _INT32), OutOfBoundsPolicy.DONT_CHECK)


def sequence(size, init, step, stream=None):
    return Column.of([init.value + i * step.value for i in range(size)], init.kind)


def interleave_columns(table, stream=None, mr=None):
    return Column.of([v for row in table.rows() for v in row], table.columns()[0].type())


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
    return Column.of(positions, _INT32)


def contains(haystack, needles, stream=None, mr=None):
    assert haystack.type() == needles.type()
    known = {_hashable([v]) for v in haystack.values()}
    return Column.of([None if v is None else _hashable([v]) in known for v in needles.values()], _BOOL)


def encode(table, stream=None, mr=None):
    rows = [_hashable(row) for row in table.rows()]
    first: dict[Any, int] = {}
    for i, row in enumerate(rows):
        first.setdefault(row, i)
    distinct = sorted(first, key=repr)  # any order but that of appearance
    codes = {row: i for i, row in enumerate(distinct)}
    places = Column.of([first[row] for row in distinct], _INT32)
    return gather(table, places, OutOfBoundsPolicy.DONT_CHECK), Column.of([codes[r] for r in rows], _INT32)


def hash_partition(table, keys, count, stream=None, mr=None):
    parts: list[list[int]] = [[] for _ in range(count)]
    for i, row in enumerate(table.rows()):
        parts[hash(repr(_hashable([row[k] for k in keys]))) % count].append(i)
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    order = Column.of([i for part in parts for i in part], _INT32)
    return gather(table, order, OutOfBoundsPolicy.DONT_CHECK), starts[:-1]


def _nothing(kind, stream=None, mr=None):
    return Column.of([], kind)


# Aggregation.


def _total(values, kind):
    if kind.id() in _FLOATS:
        return _ieee_sum(values)
    return sum(values)


def _ieee_sum(values):
    with np.errstate(all="ignore"):
        return float(np.sum(np.array(values, np.float64)))


def _aggregated(name, values, kind):
    values = [v for v in values if v is not None]
    if name == "count":
        return len(values)
    if not values:
        return None
    return {"sum": lambda: _total(values, kind), "min": lambda: min(values), "max": lambda: max(values),
            "any": lambda: any(values)}[name]()  # fmt: skip


def reduce(column, aggregation, kind, stream=None, mr=None):
    return Scalar(kind, _wrapped(_aggregated(aggregation, column.values(), kind), kind))


class GroupByRequest:
    def __init__(self, values, aggregations):
        self.values, self.aggregations = values, aggregations


class GroupBy:
    def __init__(self, keys):
        self._keys = keys

    def aggregate(self, requests, stream=None, mr=None):
        (keys,) = self._keys.columns()
        codes = sorted(set(keys.values()), reverse=True)  # any order but theirs
        results = []
        for request in requests:
            groups: dict[Any, list[Any]] = {code: [] for code in codes}
            for code, value in zip(keys.values(), request.values.values(), strict=True):
                groups[code].append(value)
            kind = request.values.type()
            (name,) = request.aggregations
            found = [_aggregated(name, groups[code], kind) for code in codes]
            results.append(Table([Column.of(found, _INT32 if name == "count" else kind)]))
        return Table([Column.of(codes, keys.type())]), results


# Strings: bytes of UTF-8, as libcudf has them.


def _texts(function, out=None):
    def apply(column, *args, stream=None, mr=None):
        plain = [a.value if isinstance(a, Scalar) else a for a in args]
        values = [None if v is None else function(v.decode(), *plain) for v in column.values()]
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        return Column.of(encoded, out or DataType(TypeId.STRING))

    return apply


def _like(text: str, pattern: str) -> bool:
    reached = {0}
    for sign in pattern:
        if sign == "%":
            reached = {j for i in reached for j in range(i, len(text) + 1)}
        else:
            reached = {i + 1 for i in reached if i < len(text) and sign in ("_", text[i])}
    return len(text) in reached


def _stripped(text, side, what):
    what = what.decode()
    return text.strip(what) if side == SideType.BOTH else text.rstrip(what)


def _concatenated(table, separator, narep, stream=None, mr=None):
    assert narep.value is None
    return Column.of(
        [None if None in row else b"".join(row) for row in table.rows()], DataType(TypeId.STRING)
    )


def _written(column, pattern, names, stream=None, mr=None):
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    kind = column.type().id()
    unit = _UNITS.get(kind)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    texts = []
    for value in column.values():
        if value is None:
            texts.append(None)
            continue
        days = value if unit is None else 0
        seconds, fraction = (0, 0) if unit is None else divmod(value, per_second[unit])
        moment = epoch + timedelta(days=days, seconds=seconds)
        text = f"{moment.year:04d}" + moment.strftime("-%m-%d %H:%M:%S")
        date, time = text.split(" ")
        text = pattern.replace("%Y-%m-%d", date).replace("%H:%M:%S", time)
        for digits in (3, 6, 9):
            text = text.replace(f"%{digits}f", f"{fraction:0{digits}d}")
        texts.append(text.encode())
    return Column.of(texts, DataType(TypeId.STRING))


def _digits(column, stream=None, mr=None):
    scale = -column.type().scale()
    texts = [None if v is None else f"{Decimal(v).scaleb(-scale, _WIDE):f}".encode() for v in column.values()]
    return Column.of(texts, DataType(TypeId.STRING))


def _boolean_texts(column, yes, no, stream=None, mr=None):
    texts = [None if v is None else (yes if v else no).value for v in column.values()]
    return Column.of(texts, DataType(TypeId.STRING))


def size_of(kind: DataType) -> int:
    return 16 if kind.id() == TypeId.DECIMAL128 else _STORED[kind.id()]().itemsize


class Stream:
    def __cuda_stream__(self):
        return (0, 1)


class FakeSession:
    """What `CudaSession` is to the device."""

    name, limit, ordinal = "cuda:0", None, 0

    def __init__(self) -> None:
        self.stream, self.memory = Stream(), object()

    def enter(self) -> None:
        """Nothing to enter."""

    def synchronize(self, stream: object = None) -> None:
        """Nothing to wait for."""


def modules() -> dict[str, ModuleType]:
    """The modules by name, as `sys.modules` has them."""
    space = SimpleNamespace
    functions = {
        "pylibcudf.aggregation": {n: (lambda *a, n=n: n) for n in ("sum", "min", "max", "any", "count")}
        | {"Aggregation": str},
        "pylibcudf.binaryop": {"BinaryOperator": BinaryOperator, "binary_operation": binary_operation},
        "pylibcudf.unary": {
            "UnaryOperator": UnaryOperator,
            "unary_operation": unary_operation,
            "is_null": _flags(lambda v: v is None),
            "is_valid": _flags(lambda v: v is not None),
            "is_nan": _flags(lambda v: v is not None and v != v),
            "cast": cast,
        },
        "pylibcudf.column_factories": {
            "make_empty_column": lambda kind, stream=None, mr=None: Column.of([], kind)
        },
        "pylibcudf.concatenate": {"concatenate": concatenate},
        "pylibcudf.copying": {
            "OutOfBoundsPolicy": OutOfBoundsPolicy,
            "copy_if_else": copy_if_else,
            "gather": gather,
            "scatter": scatter,
            "slice": slice_column,
        },
        "pylibcudf.filling": {"sequence": sequence},
        "pylibcudf.groupby": {"GroupBy": GroupBy, "GroupByRequest": GroupByRequest},
        "pylibcudf.partitioning": {"hash_partition": hash_partition},
        "pylibcudf.reduce": {"reduce": reduce},
        "pylibcudf.replace": {"replace_nulls": replace_nulls, "normalize_nans_and_zeros": normalize},
        "pylibcudf.reshape": {"interleave_columns": interleave_columns},
        "pylibcudf.search": {"contains": contains},
        "pylibcudf.sorting": {"stable_sorted_order": stable_sorted_order},
        "pylibcudf.span": {"Span": object},
        "pylibcudf.stream_compaction": {"apply_boolean_mask": apply_boolean_mask},
        "pylibcudf.transform": {"encode": encode},
        "pylibcudf.types": {
            "TypeId": TypeId,
            "Order": Order,
            "NullOrder": NullOrder,
            "NullPolicy": NullPolicy,
            "size_of": size_of,
        },
        "pylibcudf.strings.side_type": {"SideType": SideType},
        "pylibcudf.strings": {
            "attributes": space(
                count_bytes=_texts(lambda v: len(v.encode()), _INT32), count_characters=_texts(len, _INT32)
            ),
            "case": space(to_lower=_texts(str.lower)),
            "combine": space(concatenate=_concatenated),
            "contains": space(like=_texts(_like, _BOOL)),
            "find": space(
                contains=_texts(lambda v, part: part.decode() in v, _BOOL),
                starts_with=_texts(lambda v, part: v.startswith(part.decode()), _BOOL),
            ),
            "slice": space(slice_strings=_texts(lambda v, start, stop, step: v[start:stop:step])),
            "strip": space(strip=_texts(_stripped)),
            "translate": space(translate=_texts(lambda v, table: v.translate(table))),
            "convert": space(
                convert_booleans=space(from_booleans=_boolean_texts),
                convert_datetime=space(from_timestamps=_written),
                convert_fixed_point=space(from_fixed_point=_digits),
                convert_integers=space(from_integers=_digits),
            ),
        },
        "rmm.mr": {"DeviceMemoryResource": object},
        "rmm.pylibrmm.stream": {"Stream": Stream},
    }
    found: dict[str, ModuleType] = {}
    for name in ("rmm", "rmm.pylibrmm", "pylibcudf", *functions):
        found[name] = ModuleType(name)
        for attribute, value in functions.get(name, {}).items():
            setattr(found[name], attribute, value)
    for name, module in found.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(found[parent], child, module)
    for attribute, value in {
        "Column": Column,
        "Scalar": Scalar,
        "Table": Table,
        "DataType": DataType,
        "TypeId": TypeId,
    }.items():
        setattr(found["pylibcudf"], attribute, value)
    return found


def install() -> list[str]:
    """Put the modules where imports find them; returns their names."""
    found = modules()
    sys.modules.update(found)
    return list(found)
