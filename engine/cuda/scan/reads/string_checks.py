"""What is checked of strings: that their offsets ascend, and checksums of what was read whole."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.reads.vector_check import VectorCheck, checksum_check
from bamquery.engine.cuda.scan.resources.counter_board import Slot

_NOT_ASCENDING: Final = "its offsets do not ascend within its column"
_PARTS: Final[Mapping[str, str]] = MappingProxyType({"offsets": "offsets", "bytes": "values"})
"""Where a fragment has their checksums."""


def offsets_check(column: str, bad: Slot) -> VectorCheck:
    """Of offsets that kernels look at."""
    return VectorCheck(column, bad, _NOT_ASCENDING)


def check_strings(
    chunk: ChunkMemory,
    column: str,
    buffer: str,
    strings: bytes,
    used: int | None,
    *,
    ranges: int | None = None,
    places: int | None = None,
    stream: Any = None,
) -> VectorCheck:
    """Start to compare `offsets` or `bytes` with their checksums.

    Args:
        chunk: whose vectors they are.
        column: by name.
        buffer: which of both.
        strings: the ScanStrings.
        used: which vectors were read, as words on the GPU; None: all.
        ranges: of `bytes`, which those of each vector are.
        places: of `bytes`, what is added to one's number for its address.
        stream: which all of it is there for; None: the session's.
    """
    bad = chunk.board.take(4)
    checksums = chunk.checksums(column, _PARTS[buffer])
    chunk.launch(
        "strings/crc",
        "scan_string_crc",
        *(strings, ranges, places, chunk.vector_rows, used, checksums, bad.address),
        items=chunk.rows.count,
        of_a_block=WARPS,
        stream=stream,
    )
    return checksum_check(column, bad, buffer)
