"""What a kernel is given, as the bytes that it takes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from bamquery.driver.gpu.memory import GpuMemory
from bamquery.errors import KernelError

Argument: TypeAlias = "bool | int | float | bytes | np.generic | GpuMemory | None"
"""None is a null pointer."""


def pack(kernel: str, arguments: Sequence[Argument], sizes: Sequence[int]) -> list[bytes]:
    """The arguments of a kernel whose parameters have `sizes` bytes.

    Python's numbers take the size that the kernel asks for; what has a size of its own must have the right
    one.

    Raises:
        KernelError: there are more or fewer than the kernel takes, or one has another size.
    """
    if len(arguments) != len(sizes):
        raise KernelError(f"{kernel} takes {len(sizes)} arguments, not {len(arguments)}")
    packed = []
    for number, (argument, size) in enumerate(zip(arguments, sizes, strict=True), 1):
        data = _bytes_of(argument, size)
        if data is None or len(data) != size:
            given = f"{argument!r}" if data is None else f"one of {len(data)} bytes"
            raise KernelError(f"{kernel} takes {size} bytes as argument {number}, not {given}")
        packed.append(data)
    return packed


def _bytes_of(argument: Argument, size: int) -> bytes | None:
    match argument:
        case None:
            return bytes(8)
        case bytes():
            return argument
        case GpuMemory():
            return argument.address.to_bytes(8, "little")
        case np.generic():
            return argument.tobytes()
        case float():
            return {4: struct.pack("<f", argument), 8: struct.pack("<d", argument)}.get(size)
        case _:
            try:
                return int(argument).to_bytes(size, "little", signed=argument < 0)
            except OverflowError:
                return None
