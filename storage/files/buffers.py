"""Bytes of arrays and Arrow buffers, without copies."""

from __future__ import annotations

from typing import Any


def view(buffer: Any) -> memoryview:
    """The bytes of a contiguous numpy array or an Arrow buffer; None is an empty one."""
    return memoryview(b"" if buffer is None else buffer).cast("B")
