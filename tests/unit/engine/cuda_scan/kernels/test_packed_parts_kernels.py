"""Kernels that leave out parts of packed vectors, against the vectors' values and bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from bamquery import _native
from bamquery.storage.encodings.packed.parameters import DECIMAL, INTEGER, UNSCALED
from tests.packed.steps import PART_ROWS, PARTS, code_value, has_parts, misplaced_part
from tests.packed.vectors import Vector, packed
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeMemory
from tests.unit.engine.cuda_scan.kernels.test_packed_kernels import (
    C_TYPES,
    KINDS,
    Column,
    define,
    forms,
    launch,
    memory,
    order_keys,
    terms_of,
)

SCALE = (3, 2)
PLACE = np.dtype([("offset", "<u8"), ("map", "<u8"), ("nsid", "<u4"), ("pad", "<u4")])


def wide_forms(dtype: Any) -> list[Vector]:
    """Vectors of every form; and those of which a part has nulls only, and one has escapes."""
    found = [vector for rows in (1024, 1, 127, 129, 1000) for vector in forms(rows, dtype)]
    random = np.random.default_rng(2)
    kind = np.dtype(dtype)
    options: dict[str, Any] = {"dtype": kind, "divisor": SCALE[0], "origin": SCALE[1], "nulls": True}
    bits, form, base = 12, INTEGER, 0
    escapes = [1, 2, (1 << 8 * kind.itemsize) - 1]
    if kind.kind == "f":
        form, base = DECIMAL, -300
        options["exponent"] = 2
        special = np.array([1.005, np.inf, np.nan, -0.0, -7.5, 1e30], kind)
        escapes = sorted(special.view(f"u{kind.itemsize}").tolist())
    elif kind.itemsize == 1:
        bits, form, base = 8, UNSCALED, int(np.iinfo(kind).min)
    for rows in (1024, 900):
        codes = random.integers(0, (1 << bits) - len(escapes) - 1, rows)
        codes[:128] //= 3
        codes[2 * 128 : 3 * 128] = (1 << bits) - 1
        at = 5 * 128 + random.integers(0, 128, 9)
        codes[at] = (1 << bits) - 2 - random.integers(0, len(escapes), 9)
        found.append(packed(codes, bits, form, base, escapes=escapes, **options))
    return found


def native_parts(vectors: list[Vector], dtype: Any) -> tuple[Any, Any, Any]:
    """What the writer would say of them: bounds, and checksums as kernels take them."""
    payload = np.frombuffer(b"".join(v.payload for v in vectors), np.uint8)
    sizes = np.array([len(v.payload) for v in vectors], np.int64)
    rows = np.array([len(v.values) for v in vectors], np.int64)
    parameters = np.array([v.parameters for v in vectors])
    bounds, crcs, behind = _native.packed_parts(
        np.dtype(dtype).name, payload, np.cumsum(sizes) - sizes, parameters, rows, *SCALE
    )
    return bounds, crcs.reshape(-1, PARTS), behind


@pytest.mark.parametrize("dtype", KINDS)
def test_bounds_of_every_form(dtype: str) -> None:
    vectors = wide_forms(dtype)
    bounds, *_ = native_parts(vectors, dtype)
    for vector, found in zip(vectors, bounds, strict=True):
        assert misplaced_part(vector.parameters, found, vector.values, vector.valid, SCALE) is None


def keys_at_steps(vectors: list[Vector], dtype: str, random: Any) -> list[int]:
    """Keys of values on both sides of steps' edges, and of values that there are."""
    values: list[Any] = []
    for vector in vectors:
        values += vector.values[vector.valid][:20].tolist()
        if not has_parts(vector.parameters):
            continue
        shift = int(vector.parameters["bits"]) - 8
        for step in random.integers(0, 257, 6).tolist():
            for code in ((step << shift) - 1, step << shift):
                if 0 <= code < 1 << (shift + 8):
                    value = code_value(vector.parameters, code, dtype, SCALE)
                    values += [] if value is None else [value]
    return sorted(set(order_keys(np.array(values, dtype))))


