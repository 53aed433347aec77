"""Kernels that read packed vectors, against what the vectors were made of."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bamquery import _native
from bamquery.storage.encodings.packed.parameters import (
    DECIMAL,
    FLOAT32,
    INTEGER,
    PACKED_VECTOR,
    RAW,
    UNSCALED,
)
from tests.packed.vectors import Vector, packed, raw
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeMemory

SIZES = (1, 31, 32, 33, 127, 128, 129, 1023)
C_TYPES = {
    **{f"{s}int{b}": f"{s}int{b}_t" for s in ("", "u") for b in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}


class Column:
    """Vectors in memory that kernels see."""

    def __init__(self, vectors: Sequence[Vector], divisor: int = 1, origin: int = 0) -> None:
        self.vectors = vectors
        parameters = np.zeros(len(vectors), PACKED_VECTOR)
        slots = np.zeros(len(vectors), np.uint32)
        payload = b""
        for number, vector in enumerate(vectors):
            parameters[number] = vector.parameters
            parameters[number]["offset"] = slots[number] = len(payload) // 16
            payload += vector.payload
        rows = np.array([len(v.values) for v in vectors], np.uint16)
        places = np.zeros((len(vectors), 2), np.uint32)
        places[:, 1] = np.arange(len(vectors))
        self.payload = memory(np.frombuffer(payload + bytes(16), np.uint8))
        self.parameters, self.slots = memory(parameters), memory(slots)
        self.places, self.rows = memory(places), memory(rows)
        self.scale = memory(np.array([divisor % 2**64, origin % 2**64], np.uint64))
        held = (self.parameters, self.slots, self.payload, self.places, self.scale, self.rows)
        self.packed = struct.pack("<6Q", *[one.address for one in held])


def launch(kernel: Any, *arguments: Any, grid: int = 2, block: int = 256) -> None:
    given = [
        a if isinstance(a, bytes) else int(getattr(a, "address", a or 0)).to_bytes(size, "little")
        for a, size in zip(arguments, kernel.sizes, strict=True)
    ]
    kernel.run(given, grid, block)


def memory(data: Any, least: int = 16) -> FakeMemory:
    found = FakeMemory(max(np.asarray(data).nbytes, least))
    if np.asarray(data).nbytes:
        found.write(np.ascontiguousarray(data).view(np.uint8))
    return found


def define(dtype: Any) -> tuple[str, ...]:
    return (f"BAMQUERY_SCAN_TYPE={C_TYPES[np.dtype(dtype).name]}",)


def forms(rows: int, dtype: Any, seed: int = 0) -> list[Vector]:
    """Vectors of each form that a type has, of that many rows, with escapes and nulls."""
    random = np.random.default_rng(seed + rows)
    kind = np.dtype(dtype)
    found = []
    some = random.integers(0, 2, rows).astype(bool)
    if kind.kind == "f":
        numbers = random.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.25, 1e300], rows)
        with np.errstate(over="ignore"):
            numbers = numbers.astype(kind)
        found += [raw(numbers), raw(numbers, some)]
        special = np.array([1.25, np.inf, np.nan, -0.0, -1.5], kind)
        words = sorted(special.view(f"u{kind.itemsize}").tolist())
        for bits, exponent in ((3, 0), (5, 2), (13, 2), (20, 7), (30, 15)):
            codes = random.integers(0, 1 << bits, rows)
            options: dict[str, Any] = {"exponent": exponent, "dtype": kind}
            found.append(packed(codes, bits, DECIMAL, -3, **options))
            found.append(packed(codes, bits, DECIMAL, -3, escapes=words, nulls=True, **options))
            options |= {"nulls": True, "short": True, "escapes": [-12345, -1, 1 << 30]}
            found.append(packed(codes, bits, DECIMAL, 7, **options))
        if kind.itemsize == 8:
            base = 0x80000000 | int(np.array(1.5, np.float32).view(np.uint32))
            found.append(packed(random.integers(0, 1 << 12, rows), 12, FLOAT32, base, dtype=kind))
            top = 0xFF800000 - 30 + np.arange(rows) % 30
            found.append(packed(top - 0xFF000000, 25, FLOAT32, 0xFF000000, dtype=kind))
            found.append(
                packed(random.integers(0, 1 << 12, rows), 12, FLOAT32, 0x7FFFFF00 - 0x2000, dtype=kind)
            )
        found += [
            packed(np.zeros(rows), 0, DECIMAL, 25, 1, dtype=kind),
            packed(np.zeros(rows), 0, DECIMAL, escapes=words[:1], dtype=kind),
        ]
        found.append(packed(np.zeros(rows), 0, DECIMAL, nulls=True, dtype=kind))
        return found
    limits = np.iinfo(kind)
    values = random.integers(limits.min, limits.max, rows, dtype=kind, endpoint=True)
    found += [raw(values), raw(values, some)]
    words = [1, 2, (1 << 8 * kind.itemsize) - 1]
    for bits in (1, 3, 7, 8, 13, 31, 32, 33, 47, 56):
        if bits > 8 * kind.itemsize:
            continue
        codes = random.integers(0, 1 << bits, rows, dtype=np.uint64)
        base = limits.min if bits > 3 else 5
        options = {"dtype": kind, "divisor": 3, "origin": 2}
        found.append(packed(codes, bits, UNSCALED, base, **options))
        narrow = bits <= 8 * kind.itemsize - 3
        found.append(
            packed(codes, bits, INTEGER if narrow else UNSCALED, base if not narrow else 0, **options)
        )
        if bits > 1:
            form = INTEGER if narrow else UNSCALED
            base = 0 if narrow else limits.min
            found.append(packed(codes, bits, form, base, escapes=words, nulls=bits > 2, **options))
            far = options | {"nulls": bits > 2, "short": True, "escapes": [-(1 << 31), (1 << 31) - 1]}
            found.append(packed(codes, bits, form, base, **far))
    top = np.arange(rows) % 28  # codes that are not in use would wrap
    found.append(packed(top, 5, UNSCALED, limits.max - 27 - (2**64 if kind == np.uint64 else 0), **options))
    found.append(packed(top, 5, INTEGER, (limits.max - 2) // 3 - 27, **options))
    found.append(packed(np.zeros(rows), 0, INTEGER, 9, **options))
    found.append(packed(np.zeros(rows), 0, INTEGER, nulls=True, **options))
    found.append(packed(np.arange(rows) % 2, 1, INTEGER, 4, nulls=True, **options))
    return found


KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64")


@pytest.mark.parametrize("dtype", KINDS)
def test_all_values(emulator: Emulator, dtype: str) -> None:
    vectors = [vector for rows in (1024, *SIZES) for vector in forms(rows, dtype)]
    column = Column(vectors, 3, 2)
    count, width = len(vectors), np.dtype(dtype).itemsize
    to, validity, nulls = FakeMemory(count * 1024 * width), FakeMemory(128 * count), FakeMemory(16)
    nulls.clear()
    kernel = emulator.kernel("packed/gather", "scan_packed_unpack", define(dtype))
    launch(kernel, column.packed, count, to, validity, nulls)
    found = to.bytes.view(dtype).reshape(count, 1024)
    bits = np.unpackbits(validity.bytes[: 128 * count], bitorder="little").reshape(count, 1024)
    for number, vector in enumerate(vectors):
        length = len(vector.values)
        assert found[number, :length].tobytes() == vector.values.tobytes(), vector.parameters
        assert bits[number, :length].astype(bool).tolist() == vector.valid.tolist(), vector.parameters
        assert not bits[number, length:].any()
    assert nulls.bytes[:4].view(np.uint32)[0] == sum((~v.valid).sum() for v in vectors)


@pytest.mark.parametrize("dtype", KINDS)
def test_values_at_positions(emulator: Emulator, dtype: str) -> None:
    vectors = [*forms(1024, dtype), *forms(129, dtype)]
    column = Column(vectors, 3, 2)
    random = np.random.default_rng(1)
    positions = np.concatenate(
        [1024 * n + np.flatnonzero(random.random(len(v.values)) < 0.1) for n, v in enumerate(vectors)]
    ).astype(np.uint32)
    expected = np.zeros(1024 * len(vectors), dtype)
    valid = np.zeros(1024 * len(vectors), bool)
    for n, v in enumerate(vectors):
        expected[1024 * n : 1024 * n + len(v.values)] = v.values
        valid[1024 * n : 1024 * n + len(v.values)] = v.valid
    width = np.dtype(dtype).itemsize
    to, told = FakeMemory(len(positions) * width), FakeMemory(len(positions))
    kernel = emulator.kernel("packed/gather", "scan_packed_gather", define(dtype))
    launch(kernel, column.packed, memory(positions), len(positions), to, told)
    assert to.bytes.tobytes() == expected[positions].tobytes()
    assert told.bytes.astype(bool).tolist() == valid[positions].tolist()
    launch(kernel, column.packed, memory(positions), len(positions), to, None)


def order_keys(values: np.ndarray) -> list[int]:
    import pyarrow as pa

    from bamquery.engine.cuda.scan.kernel_tables.zones import order_keys as keys

    found = keys(pa.array(values, from_pandas=False))
    if values.dtype.kind == "f":
        nan = (1 << max(8 * values.dtype.itemsize, 32)) - 1
        return [nan if np.isnan(v) else int(k) for v, k in zip(values.tolist(), found.tolist(), strict=True)]
    return [int(k) for k in found.tolist()]


def terms_of(keys: list[int], random: Any, top: int) -> list[tuple[tuple[tuple[int, int], ...], bool]]:
    def key() -> int:
        return int(min(max(int(random.choice(keys)) + int(random.integers(-1, 2)), 0), top))

    match int(random.integers(0, 6)):
        case 0:
            return [(((key(), top),), False)]
        case 1:
            return [(((0, key()),), False)]
        case 2:
            low, high = sorted((key(), key()))
            return [(((low, high),), False)]
        case 3:
            return [(tuple((k, k) for k in sorted({key() for _ in range(5)})), True), (((0, key()),), False)]
        case 4:
            return [(tuple((k, k) for k in sorted({key() for _ in range(20)})), False)]
        case _:
            return [] if random.random() < 0.5 else [((), False)]


@pytest.mark.parametrize("dtype", KINDS)
def test_filters(emulator: Emulator, dtype: str, scan_modules: None) -> None:
    from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, Term

    vectors = [vector for rows in (1024, 1, 33, 129) for vector in forms(rows, dtype)]
    column, count = Column(vectors, 3, 2), len(vectors)
    random = np.random.default_rng(5)
    top = (1 << max(8 * np.dtype(dtype).itemsize, 32)) - 1
    keys = [order_keys(v.values) for v in vectors]
    known = sorted({k for some in keys for k in some[:40]} | {0, top})
    kernel = emulator.kernel("packed/filter", "scan_packed_filter", define(dtype))
    for turn in range(12):
        wants_nulls = turn == 11
        terms = [] if wants_nulls else terms_of(known, random, top)
        predicate = FusedPredicate(
            C_TYPES[dtype], tuple(Term(intervals, negated) for intervals, negated in terms), wants_nulls
        )
        mask, counts = FakeMemory(128 * count), FakeMemory(4 * count)
        launch(kernel, column.packed, None, count, predicate.pack(), mask, counts)
        found = np.unpackbits(mask.bytes, bitorder="little").reshape(count, 1024).astype(bool)
        for number, vector in enumerate(vectors):
            passes = np.array(
                [
                    all(any(lo <= k <= hi for lo, hi in intervals) != negated for intervals, negated in terms)
                    for k in keys[number]
                ]
            )
            expected = ~vector.valid if wants_nulls else vector.valid & passes
            length = len(vector.values)
            assert found[number, :length].tolist() == expected.tolist(), (vector.parameters, terms)
            assert not found[number, length:].any()
            assert counts.bytes.view(np.uint32)[number] == expected.sum()


def test_impossible_parameters_read_nothing(emulator: Emulator) -> None:
    """Rows of such vectors are null, whatever is behind the payload that they have."""
    impossible = [
        (0, 57, 0, 0, 0),
        (0, 64, 0, 0, 0),
        (0, 255, 0, 0, 0),
        (0, 3, 0, 9, 0),
        (0, 12, 0, 1024, 0),
        (0, 0, 0, 1 << 15 | 1, 0),
        (0, 9, 0, 1 << 14, 0),
        (0, 5, 7 << 5, 0, 0),
        (0, 5, DECIMAL << 5 | 31, 0, 0),
        (0, 5, RAW << 5, 0, 0),
    ]
    vectors = [
        Vector(b"", np.array(p, PACKED_VECTOR), np.zeros(1024), np.zeros(1024, bool)) for p in impossible
    ]
    column, count = Column(vectors), len(vectors)
    sizes = FakeMemory(4 * count)
    files = struct.pack(
        "<5Q2I", column.parameters.address, column.places.address, 0, column.rows.address, 0, 8, 512
    )
    launch(emulator.kernel("packed/load", "scan_packed_sizes", ()), files, count, sizes)
    assert not sizes.bytes[: 4 * count].any()
    to, validity, nulls = FakeMemory(count * 8192), FakeMemory(128 * count), FakeMemory(16)
    kernel = emulator.kernel("packed/gather", "scan_packed_unpack", define("float64"))
    launch(kernel, column.packed, count, to, validity, nulls)
    assert not to.bytes.any()
    assert not validity.bytes.any()


@pytest.mark.parametrize("dtype", ["int64", "int8"])
@pytest.mark.parametrize("chosen", [False, True])
def test_payloads_are_moved_and_compared(emulator: Emulator, dtype: str, chosen: bool) -> None:
    vectors = [*forms(1024, dtype), *forms(129, dtype), *forms(1, dtype)]
    column, count = Column(vectors, 3, 2), len(vectors)
    width = np.dtype(dtype).itemsize
    random = np.random.default_rng(3)
    wanted = random.random(count) < 0.4 if chosen else np.ones(count, bool)
    used = memory(wanted.astype(np.uint32))
    place = np.zeros(1, [("offset", "<u8"), ("map", "<u8"), ("nsid", "<u4"), ("pad", "<u4")])
    place["offset"], place["map"] = 4096, column.payload.address - 4096
    held = (column.parameters, column.places, memory(place), column.rows)
    files = struct.pack("<5Q2I", *[one.address for one in held], used.address if chosen else 0, width, 512)
    sizes, slots = FakeMemory(4 * count), FakeMemory(4 * count + 4)
    launch(emulator.kernel("packed/load", "scan_packed_sizes", ()), files, count, sizes)
    expected = np.array([len(v.payload) // 16 if w else 0 for v, w in zip(vectors, wanted, strict=True)])
    assert sizes.bytes[: 4 * count].view(np.uint32).tolist() == expected.tolist()
    total = FakeMemory(16)
    launch(emulator.kernel("scan_select", "scan_offsets", ()), sizes, count, slots, total, grid=1, block=1024)
    starts = slots.bytes[: 4 * count + 4].view(np.uint32)
    target = FakeMemory(16 * int(starts[-1]) + 16)
    next_one, tally, bad = FakeMemory(16), FakeMemory(40), FakeMemory(16)
    for one in (next_one, tally, bad):
        one.clear()
    kernel = emulator.kernel("packed/load", "scan_packed_load", ())
    launch(kernel, files, slots, count, target, next_one, tally)
    begins = np.cumsum([0] + [len(v.payload) for v in vectors])
    blocks = set()
    for number, vector in enumerate(vectors):
        if not wanted[number] or not vector.payload:
            continue
        at = 16 * int(starts[number])
        assert target.bytes[at : at + len(vector.payload)].tobytes() == vector.payload
        begin = 4096 + int(begins[number])
        blocks |= set(range(begin // 512, (begin + len(vector.payload) - 1) // 512 + 1))
    counted = tally.bytes.view(np.uint64)
    assert counted[0] == (expected > 0).sum()
    assert counted[1] == len(blocks)
    crcs = memory(np.array([_native.crc32c(v.payload) for v in vectors], np.uint32))
    check = emulator.kernel("packed/load", "scan_packed_crc", ())
    launch(check, files, slots, count, target, crcs, bad)
    assert bad.bytes[:4].view(np.uint32)[0] == 0
    last = int(np.flatnonzero(expected)[-1])
    target.bytes[16 * int(starts[last])] ^= 1
    launch(check, files, slots, count, target, crcs, bad)
    assert bad.bytes[:4].view(np.uint32)[0] == count - last
    if chosen:
        check_requests(emulator, column, files, (used, slots, target), expected, len(blocks))


def check_requests(  # noqa: PLR0917 - what the test above has
    emulator: Emulator, column: Column, files: bytes, held: Any, expected: Any, blocks: int
) -> None:
    used, slots, target = held
    count = len(column.vectors)
    requests, numbers, total, tally = (FakeMemory(n) for n in (24 * count, 4 * count + 4, 16, 40))
    tally.clear()
    offsets = emulator.kernel("scan_select", "scan_offsets", ())
    launch(offsets, used, count, numbers, total, grid=1, block=1024)
    kernel = emulator.kernel("packed/load", "scan_packed_requests", ())
    launch(kernel, files, numbers, slots, count, target.address, requests, tally)
    assert tally.bytes.view(np.uint64)[:2].tolist() == [(expected > 0).sum(), blocks]
    made = requests.bytes.view([("source", "<u8"), ("target", "<u8"), ("bytes", "<u4"), ("nsid", "<u4")])
    chosen = np.flatnonzero(used.bytes[: 4 * count].view(np.uint32))
    begins = np.cumsum([0] + [len(v.payload) for v in column.vectors])
    assert (made["bytes"][: len(chosen)] == 16 * expected[chosen]).all()
    assert (made["source"][: len(chosen)] == column.payload.address + begins[chosen]).all()
