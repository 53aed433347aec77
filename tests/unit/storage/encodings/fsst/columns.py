"""Columns of strings, packed in memory, and read in each way there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.fsst.parameters import FSST_VECTOR
from bamquery.storage.format.layout import VECTOR_ROWS
from docs.tools.packed_decoder import decode_strings
from tests.unit.storage.encodings.fsst.parameter_oracle import code_bytes, payload_bytes

Texts = Sequence[bytes | None]
LOAD = 16
WORDS = [b"carefully ", b"final ", b"deposits", b" sleep", b"quickly", b"ironic ", b"\xff\xff", b"e", b"\0"]


@dataclass
class PackedTexts:
    """As `_native` has a column."""

    symbols: bytes
    payload: NDArray[np.uint8]
    parameters: NDArray[Any]
    rows: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each vector."""
        numbers = np.arange(len(self.parameters), dtype=np.int64)
        return np.minimum(self.rows - numbers * VECTOR_ROWS, VECTOR_ROWS)

    @property
    def starts(self) -> NDArray[np.int64]:
        return self.parameters["offset"].astype(np.int64)

    def unpack(self, positions: NDArray[np.int64] | None = None) -> list[bytes | None]:
        """All of it, or some positions."""
        vectors = self.payload, self.starts, self.parameters, self.counts
        return texts_of(*_native.fsst_unpack(self.symbols, *vectors, positions))

    def take(self, rows: NDArray[np.int64]) -> list[bytes | None]:
        """Single rows, each by the bytes that it needs."""
        about = self.parameters, self.rows, len(self.payload)
        data = np.concatenate([self.payload, np.zeros(LOAD, np.uint8)])
        places = _native.fsst_places(*about, rows)
        ends = data[places[:, None] + np.arange(LOAD)].tobytes()
        starts, lengths, bitmap, nulls = _native.fsst_ranges(*about, rows, ends)
        spans = zip(starts, lengths, strict=True)
        stored = b"".join(self.payload[start : start + length].tobytes() for start, length in spans)
        return texts_of(*_native.fsst_decode(self.symbols, *about, rows, lengths, stored), bitmap, nulls)

    def oracle(self) -> list[bytes | None]:
        """By the decoder that docs show."""
        found: list[bytes | None] = []
        for parameters, rows in zip(self.parameters, self.counts.tolist(), strict=True):
            found += decode_strings(parameters, self.payload, rows, self.symbols)
        return found


def pack(texts: Texts, symbols: bytes | None = None) -> PackedTexts:
    """By symbols of its own, if none are given."""
    lengths = [0 if text is None else len(text) for text in texts]
    offsets = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int64)
    data = b"".join(text or b"" for text in texts)
    valid = np.array([text is not None for text in texts], bool)
    bitmap = None if valid.all() else np.packbits(valid, bitorder="little")
    if symbols is None:
        symbols = _native.fsst_train(offsets, len(texts), data, 0)
    payload, parameters, crcs = _native.fsst_pack(symbols, offsets, len(texts), data, 0, bitmap)
    packed = PackedTexts(symbols, payload, parameters.reshape(-1).view(FSST_VECTOR), len(texts))
    sizes = payload_bytes(packed.parameters, packed.counts)
    assert packed.starts.tolist() == (np.cumsum(sizes) - sizes).tolist()
    for start, size, crc in zip(packed.starts, sizes, crcs, strict=True):
        assert _native.crc32c(payload[start : start + size]) == crc
    return packed


def texts_of(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], bitmap: NDArray[np.uint8], nulls: int
) -> list[bytes | None]:
    """What was decoded, row by row."""
    count, contents = len(offsets) - 1, data.tobytes()
    valid = np.unpackbits(bitmap, count=count, bitorder="little").astype(bool)
    assert count - valid.sum() == nulls
    found: list[bytes | None] = []
    for row in range(count):
        own = contents[offsets[row] : offsets[row + 1]]
        assert valid[row] or not own
        found.append(own if valid[row] else None)
    return found


def sentences(rows: int, seed: int = 0) -> list[bytes | None]:
    """Rows of some words."""
    random = np.random.default_rng(seed)
    return [
        b"".join(WORDS[i] for i in random.integers(0, len(WORDS), random.integers(0, 8))) for _ in range(rows)
    ]


def codes_at(packed: PackedTexts, vector: int) -> int:
    """Where the strings of a vector begin in the payload."""
    return int(packed.starts[vector] + code_bytes(packed.parameters, packed.counts)[vector])
