"""A GPU, a session and a device for the scan, over emulated kernels: what they are asked is done at once."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from bamquery.driver.compile.compile_pool import Compilation
from bamquery.driver.compile.compiler import CompiledKernel, KernelText
from bamquery.driver.gpu.arguments import pack
from bamquery.driver.gpu.device import GpuKernel
from bamquery.driver.gpu.events import EventPool
from bamquery.engine.cpu.casts.cast import to_dictionary
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cuda.capabilities import CUDA
from tests.unit.engine.cuda_scan.emulator import KERNELS, Emulator

NOT_READY = 600


class FakeMemory:
    """Memory that looks like a GPU's: on a multiple of 256, with anything in it."""

    def __init__(self, size: int, fill: int = 0xAB) -> None:
        self._bytes = np.full(size + 256, fill, np.uint8)
        start = -self._bytes.ctypes.data % 256
        self.bytes = self._bytes[start : start + size]
        self.address = self.ptr = int(self.bytes.ctypes.data)
        self.size = size

    def write(self, data: Any, offset: int = 0) -> None:
        source = np.frombuffer(data, np.uint8)
        self.bytes[offset : offset + len(source)] = source

    def read(self) -> bytes:
        return self.bytes.tobytes()

    def clear(self) -> None:
        self.bytes[:] = 0

    def close(self) -> None:
        pass

    def __enter__(self) -> FakeMemory:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeCuda:
    """`bamquery.driver.gpu.driver_api.Cuda`, as far as scans call it."""

    def __init__(self) -> None:
        self.busy_streams: set[object] = set()
        """Those that never do what they were given."""
        self._events: dict[object, object] = {}
        self.api = SimpleNamespace(
            CUresult=SimpleNamespace(CUDA_ERROR_NOT_READY=NOT_READY),
            CUevent_flags=SimpleNamespace(
                CU_EVENT_DISABLE_TIMING=SimpleNamespace(value=2), CU_EVENT_DEFAULT=SimpleNamespace(value=0)
            ),
            cuEventQuery=lambda event: (NOT_READY if self._events[event] in self.busy_streams else 0,),
        )

    def __call__(self, action: str, function: str, *arguments: Any) -> Any:
        match function:
            case "cuMemcpyHtoDAsync" | "cuMemcpyDtoHAsync":
                ctypes.memmove(*arguments[:3])
            case "cuMemsetD8Async":
                ctypes.memset(*arguments[:3])
            case "cuEventCreate":
                return object()
            case "cuEventElapsedTime":
                return 1.0
            case "cuLaunchKernel":
                kernel, grid, _, _, block, *_rest = arguments
                kernel.run_at(arguments[9], grid, block)
            case "cuEventRecord":
                self._events[arguments[0]] = arguments[1]
            case "cuStreamWaitEvent":
                pass
            case _:
                raise AssertionError(function)
        return None

    def explain(self, status: Any) -> str:
        return str(status)


class FakeCode:
    """What a kernel's code is, to whoever keeps it."""


class FakeLaunch:
    """A kernel that has ended."""

    done = True

    def wait(self, timeout_s: float) -> float:
        return 1e-3


