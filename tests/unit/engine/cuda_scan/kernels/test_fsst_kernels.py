"""Kernels that decode compressed strings, against the decoder of CPUs: any strings, rows, ends and codes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.fsst.parameters import FSST_VECTOR, SYMBOLS_BY_CODE
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeMemory
from tests.unit.engine.cuda_scan.kernels.test_string_kernels import launch, memory, strings, view
from tests.unit.storage.encodings.fsst.parameter_oracle import code_bytes, payload_bytes

_VECTOR = 1024
_KINDS = ("words", "noise", "short", "empty", "long", "escapes", "equal")

Values = list[bytes | None]


def make_values(random: np.random.Generator, kind: str, rows: int, nulls: float) -> Values:
    """So many strings of a kind, of which a share are null."""
    words = [b"http://", b"www.", b"example", b".com/", b"ab", b"c", b"index", b".html"]
    found: Values = []
    for row in range(rows):
        pieces = random.integers(0, len(words), int(random.integers(0, 5)))
        match kind:
            case "words":
                value = b"".join(words[piece] for piece in pieces)
            case "noise":
                value = random.bytes(int(random.integers(0, 20)))
            case "short":
                value = words[4][: int(random.integers(0, 3))]
            case "empty":
                value = b""
            case "long":
                value = b"".join(words[piece] for piece in pieces) * (400 if row % 97 == 5 else 1)
            case "escapes":
                value = bytes([255] * int(random.integers(0, 9))) + words[0][: int(random.integers(0, 8))]
            case _:
                value = b"0123456789abcdef"
        found.append(None if random.random() < nulls else value)
    return found


@dataclass
class Fragment:
    """A column of compressed strings as files have it."""

    values: Values
    symbols: bytes = b""
    payload: NDArray[np.uint8] = field(init=False)
    parameters: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        rows = len(self.values)
        data = b"".join(value or b"" for value in self.values)
        offsets = np.cumsum([0, *(len(value or b"") for value in self.values)]).astype(np.int64)
        valid = np.packbits([value is not None for value in self.values], bitorder="little")
        held = np.frombuffer(data or b"\0", np.uint8)
        self.symbols = self.symbols or _native.fsst_train(offsets, rows, held, 0)
        bitmap = valid if None in self.values else None
        payload, parameters, _ = _native.fsst_pack(self.symbols, offsets, rows, held, 0, bitmap)
        self.payload, self.parameters = payload.copy(), parameters.reshape(-1).view(FSST_VECTOR).copy()

    @property
    def rows(self) -> NDArray[np.int64]:
        """Of each vector."""
        count = -(-len(self.values) // _VECTOR)
        return np.minimum(len(self.values) - np.arange(count) * _VECTOR, _VECTOR)

    def unpack(self) -> Values:
        """As a CPU decodes all of it; ValueError where that cannot be."""
        starts = self.parameters["offset"].astype(np.int64)
        found = _native.fsst_unpack(self.symbols, self.payload, starts, self.parameters, self.rows, None)
        return cut(found[0], found[1], np.unpackbits(found[2], bitorder="little").astype(bool))


def cut(offsets: Any, data: Any, valid: Any) -> Values:
    held = data.tobytes()
    return [
        held[begin:end] if is_valid else None
        for begin, end, is_valid in zip(offsets[:-1], offsets[1:], valid, strict=False)
    ]


@dataclass
class Chunk:
    """Fragments in an emulated GPU's memory."""

    fragments: list[Fragment]
    emulator: Emulator
    bad: NDArray[np.uint32] = field(init=False)
    """Ends, codes, sizes: as kernels count bad vectors."""

    def __post_init__(self) -> None:
        self.counts = [len(fragment.rows) for fragment in self.fragments]
        self.rows = np.concatenate([fragment.rows for fragment in self.fragments])
        self.held = [memory(fragment.payload, 32) for fragment in self.fragments]
        pieces = np.repeat(np.arange(len(self.counts)), self.counts)
        numbers = np.concatenate([np.arange(count) for count in self.counts])
        self.tables = {
            "parameters": memory(np.concatenate([f.parameters for f in self.fragments])),
            "symbols": memory(np.concatenate([self._symbols(f) for f in self.fragments])),
            "vector_rows": memory(self.rows.astype(np.uint16)),
            "shifts": memory(np.array([self.held[piece].address for piece in pieces], np.uint64)),
            "vectors": memory(np.stack([pieces, numbers], axis=1).astype(np.uint32)),
            "sizes": memory(np.array([f.payload.size for f in self.fragments], np.uint64)),
        }

    @staticmethod
    def _symbols(fragment: Fragment) -> NDArray[Any]:
        found = np.zeros(1, SYMBOLS_BY_CODE)
        found["bytes"], found["lengths"] = _native.fsst_symbols(fragment.symbols)
        return found

    def every_row(self) -> NDArray[np.int64]:
        return np.concatenate([np.arange(rows) + _VECTOR * v for v, rows in enumerate(self.rows)])

    def decode(self, chosen: NDArray[np.int64], *, whole: bool = False) -> Values:
        """Rows at ascending positions, through both passes; `whole`: vectors' sizes are compared, too."""
        count = len(chosen)
        tiles = -(-count // _VECTOR)
        positions = memory(chosen.astype(np.uint32))
        own = {name: held.address for name, held in self.tables.items()}
        coded = strings(
            positions=positions.address,
            vectors=own["vectors"],
            sizes=own["sizes"],
            rows=count,
            vector_count=len(self.rows),
        ) + struct.pack("<6Q", own["parameters"], own["symbols"], own["vector_rows"], own["shifts"], 0, 0)
        sums, of_tiles, total, bad = (FakeMemory(8 * n) for n in (count + 1, tiles, 1, 2))
        valid = FakeMemory(count)
        bad.clear()
        words = [bad.address + 4 * number for number in range(3)]
        launch(
            *(self.emulator, "fsst/decode", "scan_fsst_lengths", coded, sums, of_tiles, valid, *words[:2]),
            grid=2,
        )
        offsets = "strings/offsets"
        launch(self.emulator, offsets, "scan_string_tiles", of_tiles, tiles, total, grid=1, block=1024)
        launch(self.emulator, offsets, "scan_string_sums", sums, count, of_tiles, total)
        if whole:
            launch(self.emulator, "fsst/decode", "scan_fsst_sizes", coded, sums, words[2])
        self.bad = view(bad, np.uint32, 3).copy()
        ends = view(sums, np.uint64, count + 1).astype(np.int64)
        assert view(total, np.uint64, 1)[0] == ends[-1]
        out = FakeMemory(int(ends[-1]) + 64)
        launch(self.emulator, "fsst/decode", "scan_fsst_bytes", coded, sums, out, grid=2)
        assert (out.bytes[int(ends[-1]) :] == 0xAB).all(), "nothing is written behind the strings"
        return cut(ends, out.bytes, view(valid, np.uint8, count) != 0)


@st.composite
def fragments(draw: st.DrawFn, most: int = 3) -> list[Fragment]:
    """Up to so many fragments of up to some vectors, each of a kind of strings."""
    found = []
    for _ in range(draw(st.integers(1, most))):
        kind, rows = draw(st.sampled_from(_KINDS)), draw(st.sampled_from([1, 2, 127, 128, 129, 1023, 1025]))
        random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
        found.append(Fragment(make_values(random, kind, rows, draw(st.sampled_from([0.0, 0.3, 1.0])))))
    return found


def choose(random: np.random.Generator, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Some of the rows: a few, most, a stretch, one, or all."""
    match random.integers(0, 5):
        case 0:
            found = rows[random.random(len(rows)) < 0.02]
        case 1:
            found = rows[random.random(len(rows)) < 0.8]
        case 2:
            begin, end = sorted(random.integers(0, len(rows), 2).tolist())
            found = rows[begin:end]
        case 3:
            found = rows[[int(random.integers(0, len(rows)))]]
        case _:
            found = rows
    return found if len(found) else rows[-1:]


@given(made=fragments(), seed=st.integers(0, 1 << 30))
@settings(max_examples=20)
def test_any_rows_of_any_strings(emulator: Emulator, made: list[Fragment], seed: int) -> None:
    chunk = Chunk(made, emulator)
    plain = dict(zip(chunk.every_row(), [value for f in made for value in f.unpack()], strict=True))
    chosen = choose(np.random.default_rng(seed), chunk.every_row())
    assert chunk.decode(chosen) == [plain[row] for row in chosen]
    assert not chunk.bad.any()


def damage(random: np.random.Generator, fragment: Fragment) -> int:
    """Change some bytes of one vector's ends, codes or both; returns which."""
    vector = int(random.integers(0, len(fragment.rows)))
    begin = int(fragment.parameters["offset"][vector])
    rows = fragment.rows
    ends = int(code_bytes(fragment.parameters, rows)[vector])
    size = int(payload_bytes(fragment.parameters, rows)[vector])
    for _ in range(int(random.integers(1, 4))):
        low, high = [(0, ends), (ends, size), (0, size)][int(random.integers(0, 3))]
        if high > low:
            at = begin + int(random.integers(low, high))
            fragment.payload[at] = random.choice([0, 255, int(random.integers(0, 256))])
    return vector


@given(made=fragments(most=1), seed=st.integers(0, 1 << 30))
@settings(max_examples=40)
def test_damaged_vectors_are_those_of_cpus(emulator: Emulator, made: list[Fragment], seed: int) -> None:
    """What a CPU refuses is counted as bad, the first such vector of all; what it takes is decoded alike."""
    (fragment,) = made
    vector = damage(np.random.default_rng(seed), fragment)
    chunk = Chunk(made, emulator)
    found = chunk.decode(chunk.every_row(), whole=True)
    try:
        expected = fragment.unpack()
    except ValueError:
        assert chunk.bad.max() == len(chunk.rows) - vector
    else:
        assert not chunk.bad.any()
        assert found == expected


@pytest.mark.parametrize(
    ("codes", "fault"),
    [
        (b"\xff", True),  # an escape behind which nothing comes
        (b"\xff\xff", False),
        (b"\xff\xff\xff", True),
        (b"\xff" * 64, False),  # as many as two warps' lanes
        (b"\xff" * 65, True),
        (b"\x00" * 31 + b"\xff\x41", False),  # from one step of a warp to the next
        (b"\x00" * 31 + b"\xff", True),
        (b"\x01\x00", False),
        (b"\x02", True),  # no symbol
        (b"\xff\x02\x02", True),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 31])
def test_escapes(emulator: Emulator, codes: bytes, fault: bool, before: int) -> None:
    """Strings of given codes, with strings before and behind that begin with escapes, too."""
    stored = bytes([2, 8, 1]) + b"12345678" + b"x"
    rows: list[bytes] = [*([b"\xff\xff"] * before), codes, b"\xff\x41"]
    fragment = Fragment([b"12345678x12345678"] * len(rows), stored)
    ends = np.cumsum([len(row) for row in rows])
    size = int(ends[-1])
    bits = size.bit_length()
    packed = sum(int(end) << bits * number for number, end in enumerate(ends)).to_bytes(16 * bits, "little")
    payload = packed + b"".join(rows)
    fragment.payload = np.frombuffer(payload + bytes(-len(payload) % 16), np.uint8).copy()
    fragment.parameters["bits"], fragment.parameters["part_ends"], fragment.parameters["form"] = bits, size, 1
    fragment.parameters["plain_bytes"] = 0 if fault else sum(map(len, decode_slowly(rows)))
    chunk = Chunk([fragment], emulator)
    found = chunk.decode(chunk.every_row())
    assert bool(chunk.bad[1]) is fault
    if fault:
        with pytest.raises(ValueError, match="its codes are no strings"):
            fragment.unpack()
    else:
        assert found == fragment.unpack() == decode_slowly(rows)


@pytest.mark.parametrize(
    ("codes", "row"),
    [
        ([2 << 1, 1 << 1, 9 << 1], 1),  # before the row before
        ([2 << 1, 10 << 1, 9 << 1], 1),  # behind the part
        ([2 << 1, 4 << 1 | 1, 9 << 1], 1),  # a null with bytes
        ([1 << 1 | 1, 4 << 1, 9 << 1], 0),
        ([2 << 1, 4 << 1, 8 << 1], 2),  # not with its part
        ([2 << 1, 4 << 1, 9 << 1 | 1], 2),
        ([127 << 1, 127 << 1, 127 << 1], 0),
    ],
)
def test_ends_that_cannot_be(emulator: Emulator, codes: list[int], row: int) -> None:
    """A row of them is no string, by itself and among others, of which the CPU refuses all."""
    fragment = Fragment([b"abc", None, b"abcdef"])
    fragment.parameters["bits"], fragment.parameters["part_ends"], fragment.parameters["form"] = 8, 9, 0
    fragment.parameters["plain_bytes"] = 9
    fragment.payload = np.frombuffer(bytes(codes) + bytes(125) + b"abcdefghi" + bytes(7), np.uint8).copy()
    chunk = Chunk([fragment], emulator)
    (alone,) = chunk.decode(np.array([row]))
    assert not alone
    assert chunk.bad.tolist() == [1, 0, 0]
    chunk.decode(chunk.every_row())
    assert chunk.bad[0] == 1
    with pytest.raises(ValueError, match="ends do not ascend within their parts"):
        fragment.unpack()


def decode_slowly(rows: list[bytes]) -> list[bytes]:
    """By the two symbols of `test_escapes`."""
    found = []
    for row in rows:
        text, codes = b"", iter(row)
        for code in codes:
            text += bytes([next(codes)]) if code == 255 else (b"12345678", b"x")[code]
        found.append(text)
    return found