@pytest.mark.parametrize("dtype", KINDS)
def test_parts_with_rows_that_pass_are_left(emulator: Emulator, dtype: str, scan_modules: None) -> None:
    from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, Term

    vectors = wide_forms(dtype)
    column, count = Column(vectors, *SCALE), len(vectors)
    bounds = memory(native_parts(vectors, dtype)[0])
    random = np.random.default_rng(5)
    top = (1 << max(8 * np.dtype(dtype).itemsize, 32)) - 1
    known = [*keys_at_steps(vectors, dtype, random), 0, top]
    keys = [np.array(order_keys(v.values), object) for v in vectors]
    kernel = emulator.kernel("packed/prune", "scan_packed_prune", define(dtype))
    pruned = 0
    for turn in range(25):
        wants_nulls = turn == 24
        terms = [] if wants_nulls else terms_of(known, random, top)
        predicate = FusedPredicate(
            C_TYPES[dtype], tuple(Term(intervals, negated) for intervals, negated in terms), wants_nulls
        )
        before = random.random(count) < 0.9
        wanted, masks = memory(before.astype(np.uint32)), memory(np.full(count, 0xFF, np.uint8))
        launch(kernel, column.packed, bounds, count, predicate.pack(), wanted, masks)
        kept = wanted.bytes[: 4 * count].view(np.uint32) != 0
        for number, vector in enumerate(vectors):
            if not before[number]:
                assert not kept[number]
                assert masks.bytes[number] == 0xFF
                continue
            passes = np.ones(len(vector.values), bool)
            for intervals, negated in terms:
                within = np.zeros(len(vector.values), bool)
                for low, high in intervals:
                    within |= (keys[number] >= low) & (keys[number] <= high)
                passes &= within != negated
            passes = ~vector.valid if wants_nulls else passes & vector.valid
            rows = np.zeros(1024, bool)
            rows[: len(passes)] = passes
            needed = rows.reshape(PARTS, -1).any(axis=1)
            left = np.unpackbits(masks.bytes[number : number + 1], bitorder="little").astype(bool)
            assert not (needed & ~left).any(), (vector.parameters, terms)
            assert kept[number] == left.any()
            pruned += int((~left).sum())
    assert pruned > 0