class FakeGpu:
    """`bamquery.driver.gpu.device.Gpu`, as far as scans call it."""

    def __init__(self, emulator: Emulator) -> None:
        self.cuda = FakeCuda()
        self.events = EventPool(self.cuda)  # type: ignore[arg-type]
        self.name = "emulated GPU"
        self.multiprocessors = 1
        self.busy = False
        self.pins = 0
        self.refuses_pins = False
        self.retired: list[Callable[[], None]] = []
        """What waits until the GPU is not `busy` any more."""
        self._emulator = emulator

    def enter(self) -> None:
        pass

    def new_stream(self, *, urgent: bool = False) -> object:
        return object()

    def pin(self, owner: object, address: int, size: int, *, read_only: bool = False) -> Any:
        from bamquery.errors import GpuError

        if read_only and self.refuses_pins:
            raise GpuError("cannot pin")
        self.pins += 1
        return FakePin(self, owner, address)

    def allocate(self, size: int) -> FakeMemory:
        return FakeMemory(size, 0)

    def compilation(self, source: Path, *, defines: tuple[str, ...] = ()) -> None:
        """Compiled where it is loaded."""

    def compile_text(self, text: KernelText) -> Compilation:
        """Whose code is its text; a test may put a compiler that takes its time in this one's place."""
        return Compilation.ended(CompiledKernel(text.text.encode(), "", cached=True))

    def load(self, source: Path, name: str, *, defines: tuple[str, ...] = ()) -> GpuKernel:
        file = source.relative_to(KERNELS).with_suffix("")
        kernel = self._emulator.kernel(str(file), name, defines)
        return GpuKernel(name, kernel, kernel.sizes)

    def load_compiled(self, compiled: CompiledKernel, name: str) -> GpuKernel:
        (program,) = self._emulator.programs([compiled.code.decode()])
        return GpuKernel(name, program, program.sizes, FakeCode())

    def allow_shared(self, kernel: GpuKernel, shared_bytes: int) -> None:
        kernel.shared_bytes_allowed = shared_bytes

    def launch(
        self,
        kernel: GpuKernel,
        *arguments: Any,
        grid: int,
        block: int,
        on_end: Callable[[], None] | None = None,
        **_: Any,
    ) -> FakeLaunch:
        packed = pack(kernel.name, [getattr(a, "address", a) for a in arguments], kernel.sizes)
        kernel.function.run(packed, grid, block)
        if on_end is not None:
            on_end()
        return FakeLaunch()

    def settle(self, timeout_s: float = 60.0) -> None:
        pass

    def retire(self, release: Callable[[], None]) -> None:
        if self.busy:
            self.retired.append(release)
        else:
            release()

    def abandon(self, thing: object) -> None:
        assert self.cuda.busy_streams, "nothing is left running here"


class FakePin(FakeMemory):
    """Memory of this process is where it is."""

    def __init__(self, gpu: FakeGpu, owner: object, address: int) -> None:
        self.owner = owner
        self.address = address
        self._gpu = gpu

    def close(self, on_release: Callable[[], None] | None = None) -> None:
        def release() -> None:
            self._gpu.pins -= 1
            if on_release is not None:
                on_release()

        self._gpu.retire(release)


class FakeSession:
    """`bamquery.engine.cuda.session.CudaSession`."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu
        self.name = "cuda:0"
        self.ordinal = 10_000 + id(self) % 10_000
        self.limit: int | None = None
        self.lock = threading.RLock()
        self.driver_stream = object()
        self.allocated = 0
        self.deadline_s = 60.0

    @functools.cached_property
    def launcher(self) -> Any:
        from bamquery.engine.cuda.launcher import Launcher

        gpu: Any = self.gpu
        return Launcher(gpu, self.lock)

    def enter(self) -> None:
        pass

    def allocate(self, nbytes: int, what: str, driver_stream: Any = None) -> FakeMemory:
        self.allocated += nbytes
        return FakeMemory(nbytes)

    allocate_entered = allocate

    def cache_limit(self, asked: int | None) -> int:
        return 1 << 32

    def synchronize(self) -> None:
        pass

    def wait(self, waiting: Callable[[float], None]) -> None:
        waiting(self.deadline_s)

    def follow(self, waiting: Any, first: Any) -> None:
        pass


class FakeColumn:
    """A column of a frame."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def size(self) -> int:
        return len(self.array)

    def offset(self) -> int:
        return int(self.array.offset)

    def data(self) -> Any:
        return SimpleNamespace(ptr=self.array.buffers()[1].address)


