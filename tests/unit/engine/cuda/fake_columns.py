"""Columns of Python values over raw buffers: the device looks at stored values of one type as another."""

# ruff: noqa: PLR0917  (signatures are libcudf's)

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from decimal import Context, Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa


def _enum(name: str, *members: str) -> Any:
    return IntEnum(name, {member: i for i, member in enumerate(members)})


TypeId = _enum(
    "TypeId",
    *("EMPTY", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("FLOAT32", "FLOAT64", "BOOL8", "TIMESTAMP_DAYS", "TIMESTAMP_SECONDS", "TIMESTAMP_MILLISECONDS"),
    *("TIMESTAMP_MICROSECONDS", "TIMESTAMP_NANOSECONDS", "STRING", "DECIMAL64", "DECIMAL128", "LIST"),
)
_BINARY = (
    *("ADD", "SUB", "MUL", "DIV", "MOD", "POW", "SHIFT_LEFT", "SHIFT_RIGHT", "SHIFT_RIGHT_UNSIGNED"),
    *("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "LOGICAL_AND", "LOGICAL_OR", "EQUAL", "NOT_EQUAL"),
    *("LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL", "NULL_LOGICAL_AND", "NULL_LOGICAL_OR", "ATAN2"),
)
BinaryOperator = _enum("BinaryOperator", *_BINARY)
UnaryOperator = _enum(
    "UnaryOperator",
    *("EXP", "LOG", "SQRT", "CEIL", "FLOOR", "ABS", "RINT", "NOT", "CBRT", "SIN", "COS", "TAN", "ARCSIN"),
    *("ARCCOS", "ARCTAN", "SINH", "COSH", "TANH", "ARCSINH", "ARCCOSH", "ARCTANH", "BIT_INVERT"),
)
Order = _enum("Order", "ASCENDING", "DESCENDING")
NullOrder = _enum("NullOrder", "AFTER", "BEFORE")
NullPolicy = _enum("NullPolicy", "EXCLUDE", "INCLUDE")
OutOfBoundsPolicy = _enum("OutOfBoundsPolicy", "NULLIFY", "DONT_CHECK")
ScanType = _enum("ScanType", "INCLUSIVE", "EXCLUSIVE")
Sorted = _enum("Sorted", "NO", "YES")
OutputIfEmptyList = _enum("OutputIfEmptyList", "EMPTY_STRING", "NULL_ELEMENT")
SeparatorOnNulls = _enum("SeparatorOnNulls", "YES", "NO")
SideType = _enum("SideType", "LEFT", "RIGHT", "BOTH")

FLOATS = {TypeId.FLOAT32: np.float32, TypeId.FLOAT64: np.float64}
STORED = {
    TypeId.INT8: np.int8,
    TypeId.INT16: np.int16,
    TypeId.INT32: np.int32,
    TypeId.INT64: np.int64,
    TypeId.UINT8: np.uint8,
    TypeId.UINT16: np.uint16,
    TypeId.UINT32: np.uint32,
    TypeId.UINT64: np.uint64,
    **FLOATS,
    TypeId.BOOL8: np.uint8,
    TypeId.TIMESTAMP_DAYS: np.int32,
    TypeId.TIMESTAMP_SECONDS: np.int64,
    TypeId.TIMESTAMP_MILLISECONDS: np.int64,
    TypeId.TIMESTAMP_MICROSECONDS: np.int64,
    TypeId.TIMESTAMP_NANOSECONDS: np.int64,
    TypeId.DECIMAL64: np.int64,
}
UNITS = {
    TypeId.TIMESTAMP_SECONDS: "s",
    TypeId.TIMESTAMP_MILLISECONDS: "ms",
    TypeId.TIMESTAMP_MICROSECONDS: "us",
    TypeId.TIMESTAMP_NANOSECONDS: "ns",
}
_IDS = {unit: kind for kind, unit in UNITS.items()}


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
    """Memory that kernels may look at."""

    def __init__(self, array: Any) -> None:
        self.array = np.ascontiguousarray(array)
        self.ptr, self.size = int(self.array.ctypes.data), self.array.nbytes


def _bits(values: list[Any]) -> Buffer:
    """A bit for each that is not null, in whole words."""
    bits = np.packbits([value is not None for value in values], bitorder="little")
    return Buffer(np.concatenate([bits, np.zeros(-len(bits) % 64, np.uint8)]))


class Scalar:
    def __init__(self, kind: DataType, value: Any) -> None:
        self.kind, self.value = kind, value

    def type(self) -> DataType:
        return self.kind

    def to_py(self, stream: Any = None) -> Any:
        return self.value


def wrapped(value: Any, kind: DataType) -> Any:
    return None if value is None else _wrapping(kind.id())(value)


@functools.cache
def _wrapping(type_id: Any) -> Callable[[Any], Any]:
    """What values come to in a type, which is asked for them one by one, and so is quick where they fit."""
    if type_id == TypeId.STRING:
        return lambda value: value
    if type_id in FLOATS:
        return float if type_id == TypeId.FLOAT64 else _single
    if type_id == TypeId.BOOL8:
        return bool
    bits = 128 if type_id == TypeId.DECIMAL128 else 8 * STORED[type_id]().itemsize
    signed = type_id == TypeId.DECIMAL128 or np.issubdtype(STORED[type_id], np.signedinteger)
    low = -(1 << (bits - 1)) if signed else 0
    end = low + (1 << bits)

    def wrap(value: Any) -> int:
        number = int(value)
        return number if low <= number < end else (number - low) % (1 << bits) + low

    return wrap


def _single(value: Any) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(value))


def _raw(data: Any) -> bytes:
    """What is in a buffer; memory of somebody else's only has an address."""
    if hasattr(data, "array"):
        raw: bytes = data.array.tobytes()
        return raw
    return ctypes.string_at(data.ptr, data.size)


class Column:
    def __init__(self, data_type, size, data, mask, null_count, offset, children, validate=True):
        self._parts = (data_type, size, data, mask, null_count, offset)
        self._children = list(children)

    def made(self, values: list[Any]) -> Column:
        """Other values of the same type."""
        kind = self.type()
        if kind.id() != TypeId.LIST:
            return Column.from_values(values, kind)
        flat = [v for one in values for v in one]
        offsets = Column.from_values(np.cumsum([0, *map(len, values)]).tolist(), INT32)
        return Column(kind, len(values), None, None, 0, 0, [offsets, self.child(1).made(flat)])

    def list_view(self):
        assert self.type().id() == TypeId.LIST
        return self

    def get_sliced_child(self, stream=None):
        assert self.size(), "libcudf reads an offset, and there may be none"
        return self.child(1).made([v for one in self.values() for v in one])

    @classmethod
    def from_values(cls, values: list[Any], kind: DataType) -> Column:
        assert kind.id() != TypeId.LIST
        wrap = _wrapping(kind.id())
        stored = [None if value is None else wrap(value) for value in values]
        nulls = stored.count(None)
        mask = _bits(stored) if nulls else None
        if kind.id() == TypeId.STRING:
            texts = [b"" if v is None else v.encode() if isinstance(v, str) else v for v in stored]
            ends = cls.from_values(np.cumsum([0, *map(len, texts)]).tolist(), DataType(TypeId.INT32))
            data = Buffer(np.frombuffer(b"".join(texts), np.uint8))
            return cls(kind, len(stored), data, mask, nulls, 0, [ends])
        if kind.id() == TypeId.DECIMAL128:
            raw = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in stored)
        else:
            raw = np.array([0 if v is None else v for v in stored], STORED[kind.id()]).tobytes()
        buffer = Buffer(np.frombuffer(raw, np.uint8))
        return cls(kind, len(stored), buffer, mask, nulls, 0, [])

    def values(self) -> list[Any]:
        kind, size, data, mask, _, offset = self._parts
        if kind.id() == TypeId.LIST:
            ends, values = self.child(0).values(), self.child(1).values()
            return [values[ends[i] : ends[i + 1]] for i in range(offset, offset + size)]
        if kind.id() == TypeId.STRING:
            ends, raw = self.child(0).values(), _raw(data)
            found = [raw[ends[i] : ends[i + 1]] for i in range(offset, offset + size)]
        elif kind.id() == TypeId.DECIMAL128:
            raw = _raw(data)[16 * offset : 16 * (offset + size)]
            found = [int.from_bytes(raw[i : i + 16], "little", signed=True) for i in range(0, len(raw), 16)]
        else:
            stored = np.frombuffer(_raw(data), STORED[kind.id()])[offset : offset + size]
            found = [bool(v) for v in stored] if kind.id() == TypeId.BOOL8 else stored.tolist()
        assert len(found) == size
        if mask is None:
            return found
        bits = np.unpackbits(np.frombuffer(_raw(mask), np.uint8), bitorder="little")[offset : offset + size]
        return [v if ok else None for v, ok in zip(found, bits, strict=True)]

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
        return Column.from_values([scalar.value] * size, scalar.kind)

    @staticmethod
    def all_null_like(like, size, stream=None, mr=None):
        return like.made([None] * size)

    def to_scalar(self, stream=None, mr=None):
        assert self.size() == 1
        return Scalar(self.type(), self.values()[0])

    @staticmethod
    def from_arrow(array, stream=None, mr=None):
        kind = _from_arrow_type(array.type)
        if kind.id() == TypeId.STRING:
            return Column.from_values(array.cast(pa.large_binary()).to_pylist(), kind)
        if kind.id() == TypeId.DECIMAL128:
            return Column.from_values(
                [None if v is None else int(v.scaleb(-kind.scale(), WIDE)) for v in array.to_pylist()], kind
            )
        if pa.types.is_temporal(array.type):
            array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
        return Column.from_values(array.to_pylist(), kind)

    def to_arrow(self, metadata=None, stream=None):
        kind, values = self.type(), self.values()
        assert kind.id() != TypeId.DECIMAL64, "no plan knows of them"
        if kind.id() == TypeId.STRING:
            return pa.array(values, pa.binary()).view(pa.string())
        if kind.id() == TypeId.DECIMAL128:
            scale = -kind.scale()
            return pa.array(
                [None if v is None else Decimal(v).scaleb(-scale, WIDE) for v in values],
                pa.decimal128(38, scale),
            )
        if kind.id() == TypeId.BOOL8:
            return pa.array(values, pa.bool_())
        array = pa.array(values, pa.from_numpy_dtype(STORED[kind.id()]))
        if kind.id() == TypeId.TIMESTAMP_DAYS:
            return array.view(pa.date32())
        return array.view(pa.timestamp(UNITS[kind.id()])) if kind.id() in UNITS else array


WIDE = Context(prec=80)


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


BOOL = DataType(TypeId.BOOL8)
INT32 = DataType(TypeId.INT32)


def size_of(kind: DataType) -> int:
    return 16 if kind.id() == TypeId.DECIMAL128 else STORED[kind.id()]().itemsize