class Files:
    """A column whose payloads are in a mapped file, and room for them."""

    def __init__(self, emulator: Emulator, vectors: list[Vector], dtype: str, masks: Any) -> None:
        self.emulator, self.vectors, self.count = emulator, vectors, len(vectors)
        self.column = Column(vectors, *SCALE)
        place = np.zeros(1, PLACE)
        place["offset"], place["map"] = 4096, self.column.payload.address - 4096
        self.place, self.masks = memory(place), memory(np.asarray(masks, np.uint8))
        held = (self.column.parameters, self.column.places, self.place, self.column.rows)
        width = np.dtype(dtype).itemsize
        addresses = [one.address for one in held]
        self.packed = struct.pack("<5Q2IQ", *addresses, 0, width, 512, self.masks.address)
        self.slots = memory((self.starts // 16).astype(np.uint32))
        self.target = FakeMemory(int(self.starts[-1]) + len(vectors[-1].payload) + 16)
        self.tally = FakeMemory(40)

    @property
    def starts(self) -> Any:
        sizes = np.array([len(v.payload) for v in self.vectors], np.int64)
        return np.cumsum(sizes) - sizes

    def load(self) -> None:
        """Run the kernel; bytes that it does not write are 0xA5."""
        self.target.bytes[:] = 0xA5
        next_one = FakeMemory(16)
        for one in (next_one, self.tally):
            one.clear()
        kernel = self.emulator.kernel("packed/parts", "scan_packed_load_parts", ())
        launch(kernel, self.packed, self.slots, self.count, self.target, next_one, self.tally)

    def check(self, dtype: str, numbers: Any) -> int:
        """How many vectors the first wrong one is before the end; 0: all are right."""
        _, crcs, behind = native_parts(self.vectors, dtype)
        table = np.zeros((int(max(numbers)) + 1, PARTS + 1), np.uint32)
        table[numbers] = np.column_stack([crcs, behind])
        whole = memory(np.array([_native.crc32c(v.payload) for v in self.vectors], np.uint32))
        bad, parts, of = FakeMemory(16), memory(table), memory(np.asarray(numbers, np.uint32))
        bad.clear()
        kernel = self.emulator.kernel("packed/parts", "scan_packed_crc_parts", ())
        launch(kernel, self.packed, self.slots, self.count, self.target, whole, parts, of, bad)
        return int(bad.bytes[:4].view(np.uint32)[0])


def wanted_bytes(vector: Vector, mask: int) -> list[tuple[int, int]]:
    """Which bytes of a payload are to be read."""
    count = -(-len(vector.values) // PART_ROWS)
    parts = [part for part in range(count) if mask >> part & 1]
    if not has_parts(vector.parameters) or len(parts) == count:
        return [(0, len(vector.payload))] if vector.payload else []
    if not parts:
        return []
    size = 16 * int(vector.parameters["bits"])
    found = [(part * size, (part + 1) * size) for part in parts]
    return found + ([(count * size, len(vector.payload))] if len(vector.payload) > count * size else [])


@pytest.mark.parametrize("dtype", ["int64", "float64", "uint32", "int8"])
@pytest.mark.parametrize("seed", range(3))
def test_parts_are_moved_and_compared(emulator: Emulator, dtype: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = wide_forms(dtype)
    random.shuffle(vectors)
    masks = random.integers(1, 256, len(vectors))
    masks[random.random(len(vectors)) < 0.2] = 0xFF
    single = random.random(len(vectors)) < 0.4
    masks[single] = 1 << random.integers(0, 8, int(single.sum()))
    files = Files(emulator, vectors, dtype, masks)
    files.load()
    expected = np.full(len(files.target.bytes), 0xA5, np.uint8)
    blocks, commands = set(), 0
    for vector, mask, start in zip(vectors, masks.tolist(), files.starts.tolist(), strict=True):
        count = -(-len(vector.values) // PART_ROWS)
        there = (1 << count) - 1
        commands += count if not has_parts(vector.parameters) else (mask & there).bit_count()
        for begin, end in wanted_bytes(vector, mask):
            expected[start + begin : start + end] = np.frombuffer(vector.payload[begin:end], np.uint8)
            first = 4096 + start
            blocks |= set(range((first + begin) // 512, (first + end - 1) // 512 + 1))
    assert files.target.bytes.tobytes() == expected.tobytes()
    assert files.tally.bytes.view(np.uint64)[:2].tolist() == [commands, len(blocks)]
    numbers = 2 * np.arange(len(vectors)) + 1
    assert files.check(dtype, numbers) == 0
    chosen = random.permutation(len(vectors))[:12].tolist()
    for number in chosen:
        for begin, end in wanted_bytes(vectors[number], int(masks[number])):
            at = int(files.starts[number]) + int(random.integers(begin, end))
            files.target.bytes[at] ^= 0x10
            assert files.check(dtype, numbers) == len(vectors) - number
            files.target.bytes[at] ^= 0x10
    assert files.check(dtype, numbers) == 0


@pytest.mark.parametrize("dtype", ["int64", "float64", "int16"])
def test_rows_of_parts_that_are_not_there_do_not_pass(
    emulator: Emulator, dtype: str, scan_modules: None
) -> None:
    from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, Term

    random = np.random.default_rng(8)
    vectors = wide_forms(dtype)
    masks = random.integers(1, 256, len(vectors))
    files = Files(emulator, vectors, dtype, masks)
    files.load()
    count = len(vectors)
    column = bytearray(files.column.packed)
    column[8:24] = struct.pack("<2Q", files.slots.address, files.target.address)
    kernel = emulator.kernel("packed/filter", "scan_packed_filter", define(dtype))
    keys = [np.array(order_keys(v.values), object) for v in vectors]
    middle = sorted({int(k) for some in keys for k in some[:30]})
    for low, high in ((0, middle[len(middle) // 2]), (middle[len(middle) // 3], middle[-1]), (0, 2**64 - 1)):
        predicate = FusedPredicate(C_TYPES[dtype], (Term(((low, high),)),))
        mask, counts = FakeMemory(128 * count), FakeMemory(4 * count)
        launch(kernel, bytes(column), files.masks, count, predicate.pack(), mask, counts)
        found = np.unpackbits(mask.bytes, bitorder="little").reshape(count, 1024).astype(bool)
        for number, vector in enumerate(vectors):
            passes = (keys[number] >= low) & (keys[number] <= high) & vector.valid
            rows = np.arange(len(vector.values))
            there = (int(masks[number]) >> rows // PART_ROWS & 1).astype(bool)
            if not has_parts(vector.parameters):
                there[:] = True
            assert found[number, : len(rows)].tolist() == (passes & there).tolist(), vector.parameters
            assert not found[number, len(rows) :].any()
            assert counts.bytes.view(np.uint32)[number] == (passes & there).sum()
