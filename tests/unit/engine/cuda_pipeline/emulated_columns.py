"""Arrow columns as kernels of programs take them, in this process's memory."""

from __future__ import annotations

import struct
import threading
from typing import Any

import numpy as np
import pyarrow as pa

from bamquery.driver.gpu.device import GpuKernel
from bamquery.engine.cuda.launcher import Launcher
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel, pad_constants
from bamquery.storage.format.storable_types import value_bits
from tests.unit.engine.cuda_scan.emulator import EmulatedKernel, Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeGpu


def start(emulator: Emulator, kernel: EmulatedKernel, *arguments: Any, grid: int, block: int) -> None:
    """Launch a kernel as devices do."""
    launcher = Launcher(FakeGpu(emulator), threading.RLock())  # type: ignore[arg-type]
    made = GpuKernel(kernel.name, kernel, kernel.sizes)
    launcher.start(made, *arguments, grid=grid, block=block, stream=None)


def constants_of(made: ProgramKernel) -> bytes:
    """A `Constants` of a generated text."""
    words = pad_constants(made.constants)
    return struct.pack(f"<{len(words)}q", *words)


class GivenColumn:
    """An `Input` of registers.hpp; booleans have a byte each.

    `late`: its rows are found by places. `narrow`: decimals of up to 18 digits have 64 bits.
    """

    def __init__(self, column: pa.Array[Any], *, late: bool = False, narrow: bool = False) -> None:
        narrow = narrow and pa.types.is_decimal128(column.type) and column.type.precision <= 18
        if narrow:
            column = column.cast(pa.decimal64(column.type.precision, column.type.scale))
        places = np.zeros(0, np.int32)
        if late:
            # Backwards, behind a row that is none of the frame's.
            places = np.arange(len(column), 0, -1, dtype=np.int32)
            column = pa.concat_arrays([column[:1], column.take(pa.array(places - 1))])
        validity, values = column.buffers()
        assert values is not None
        self._held: tuple[Any, ...] = (validity, values, places)
        if pa.types.is_boolean(column.type):
            as_bytes = np.asarray(column.fill_null(False)).astype(np.uint8)
            self._held += (as_bytes,)
            place = as_bytes.ctypes.data
        else:
            place = values.address + column.offset * value_bits(column.type) // 8
        self.nullable = column.null_count > 0
        valid = 0 if validity is None or not self.nullable else validity.address
        where = places.ctypes.data if late else 0
        self.packed = struct.pack("<QQiiQ", place, valid, column.offset, narrow, where)


class MadeColumn:
    """An `Output` for values of a type."""

    def __init__(self, kind: pa.DataType, rows: int) -> None:
        self._kind = kind
        self._rows = rows
        width = 1 if pa.types.is_boolean(kind) else value_bits(kind) // 8
        self._values = np.full(rows * width + 16, 0xAB, np.uint8)
        self._bits = np.full(-(-rows // 64) * 8 + 8, 0xAB, np.uint8)
        self.packed = struct.pack("<QQ", self._values.ctypes.data, self._bits.ctypes.data)

    def column(self, nulls: int | None) -> pa.Array[Any]:
        """As Arrow has it; `nulls`: how many there are said to be, None where bits are not looked at."""
        if pa.types.is_boolean(self._kind):
            assert set(self._values[: self._rows].tolist()) <= {0, 1}
            values = pa.py_buffer(np.packbits(self._values[: self._rows], bitorder="little").tobytes())
        else:
            values = pa.py_buffer(self._values.tobytes())
        bits = None if nulls is None else pa.py_buffer(self._bits.tobytes())
        found = pa.Array.from_buffers(self._kind, self._rows, [bits, values])
        assert nulls is None or found.null_count == nulls
        return found
