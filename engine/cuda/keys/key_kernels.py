"""How kernels of engine/kernels/keys are started, and where their memory comes from."""

from __future__ import annotations

from typing import Final

import pylibcudf as plc
import rmm

from bamquery.driver.gpu.arguments import Argument
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.launcher import THREADS

_WHAT: Final = "a join"
_LEAST: Final = 16
"""Bytes: what has an address."""


def new_memory(kernels: Kernels, size: int) -> rmm.DeviceBuffer:
    """So many bytes with anything in them; the thread has entered the session.

    Raises:
        MemoryLimitError: there is not so much left.
    """
    return kernels.session.allocate_entered(max(size, _LEAST), _WHAT)


def fill_memory(kernels: Kernels, memory: rmm.DeviceBuffer, byte: int) -> None:
    """Write one byte to all of it."""
    session = kernels.session
    what = (memory.ptr, byte, memory.size, session.driver_stream)
    session.gpu.cuda("fill memory", "cuMemsetD8Async", *what)


def start_kernel(
    kernels: Kernels, file: str, name: str, *arguments: Argument, items: int, of_a_block: int = THREADS
) -> None:
    """Start a kernel on so many items, of which a block takes some at a time."""
    launcher = kernels.session.launcher
    launcher.start(
        launcher.kernel(file, name),
        *arguments,
        grid=launcher.grid(items, of_a_block),
        stream=kernels.session.driver_stream,
    )


def address_of(column: plc.Column) -> int:
    """Where the values of a column of int32 begin; 0 of none."""
    data = column.data()
    return 0 if data is None else int(data.ptr) + 4 * column.offset()
