"""Vectors that were read whole, compared with their checksums on the GPU."""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory, NullStates
from bamquery.engine.cuda.scan.reads.fetch_vectors import PickedVectors
from bamquery.engine.cuda.scan.reads.vector_check import VectorCheck, checksum_check
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.statistics.parts import PARTS

_POLYNOMIAL: Final = 0x82F63B78
"""CRC-32C's, reflected."""
CHECK_BLOCKS: Final = 6
"""Thread blocks of a multiprocessor, of eight that fit: the next chunk's load finds room at once."""
_PIECES: Final = 32
"""Of a vector, one for each lane of a warp."""
_PARTS: Final[Mapping[str, str]] = MappingProxyType({"values": "values", "validity": "validity bits"})


def check_vectors(  # noqa: PLR0917 - one buffer of one chunk
    chunk: ChunkMemory,
    column: str,
    buffer: str,
    bits: int,
    memory: rmm.DeviceBuffer,
    stream: Any,
    *,
    nulls: NullStates | None = None,
    slots: int | None = None,
    used: int | None = None,
) -> VectorCheck:
    """Start to compare.

    Args:
        chunk: whose vectors they are.
        column: by name.
        buffer: `values` or `validity`.
        bits: of a row.
        memory: the vectors.
        stream: which they are there for.
        nulls: of `validity`, where they are: only vectors that have nulls and values were read.
        slots: where `memory` has each vector, as words on the GPU; None: in their order.
        used: which vectors were read, as words on the GPU; None: all.
    """
    bad = chunk.board.take(4)
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel("scan_crc", "scan_crc"),
        *(memory.ptr, bits, chunk.vector_rows, chunk.rows.count, crc_shifts(VECTOR_ROWS * bits // 8)),
        *(
            chunk.checksums(column, buffer),
            slots,
            used,
            None if nulls is None else nulls.address,
            bad.address,
        ),
        grid=launcher.grid(chunk.rows.count, WARPS, CHECK_BLOCKS),
        stream=stream,
    )
    return checksum_check(column, bad, _PARTS[buffer])


def check_parts(  # noqa: PLR0917 - as check_vectors
    chunk: ChunkMemory, column: str, bits: int, memory: rmm.DeviceBuffer, parts: int, stream: Any
) -> VectorCheck:
    """Start to compare values of which only `parts` were read, see `ChunkMemory.parts`."""
    bad = chunk.board.take(4)
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel("scan_crc", "scan_crc_parts"),
        *(memory.ptr, bits, chunk.vector_rows, chunk.rows.count, crc_shifts(VECTOR_ROWS * bits // 8)),
        *(*chunk.part_checksums(column), parts, bad.address),
        grid=launcher.grid(chunk.rows.count, WARPS, CHECK_BLOCKS),
        stream=stream,
    )
    return checksum_check(column, bad, _PARTS["values"])


def check_picked(  # noqa: PLR0917 - as check_vectors
    chunk: ChunkMemory,
    column: str,
    buffer: str,
    bits: int,
    picked: PickedVectors,
    nulls: NullStates | None = None,
) -> VectorCheck:
    """Start to compare the vectors that were picked, on the session's stream."""
    slots, used = picked.slots.ptr, picked.used.ptr
    where = (chunk, column, buffer, bits, picked.memory, chunk.state.stream)
    return check_vectors(*where, nulls=nulls, slots=slots, used=used)


@functools.cache
def crc_shifts(size: int) -> bytes:
    """The CrcShifts of vectors of `size` bytes (engine/kernels/scan_crc.hpp)."""
    steps = [_power(8 * (size // _PIECES) << step) for step in range(5)]
    starts = [_multiply(_power(8 * length), 0xFFFFFFFF) for length in (size, size // PARTS)]
    return struct.pack("<7I", *steps, *starts)


def _power(exponent: int) -> int:
    """X to that power, as a remainder: bit 31 is the coefficient of x^0."""
    result, power = 1 << 31, 1 << 30
    while exponent:
        if exponent & 1:
            result = _multiply(result, power)
        power = _multiply(power, power)
        exponent >>= 1
    return result


def _multiply(left: int, right: int) -> int:
    """The product of two remainders."""
    product = 0
    for bit in range(32):
        if left >> (31 - bit) & 1:
            product ^= right
        right = right >> 1 ^ (_POLYNOMIAL if right & 1 else 0)
    return product
