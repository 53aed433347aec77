"""LIKE without underscores for many strings: a kernel that reads each byte once."""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.frames import column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.key_columns import pack_columns

_FILE: Final = "strings/match_parts"
_PATTERN: Final = struct.Struct("<11I128s")
"""`PatternParts` of match_parts.cu."""
_MOST_PARTS, _MOST_BYTES = 8, 128
MANY_ROWS: Final = 1 << 16
"""From which on it is worth a kernel: libcudf's threads look through each string where it lies."""


def match_parts(kernels: Kernels, column: plc.Column, pattern: str) -> plc.Column | None:
    """Whether strings are as a LIKE pattern; null for null.

    None: there are few strings, the pattern has other signs than percent signs or too much text, or the
    kernel is still being compiled.

    Raises:
        KernelError: it does not compile.
    """
    rows = column.size()
    packed = pack_pattern(pattern) if rows >= MANY_ROWS else None
    if packed is None:
        return None
    session = kernels.session
    launcher = session.launcher
    kernel = launcher.ready_kernel(_FILE, "match_parts")
    if kernel is None:
        return None
    found = session.allocate(rows, "LIKE")
    launcher.start(
        kernel,
        *(pack_columns([column]), packed, rows, found.ptr),
        grid=launcher.grid(rows),
        stream=session.driver_stream,
    )
    nulls = column.null_count()
    mask = plc.null_mask.copy_bitmask(column, kernels.stream, kernels.memory) if nulls else None
    return column_from_buffers(pa.bool_(), rows, found, validity=mask, null_count=nulls)


def pack_pattern(pattern: str) -> bytes | None:
    """What the kernel knows of a pattern; None where it has no room for it, or does not know its signs."""
    parts = [part.encode() for part in pattern.split("%") if part]
    if "_" in pattern or "%" not in pattern or not 0 < len(parts) <= _MOST_PARTS:
        return None
    text = b"".join(parts)
    if len(text) > _MOST_BYTES:
        return None
    ends = [sum(map(len, parts[: n + 1])) for n in range(len(parts))]
    ends += [len(text)] * (_MOST_PARTS - len(parts))
    at_start, at_end = not pattern.startswith("%"), not pattern.endswith("%")
    return _PATTERN.pack(len(parts), at_start, at_end, *ends, text)
