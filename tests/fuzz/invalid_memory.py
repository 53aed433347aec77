"""Arrow arrays whose memory says what Arrow's format forbids, as faulty producers hand them over."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

Invalid: TypeAlias = "tuple[pa.Array[Any], Callable[[], None]]"
"""An array that is valid as yet, since Arrow looks at it when a table is made of it, and what spoils it."""


def _made(type_: Any, rows: int, *buffers: tuple[Any, Any] | None) -> Invalid:
    """Over numbers before and after they are spoiled; None: no buffer."""
    memory = [None if pair is None else np.array(pair[0]) for pair in buffers]
    array: pa.Array[Any] = pa.Array.from_buffers(
        type_, rows, [None if numbers is None else pa.py_buffer(numbers) for numbers in memory]
    )

    def spoil() -> None:
        for numbers, pair in zip(memory, buffers, strict=True):
            if numbers is not None and pair is not None:
                numbers[:] = pair[1]

    return array, spoil


def _same(numbers: Any) -> tuple[Any, Any]:
    return numbers, numbers


def _texts(type_: Any, offset: str, offsets: list[int], text: bytes = b"abcdefgh") -> Invalid:
    good = np.arange(len(offsets), dtype=offset)
    content = np.frombuffer(text, "u1")
    return _made(type_, len(offsets) - 1, None, (good, np.array(offsets, offset)), _same(content))


def _view(*words: int) -> Invalid:
    good = np.array([20, 0, 0, 0], "i4")
    content = np.frombuffer(b"abcdefgh" * 4, "u1")
    return _made(pa.string_view(), 1, None, (good, np.array(words, "i4")), _same(content))


def _codes(*codes: int) -> Invalid:
    memory = np.zeros(len(codes), "i4")
    indices: Any = pa.Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(memory)])
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]))

    def spoil() -> None:
        memory[:] = codes

    return array, spoil


def _numbers(type_: Any, dtype: str, *numbers: int) -> Invalid:
    data = np.array(numbers, dtype)
    rows = data.nbytes * 8 // type_.bit_width
    return _made(type_, rows, None, _same(data))


INVALID: Final[MappingProxyType[str, Callable[[], Invalid]]] = MappingProxyType(
    {
        "string offset far": lambda: _texts(pa.string(), "i4", [0, 1, 2, 3, 1 << 30]),
        "string offset in the middle": lambda: _texts(pa.string(), "i4", [0, 1 << 30, 2, 3, 4]),
        "string offsets descend": lambda: _texts(pa.string(), "i4", [0, 4, 2, 3, 4]),
        "string offset negative": lambda: _texts(pa.string(), "i4", [-(1 << 30), 1, 2, 3, 4]),
        "large string offset far": lambda: _texts(pa.large_string(), "i8", [0, 1, 2, 3, 1 << 60]),
        "large string offset negative": lambda: _texts(pa.large_string(), "i8", [0, 1, -(1 << 60), 3, 4]),
        "binary offset far": lambda: _texts(pa.binary(), "i4", [0, 1, 1 << 30, 3, 4]),
        "not UTF-8": lambda: _texts(pa.string(), "i4", [0, 1, 2, 3, 4], b"\xff\xfe\xff\xfe"),
        "view offset far": lambda: _view(20, 0, 0, 1 << 30),
        "view length far": lambda: _view(1 << 30, 0, 0, 0),
        "view of no buffer": lambda: _view(20, 0, 77, 0),
        "view length negative": lambda: _view(-20, 0, 0, 0),
        "dictionary index far": lambda: _codes(0, 1, 1 << 30),
        "dictionary index just behind": lambda: _codes(0, 1, 2),
        "dictionary index negative": lambda: _codes(0, -1, 1),
        "decimal of 19 digits in DECIMAL(4,2)": lambda: _numbers(pa.decimal128(4, 2), "i8", 1 << 62, 0),
        "decimal of 38 digits in DECIMAL(4,2)": lambda: _numbers(pa.decimal128(4, 2), "i8", 0, 1 << 61),
        "decimal256 of 76 digits": lambda: _numbers(pa.decimal256(4, 2), "i8", 0, 0, 0, 1 << 61),
        "date64 far": lambda: _numbers(pa.date64(), "i8", 1 << 62),
        "date64 within a day": lambda: _numbers(pa.date64(), "i8", 12345),
        "time64 far": lambda: _numbers(pa.time64("us"), "i8", 1 << 62),
        "time64 behind 24:00": lambda: _numbers(pa.time64("us"), "i8", 5, 86_400_000_001),
        "time64 negative": lambda: _numbers(pa.time64("ns"), "i8", 5, -1),
        "time32 far": lambda: _numbers(pa.time32("s"), "i4", (1 << 31) - 1),
    }
)
"""By what is wrong."""
