"""Columns that break encodings, packed and read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR
from bamquery.storage.format.layout import VECTOR_ROWS
from docs.tools.packed_decoder import decode_vector
from tests.packed.parameters import WIDTHS, find_fault, payload_bytes

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
KINDS = (*INTEGERS, *FLOATS, "int128", "bool")
SIZES = (1, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025)


def decoded_type(kind: str) -> np.dtype[Any]:
    """What values of the kind are here and to the oracle."""
    return np.dtype({"int128": "int64", "bool": "uint8"}.get(kind, kind))


def arrow_values(kind: str, values: NDArray[Any]) -> NDArray[np.uint8]:
    """As Arrow has them."""
    if kind == "bool":
        return np.packbits(values, bitorder="little")
    if kind == "int128":
        return np.stack([values, values >> 63], axis=1).reshape(-1).view(np.uint8)
    return values.view(np.uint8)


def plain_values(kind: str, stored: NDArray[np.uint8], rows: int) -> NDArray[Any]:
    """What `arrow_values` was made of."""
    if kind == "bool":
        return np.unpackbits(stored, count=rows, bitorder="little")
    if kind == "int128":
        words = stored.view(np.int64).reshape(-1, 2)
        assert np.array_equal(words[:, 1], words[:, 0] >> 63)
        return np.ascontiguousarray(words[:, 0])
    return stored.view(kind)


@dataclass(frozen=True)
class Packed:
    """A packed column: data as a fragment has it, 8 zero bytes behind."""

    kind: str
    rows: int
    data: NDArray[np.uint8]
    parameters: NDArray[Any]
    scale: tuple[int, int]

    @property
    def vector_rows(self) -> NDArray[np.int64]:
        """Of each vector."""
        starts = np.arange(len(self.parameters), dtype=np.int64) * VECTOR_ROWS
        return np.minimum(self.rows - starts, VECTOR_ROWS)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Of each payload."""
        return self.parameters["offset"].astype(np.int64) * 16

    def unpack(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Values and validity by the native decoder."""
        values = np.full(self.stored_bytes(self.rows), 0xA5, np.uint8)
        bitmap = np.full(-(-self.rows // 8), 0xFF, np.uint8)
        nulls = _native.unpack_vectors(
            self.kind, self.data, self.starts, self.parameters, self.vector_rows, *self.scale, values, bitmap
        )
        valid = np.unpackbits(bitmap, count=self.rows, bitorder="little").astype(bool)
        assert nulls == self.rows - valid.sum()
        return plain_values(self.kind, values, self.rows), valid

    def take(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Single rows, as block readers get them: 8 bytes each, from the data only."""
        about = (self.kind, self.parameters, self.rows, len(self.data))
        places = _native.packed_places(*about, rows)
        values = np.full(self.stored_bytes(len(rows)), 0xA5, np.uint8)
        bitmap = np.zeros(-(-len(rows) // 8), np.uint8)
        positions, rest = _native.unpack_rows(*about, *self.scale, rows, self._words(places), values, bitmap)
        _native.unpack_rest(*about, *self.scale, rows, positions, self._words(rest), values, bitmap)
        valid = np.unpackbits(bitmap, count=len(rows), bitorder="little").astype(bool)
        return plain_values(self.kind, values, len(rows)), valid

    def pick(self, positions: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Some rows by the native decoder, from payloads in memory."""
        values = np.full(self.stored_bytes(len(positions)), 0xA5, np.uint8)
        bitmap = np.full(-(-len(positions) // 8), 0xFF, np.uint8)
        vectors = self.data, self.starts, self.parameters, self.vector_rows
        begins = np.arange(len(self.starts)) * VECTOR_ROWS
        nulls = _native.pick_rows(self.kind, *vectors, *self.scale, begins, positions, values, bitmap)
        valid = np.unpackbits(bitmap, count=len(positions), bitorder="little").astype(bool)
        assert nulls == len(positions) - valid.sum()
        return plain_values(self.kind, values, len(positions)), valid

    def compare(
        self, terms: Sequence[tuple[Sequence[tuple[int, int]], bool]], *, nulls_pass: bool = False
    ) -> NDArray[np.bool_]:
        """Which rows pass: terms have intervals of keys, and whether they are negated."""
        size = 16 if self.kind == "int128" else 8
        keys = b"".join(
            key.to_bytes(size, "little") for term, _ in terms for bounds in term for key in bounds
        )
        counts = np.array([(len(term), negated) for term, negated in terms], np.int64).reshape(-1, 2)
        mask = np.full(-(-self.rows // 8), 0xFF, np.uint8)
        count = _native.compare_packed(
            self.kind,
            self.data,
            self.starts,
            self.parameters,
            self.vector_rows,
            *self.scale,
            counts,
            keys,
            nulls_pass,
            mask,
        )
        passing = np.unpackbits(mask, count=self.rows, bitorder="little").astype(bool)
        assert passing.sum() == count
        return passing

    def oracle(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Values and validity by numpy."""
        parts = [
            decode_vector(vector, self.data, int(rows), decoded_type(self.kind), self.scale)
            for vector, rows in zip(self.parameters, self.vector_rows, strict=True)
        ]
        empty = (np.zeros(0, decoded_type(self.kind)), np.zeros(0, bool))
        values, valid = zip(*parts, strict=True) if parts else ([empty[0]], [empty[1]])
        return np.concatenate(values), np.concatenate(valid)

    def stored_bytes(self, rows: int) -> int:
        """Of that many plain values."""
        return -(-rows // 8) if self.kind == "bool" else rows * WIDTHS[self.kind]

    def _words(self, places: NDArray[np.int64]) -> NDArray[np.uint64]:
        padded = np.concatenate([self.data, np.zeros(8, np.uint8)])
        assert not len(places) or (places.min() >= 0 and places.max() <= len(self.data))
        return np.ascontiguousarray(padded[places[:, None] + np.arange(8)]).view(np.uint64).reshape(-1)


def pack(
    kind: str,
    values: NDArray[Any],
    valid: NDArray[np.bool_] | None = None,
    *,
    scale: tuple[int, int] = (1, 0),
    exponents: Sequence[int] = (),
) -> Packed:
    """Pack values of `decoded_type`; where not valid, they are taken as zero."""
    canonical = np.ascontiguousarray(
        values if valid is None else np.where(valid, values, np.zeros(1, values.dtype))
    )
    bitmap = None if valid is None else np.packbits(valid, bitorder="little")
    payload, parameters, crcs = _native.pack_vectors(
        kind, arrow_values(kind, canonical), bitmap, len(values), *scale, bytes(exponents)
    )
    packed = Packed(kind, len(values), payload, parameters.reshape(-1).view(PACKED_VECTOR), scale)
    sizes = payload_bytes(packed.parameters, packed.vector_rows, kind)
    assert find_fault(packed.parameters, sizes, kind, len(payload)) is None
    ends = [*packed.starts, len(payload)][1:]
    for start, end, crc in zip(packed.starts, ends, crcs, strict=True):
        assert _native.crc32c(payload[start:end]) == crc
    return packed


def assert_same(
    kind: str, found: tuple[NDArray[Any], NDArray[np.bool_]], values: NDArray[Any], valid: NDArray[np.bool_]
) -> None:
    """Same bits where valid, zeros elsewhere."""
    bits = f"u{values.dtype.itemsize}"
    expected = np.where(valid, values.view(bits), 0).astype(bits)
    assert np.array_equal(found[1], valid)
    assert np.array_equal(np.ascontiguousarray(found[0]).view(bits), expected), kind


def all_columns(kind: str, rows: int, seed: int = 0) -> Iterator[tuple[str, NDArray[Any]]]:
    """Values of the kind, of every sort that an encoding has to know."""
    random = np.random.default_rng([seed, rows])
    dtype = decoded_type(kind)
    if kind == "bool":
        yield "bits", random.integers(0, 2, rows).astype(dtype)
        yield "false", np.zeros(rows, dtype)
        yield "true", np.ones(rows, dtype)
        return
    yield "constant", np.full(rows, 77, dtype)
    yield "zero", np.zeros(rows, dtype)
    yield "small", random.integers(0, 100, rows).astype(dtype)
    yield "random bits", random.integers(0, 256, rows * dtype.itemsize).astype(np.uint8).view(dtype)
    outliers = random.integers(0, 50, rows).astype(dtype)
    outliers[random.random(rows) < 0.01] = 120
    yield "outliers", outliers
    few = np.array([1, 3, 100, 127], dtype)
    yield "few", few[random.integers(0, 4, rows)]
    if dtype.kind == "f":
        yield from _float_columns(dtype, rows, random)
    else:
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max, info.min + 1, info.max - 1, 0], dtype)
        yield "ends", ends[random.integers(0, 5, rows)]
        yield "greatest", info.max - random.integers(0, 30, rows).astype(dtype)
        yield "least", info.min + random.integers(0, 30, rows).astype(dtype)
        yield "multiples", (random.integers(0, 12, rows) * 10 + 3).astype(dtype)
        bits = 8 * dtype.itemsize
        for width in {1, 7, bits // 2, bits - 8, bits - 7}:
            yield f"{width} bits", random.integers(0, 2**width, rows, np.uint64, endpoint=False).astype(dtype)


def _float_columns(
    dtype: np.dtype[Any], rows: int, random: np.random.Generator
) -> Iterator[tuple[str, NDArray[Any]]]:
    for exponent in (0, 1, 2, 5, 9, 15):
        digits = random.integers(-(10**6), 10**6, rows)
        yield f"{exponent} digits", (digits / 10**exponent).astype(dtype)
    yield "float32", random.normal(-74, 0.1, rows).astype(np.float32).astype(dtype)
    yield "normal", random.normal(0, 1, rows).astype(dtype)
    bits = np.dtype(f"u{dtype.itemsize}")
    sign = 1 << (8 * dtype.itemsize - 1)
    infinity = int(np.array(np.inf, dtype).view(bits))
    specials = np.array(
        [
            0,
            sign,
            infinity,
            infinity | sign,
            infinity + 1,
            infinity | sign | 99,
            sign - 1,
            2 * sign - 1,
            1,
            sign + 1,
        ],
        bits,
    ).view(dtype)
    yield "specials", specials[random.integers(0, len(specials), rows)]
    mixed = (random.integers(0, 1000, rows) / 100).astype(dtype)
    at = random.random(rows) < 0.02
    mixed[at] = specials[random.integers(0, len(specials), int(at.sum()))]
    yield "prices and specials", mixed
    yield "negative zeros", np.full(rows, -0.0, dtype)
    yield "subnormals", random.integers(0, 1000, rows).astype(bits).view(dtype)
    yield "large", (random.integers(0, 2**62, rows)).astype(dtype)
    yield "around 2^50", (2.0**50 + random.integers(-50, 50, rows)).astype(dtype)


def order_keys(kind: str, values: NDArray[Any]) -> NDArray[Any]:
    """Of values: those of scan_predicate.hpp, as Python's integers for int128."""
    if kind == "int128":
        return values.astype(object) + (1 << 127)
    if kind == "bool" or values.dtype.kind == "u":
        return values.astype(np.uint64)
    width = max(values.dtype.itemsize, 4)
    if values.dtype.kind == "i":
        return (values.astype(np.int64).astype(object) + (1 << (8 * width - 1))).astype(np.uint64)
    unsigned = np.dtype(f"u{width}")
    bits = np.where(values == 0, np.zeros(1, values.dtype), values).view(unsigned)
    sign = unsigned.type(1 << (8 * width - 1))
    keys = np.where(bits & sign, ~bits, bits | sign)
    return np.where(np.isnan(values), np.iinfo(unsigned).max, keys).astype(np.uint64)


def greatest_key(kind: str) -> int:
    """Of the kind."""
    return (1 << max(8 * WIDTHS[kind], 32)) - 1
