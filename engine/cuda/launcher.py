"""Kernels of engine/kernels, compiled once, and of programs: started on any stream."""

from __future__ import annotations

import ctypes
import struct
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import bamquery.engine
from bamquery.driver.gpu.arguments import Argument, pack
from bamquery.driver.gpu.device import Gpu, GpuKernel
from bamquery.statement_context.cancellation import check_cancelled

KERNELS: Final = Path(bamquery.engine.__file__).parent / "kernels"
"""Kernels of the engine, one file each."""
THREADS: Final = 256
"""Of a block of all kernels but the prefix sum's."""
WARPS: Final = 8
"""Of such a block: kernels with a warp for each vector."""
SCAN_THREADS: Final = 1024
"""Of the one block that makes prefix sums."""
_ALIGNMENT: Final = 16
"""More than any parameter asks for."""
_FORMATS: Final[Mapping[int, str]] = MappingProxyType({1: "B", 2: "H", 4: "I", 8: "Q"})


class _Layout:
    """One buffer for a kernel's parameters: their addresses, as cuLaunchKernel wants them, then they."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._structures = [(at, size) for at, size in enumerate(sizes) if size not in _FORMATS]
        self._addresses = struct.Struct(f"<{len(sizes)}Q")
        self._offsets = []
        values, at = "<", self._addresses.size
        for size in sizes:
            values += f"{-at % _ALIGNMENT}x"
            at += -at % _ALIGNMENT
            self._offsets.append(at)
            values += _FORMATS.get(size, f"{size}s")
            at += size
        self._values = struct.Struct(values)
        self._bytes = at

    def new_buffer(self) -> ctypes.Array[ctypes.c_char]:
        """One that knows where its parameters are."""
        buffer = ctypes.create_string_buffer(self._bytes)
        base = ctypes.addressof(buffer)
        self._addresses.pack_into(buffer, 0, *[base + offset for offset in self._offsets])
        return buffer

    def fill(self, buffer: ctypes.Array[ctypes.c_char], arguments: Sequence[Argument]) -> None:
        """Pack integers, `bytes` and None, a null pointer. struct.error: the kernel takes something else."""
        values = [0 if argument is None else argument for argument in arguments]
        self._values.pack_into(buffer, self._addresses.size, *values)
        for at, size in self._structures:
            structure = arguments[at]
            if not isinstance(structure, bytes) or len(structure) != size:  # struct cuts and fills
                raise struct.error("a structure of another size")


class _Buffers(threading.local):
    """Parameters of each thread, by kernel: CUDA copies them before a launch returns."""

    def __init__(self) -> None:
        self.of: weakref.WeakKeyDictionary[GpuKernel, ctypes.Array[ctypes.c_char]] = (
            weakref.WeakKeyDictionary()
        )


class Launcher:
    """Starts kernels that wait for nothing but memory; thread-safe."""

    def __init__(self, gpu: Gpu, lock: threading.RLock) -> None:
        """`lock` is held while kernels are loaded."""
        self._gpu = gpu
        self._lock = lock
        self._kernels: dict[tuple[str, str, tuple[str, ...]], GpuKernel] = {}
        self._layouts: weakref.WeakKeyDictionary[GpuKernel, _Layout] = weakref.WeakKeyDictionary()
        self._buffers = _Buffers()

    def kernel(self, file: str, name: str, *defines: str) -> GpuKernel:
        """A kernel of a file, compiled if nobody has yet. Cancellation and Ctrl-C end the wait.

        Raises:
            KernelError: it does not compile.
            GpuError: it cannot be loaded.
            CancelledError: the thread's query was cancelled.
        """
        key = (file, name, defines)
        found = self._kernels.get(key)
        if found is None:
            path = KERNELS / f"{file}.cu"
            compilation = self._gpu.compilation(path, defines=defines)
            if compilation is not None:
                compilation.wait(check_cancelled)  # others may load meanwhile
            with self._lock:
                found = self._gpu.load(path, name, defines=defines)
                self._kernels[key] = found
        return found

    def ready_kernel(self, file: str, name: str) -> GpuKernel | None:
        """As `kernel`, but None while it is compiled, which begins now where nobody has begun.

        Raises:
            KernelError: it does not compile.
            GpuError: it cannot be loaded, or the compiler is not installed.
        """
        if (file, name, ()) not in self._kernels:
            compilation = self._gpu.compilation(KERNELS / f"{file}.cu")
            if compilation is not None and not compilation.has_ended:
                return None
        return self.kernel(file, name)

    def start_compiling(self, file: str, *defines: str) -> None:
        """Begin with a file that `kernel` will be asked for.

        Raises:
            GpuError: the compiler or the headers it needs are not installed.
        """
        self._gpu.compilation(KERNELS / f"{file}.cu", defines=defines)

    def start(
        self,
        kernel: GpuKernel,
        *arguments: Argument,
        grid: int,
        stream: Any,
        block: int = THREADS,
        shared_bytes: int = 0,
    ) -> None:
        """Start it behind what the stream was given before; what it uses must live as long as it runs.

        The thread has entered the GPU's context.

        Raises:
            GpuError: it cannot be started.
        """
        if shared_bytes > kernel.shared_bytes_allowed:
            self._gpu.allow_shared(kernel, shared_bytes)
        layout = self._layouts.get(kernel)
        if layout is None:
            layout = self._layouts[kernel] = _Layout(kernel.sizes)
        buffer = self._buffers.of.get(kernel)
        if buffer is None:
            buffer = self._buffers.of[kernel] = layout.new_buffer()
        try:
            layout.fill(buffer, arguments)
        except struct.error:
            pack(kernel.name, arguments, kernel.sizes)  # says which argument it is
            raise
        self._gpu.cuda(
            f"launch {kernel.name}",
            "cuLaunchKernel",
            *(kernel.function, grid, 1, 1, block, 1, 1, shared_bytes, stream, ctypes.addressof(buffer), 0),
        )

    def prefix_sums(self, counts: int, count: int, sums: int, total: int, stream: Any) -> None:
        """Sums of the words before each of `count` words, and of all behind the last, which `total` gets.

        All are addresses; `sums` has one word more than `counts`.
        """
        kernel = self.kernel("scan_select", "scan_offsets")
        self.start(kernel, counts, count, sums, total, grid=1, block=SCAN_THREADS, stream=stream)

    def grid(self, items: int, of_a_block: int = THREADS, most: int = 16) -> int:
        """Blocks for so many items, at most so many for each multiprocessor; each then takes several."""
        return max(1, min(-(-items // of_a_block), most * self._gpu.multiprocessors))