def column_from_buffers(
    kind: pa.DataType,
    rows: int,
    data: Any,
    *,
    validity: Any = None,
    null_count: int = 0,
    offsets: Any = None,
    offsets_width: int = 8,
) -> FakeColumn:
    """What the scan hands over, copied into Arrow."""
    bits = None
    if null_count:
        assert validity.size % 64 == 0
        bits = pa.py_buffer(validity.bytes[: -(-rows // 8)].tobytes())
    if offsets is not None:
        places = offsets.bytes[: offsets_width * (rows + 1)].view(f"int{8 * offsets_width}").astype(np.int64)
        buffers = [bits, pa.py_buffer(places.tobytes()), pa.py_buffer(data.bytes[: places[-1]].tobytes())]
        array = pa.Array.from_buffers(kind, rows, buffers)
        array.validate(full=True)
        assert places[0] == 0
        assert array.null_count == null_count
        return FakeColumn(array)
    width = 8 if pa.types.is_boolean(kind) else kind.bit_width
    values = data.bytes[: rows * width // 8].copy()
    if pa.types.is_boolean(kind):
        assert set(np.unique(values)) <= {0, 1}
        values = np.packbits(values, bitorder="little")
    array = pa.Array.from_buffers(kind, rows, [bits, pa.py_buffer(values.tobytes())])
    assert array.null_count == null_count
    return FakeColumn(array)


def upload_values(session: FakeSession, values: Any) -> FakeColumn:
    """See `bamquery.engine.cuda.scan.columns.libcudf_rows`, as for the next ones."""
    return FakeColumn(values)


def concatenate(session: FakeSession, columns: Sequence[FakeColumn]) -> FakeColumn:
    return FakeColumn(pa.concat_arrays([column.array for column in columns]))


def look_up(session: FakeSession, values: FakeColumn, places: Any, rows: int) -> FakeColumn:
    found = places.bytes[: 4 * rows].view(np.int32)
    known = pa.array(found, mask=found >= len(values.array))
    return FakeColumn(values.array.take(known))


def late_rows(session: FakeSession, dictionary: Any, places: Any, rows: int, *, nulls: bool) -> FakeColumn:
    found = look_up(session, dictionary.values, places, rows)
    assert nulls or not found.array.null_count
    return found


def narrow_rows(session: FakeSession, column: FakeColumn) -> FakeColumn:
    kind = column.array.type
    assert pa.types.is_decimal64(kind)
    return FakeColumn(column.array.cast(pa.decimal128(kind.precision, kind.scale)))


def take_rows(session: FakeSession, column: FakeColumn, places: int, rows: int) -> FakeColumn:
    found = np.frombuffer((ctypes.c_char * (4 * rows)).from_address(places), np.int32)
    return FakeColumn(column.array.take(pa.array(found)))


def null_column(session: FakeSession, kind: pa.DataType, rows: int) -> FakeColumn:
    return FakeColumn(pa.nulls(rows, kind))


class FakeDevice:
    """`bamquery.engine.cuda.device.CudaDevice`: frames of fake columns, computed by the CPU device."""

    name = "cuda:0"
    capabilities = CUDA
    task_size = 16

    def __init__(self, session: FakeSession, frame: Any) -> None:
        self.session = session
        self.takes_together = False
        self._cpu = CpuDevice()
        self._frame = frame
        """CudaFrame."""

    def scan(self, work: Any) -> Generator[Any, None, None]:
        from bamquery.engine.cuda.scan.scan import scan_on_gpu

        selects = lambda condition, has_dictionary: self.takes_together  # noqa: E731
        return scan_on_gpu(self.session, self, work, selects)  # type: ignore[arg-type]

    def from_arrow(self, batch: pa.RecordBatch) -> Any:
        return self._frame(tuple(FakeColumn(column) for column in batch.columns), batch.num_rows)

    def from_columns(self, columns: Sequence[pa.Array[Any]]) -> Any:
        return self.from_arrow(self._cpu.from_columns(columns))

    def batch(self, frame: Any) -> pa.RecordBatch:
        names = [str(i) for i in range(len(frame.columns))]
        return pa.RecordBatch.from_arrays([column.array for column in frame.columns], names)

    def to_arrow(self, frame: Any, fields: Sequence[Any]) -> pa.RecordBatch:
        if not fields:
            from bamquery.engine.operators.scan.chunk_selection import rows_without_columns

            return rows_without_columns(frame.rows)
        columns = [
            to_dictionary(column.array, field.type)
            if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.array.type)
            else column.array
            for column, field in zip(frame.columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, [field.name for field in fields])

    def row_count(self, frame: Any) -> int:
        return int(frame.rows)

    def single_row(self) -> Any:
        return self._frame((), 1)

    def string_bytes(self, frame: Any) -> int:
        return self._cpu.string_bytes(self.batch(frame))

    def matching_positions(self, predicate: Any, frame: Any) -> Any:
        from bamquery.engine.cuda.frames import CudaPositions

        found = self._cpu.matching_positions(predicate, self.batch(frame))
        places: Any = FakeColumn(pa.array(found, pa.int32()))
        return CudaPositions(places)

    def read_positions(self, positions: Any) -> Any:
        return positions.column.array.to_numpy().astype(np.int64)

    def take(self, frame: Any, positions: Any) -> Any:
        return self.from_arrow(self._cpu.take(self.batch(frame), positions))

    def concatenate(self, frames: Sequence[Any]) -> Any:
        return self.from_arrow(self._cpu.concatenate([self.batch(frame) for frame in frames]))
