"""One GPU: its memory, pinned memory of this process, kernels and their launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from bamquery.closeable import Closeable
from bamquery.driver.compile.compile_pool import POOL, Compilation
from bamquery.driver.compile.compiler import (
    CompiledKernel,
    CompileOptions,
    KernelText,
    compile_kernel,
    stored_kernel,
)
from bamquery.driver.compile.kernel_cache import KernelCache
from bamquery.driver.compile.toolchain import cuda_module
from bamquery.driver.gpu import wait as gpu_wait
from bamquery.driver.gpu.arguments import Argument, pack
from bamquery.driver.gpu.driver_api import Cuda, open_driver
from bamquery.driver.gpu.events import EventPool
from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.memory import GpuMemory, PinnedMemory
from bamquery.driver.gpu.wait import STUCK
from bamquery.errors import GpuError

_NEEDED_CAPABILITY: Final = (8, 0)
_PLAIN_SHARED_BYTES: Final = 48 << 10
"""Above, a kernel has to be allowed to have so much."""

_abandoned: list[object] = []
"""Memory that a kernel may still use although nobody waits for it any more: never given back."""


class GpuKernel:
    """A kernel of a GPU, ready to launch.

    Attributes:
        name: as errors and profilers call it.
        function: the driver's handle.
        sizes: bytes of its parameters.
        code: what is unloaded once nobody has it any more: it must outlive what was launched.
    """

    def __init__(self, name: str, function: Any, sizes: Sequence[int], code: object = None) -> None:
        """Take what Gpu.load() found."""
        self.name = name
        self.function = function
        self.code = code
        self.sizes = tuple(sizes)
        self.shared_bytes_allowed = _PLAIN_SHARED_BYTES


class Gpu(Closeable):
    """A GPU with a stream of its own, on which launches follow one another.

    Copies wait for all launches before them. Kernels are loaded by one thread at a time; the rest is for any
    thread. Close it, or leave its `with`, when nothing of it is needed any more.
    """

    def __init__(
        self,
        ordinal: int = 0,
        cache: KernelCache | None = None,
        *,
        defines: tuple[str, ...] = (),
        line_info: bool = False,
    ) -> None:
        """Open GPU number `ordinal` of those that CUDA shows.

        Args:
            ordinal: from 0 on.
            cache: where compiled kernels are kept; that of the user if None.
            defines: macros for all kernels.
            line_info: note source lines in all kernels, for compute-sanitizer and profilers.

        Raises:
            GpuError: there is none that kernels run on; says what is missing and how to get it.
        """
        self.cuda: Final[Cuda] = open_driver(ordinal)
        self.events: Final = EventPool(self.cuda)
        core = cuda_module("cuda.core")
        device = core.Device(ordinal)
        capability = tuple(int(part) for part in device.compute_capability)
        self.name: Final[str] = device.name
        if capability < _NEEDED_CAPABILITY:
            raise GpuError(
                f"cuda:{ordinal} ({self.name}) has compute capability {capability[0]}.{capability[1]}: "
                "kernels need 8.0 (Ampere) or newer; use the CPU"
            )
        device.set_current()
        self.architecture: Final = f"sm_{capability[0]}{capability[1]}"
        self.ordinal: Final = ordinal
        self.multiprocessors: Final = int(device.properties.multiprocessor_count)
        self._core = core
        self._cache = cache
        self._defines = defines
        self._line_info = line_info
        self._code: dict[tuple[str, tuple[str, ...]], Any] = {}
        """Of files, which are few; what was made of a text is its kernel's own."""
        self._compiling: dict[tuple[str, tuple[str, ...]], Compilation] = {}
        """Of files that are not loaded yet."""
        self._streams: list[Any] = []
        self._running: set[Launch] = set()
        self._retired: list[tuple[set[Launch], Callable[[], None]]] = []
        """What is given back once the launches beside it have ended."""
        self._lock = threading.Lock()
        self._context = self.cuda("find the GPU's context", "cuCtxGetCurrent")
        self._stream = self.new_stream()
        self.copy_stream: Final = self.new_stream()
        self._closed = False

    @property
    def pci_address(self) -> str:
        """With the domain, as the kernel writes it: 0000:41:00.0."""
        return str(self._core.Device(self.ordinal).pci_bus_id).lower()

    def new_stream(self, *, urgent: bool = False) -> Any:
        """A stream whose launches run beside those of others; closed with the GPU.

        `urgent`: its thread blocks come before those of other streams, where both wait for room.
        """
        self.enter()
        nonblocking = self.cuda.api.CUstream_flags.CU_STREAM_NON_BLOCKING.value
        _, highest = self.cuda("ask for priorities", "cuCtxGetStreamPriorityRange")
        priority = highest if urgent else 0
        stream = self.cuda("make a stream", "cuStreamCreateWithPriority", nonblocking, priority)
        self._streams.append(stream)
        return stream

    def enter(self) -> None:
        """Make this thread's CUDA calls go to this GPU."""
        self.cuda("enter the GPU's context", "cuCtxSetCurrent", self._context)

    def allocate(self, size: int) -> GpuMemory:
        """Zeros in the GPU's memory, on a multiple of 256."""
        return GpuMemory(self, size)

    def pin(
        self, owner: object, address: int, size: int, *, read_only: bool = False, registers: bool = False
    ) -> PinnedMemory:
        """Let the GPU reach memory of this process, which `owner` keeps; whole pages.

        The map of a file on a disk can only be pinned `read_only`: its pages are then read from the page
        cache, without a processor's help; one of tmpfs can be written to, too. `registers`: they are a
        device's, each page of which was accessed before.
        """
        return PinnedMemory(self, owner, address, size, read_only=read_only, registers=registers)

    def compilation(self, source: str | Path, *, defines: tuple[str, ...] = ()) -> Compilation | None:
        """What `load` will wait for, begun now if nobody has yet; None: it is loaded. Any thread may ask.

        Raises:
            KernelError: the source cannot be read.
            GpuError: the compiler or the headers it needs are not installed.
        """
        key = (str(source), defines)
        with self._lock:
            if key in self._code:
                return None
            found = self._compiling.get(key)
        if found is None or found.has_failed:  # of a file that was wrong, or is another by now
            found = self._compiling[key] = self._begin_compiling(source, defines)
        return found

    def compile_text(self, text: KernelText) -> Compilation:
        """What `load_compiled` takes once it has ended: begun now if nobody has yet.

        Raises:
            GpuError: the compiler or the headers it needs are not installed.
        """
        return self._begin_compiling(text, ())

    def _begin_compiling(self, source: str | Path | KernelText, defines: tuple[str, ...]) -> Compilation:
        options = CompileOptions(
            self.architecture, defines=self._defines + defines, line_info=self._line_info
        )
        stored = stored_kernel(source, options, self._cache)
        if stored is not None:
            return Compilation.ended(stored)
        work = partial(compile_kernel, source, options, self._cache)
        return POOL.start((source, options, id(self._cache)), _stem(source), work)

    def load(
        self,
        source: str | Path,
        kernel: str | None = None,
        *,
        defines: tuple[str, ...] = (),
    ) -> GpuKernel:
        """A kernel of a file in driver/kernels or of any other, compiled if nobody has yet. Ctrl-C works.

        Args:
            source: name without suffix, or a path.
            kernel: the `extern "C"` function; if None, that of the source's name.
            defines: macros, beside those of all kernels.

        Raises:
            KernelError: it does not compile.
            GpuError: it has no such kernel, or cannot be loaded.
        """
        stem = _stem(source)
        key = (str(source), defines)
        compilation = self.compilation(source, defines=defines)
        if compilation is not None:
            compiled = compilation.wait()
            self.enter()
            code = self._core.ObjectCode.from_cubin(compiled.code, name=stem)
            with self._lock:
                self._code[key] = code
                self._compiling.pop(key, None)
        self.enter()
        return self._find_kernel(self._code[key], stem, kernel or stem)

    def load_compiled(self, compiled: CompiledKernel, name: str) -> GpuKernel:
        """The kernel of that name of a text. It is unloaded with the last reference to its `code`.

        CUDA does not wait for launches then: keep it until they have ended.

        Raises:
            GpuError: it has no such kernel, or cannot be loaded.
        """
        self.enter()
        code = self._core.ObjectCode.from_cubin(compiled.code, name=name)
        found = self._find_kernel(code, name, name)
        found.code = code
        return found

    def _find_kernel(self, code: Any, stem: str, name: str) -> GpuKernel:
        try:
            found = code.get_kernel(name)
            sizes = [int(parameter.size) for parameter in found.arguments_info]
        except Exception as error:  # cuda-core's own class for it is private
            raise GpuError(f"{stem}: kernel {name} cannot be loaded: {error}") from error
        handle = self.cuda.api.CUkernel(int(found.handle))
        function = self.cuda(f"load kernel {name}", "cuKernelGetFunction", handle)
        return GpuKernel(name, function, sizes)

    def launch(
        self,
        kernel: GpuKernel,
        *arguments: Argument,
        grid: int,
        block: int,
        shared_bytes: int = 0,
        stream: Any = None,
        on_end: Callable[[], None] | None = None,
    ) -> Launch:
        """Start a kernel, after what was started before on its stream; returns at once.

        Args:
            kernel: from load().
            arguments: numbers, `bytes` of structures passed by value, GpuMemory for pointers.
            grid: thread blocks.
            block: threads of each.
            shared_bytes: dynamic shared memory of each block.
            stream: from new_stream(); the GPU's own if None.
            on_end: called once when the kernel is seen to have ended, well or not.

        Raises:
            KernelError: the arguments are not those that the kernel takes.
            GpuError: it cannot be started so.
        """
        self.enter()
        packed = pack(kernel.name, arguments, kernel.sizes)
        buffers = [ctypes.create_string_buffer(data, len(data)) for data in packed]
        addresses = (ctypes.c_void_p * (len(buffers) + 1))(*[ctypes.addressof(b) for b in buffers])
        self.allow_shared(kernel, shared_bytes)
        launch = Launch(self, kernel.name, self._stream if stream is None else stream, on_end)
        shape = f"{grid} blocks of {block} threads and {shared_bytes} bytes each"
        sizes = (grid, 1, 1, block, 1, 1, shared_bytes)
        try:
            self.cuda(
                f"launch {kernel.name} with {shape}",
                "cuLaunchKernel",
                *(kernel.function, *sizes, launch.stream, ctypes.addressof(addresses), 0),
            )
        except GpuError:
            launch.abandon()
            raise
        launch.record_end()
        with self._lock:
            self._running.add(launch)
        return launch

    def settle(self, timeout_s: float = 60.0) -> None:
        """Wait until all launches have ended."""
        for launch in self._launches():
            launch.wait(timeout_s)

    def wait_for_stream(
        self,
        stream: Any,
        what: str,
        *,
        check: Callable[[], None] | None = None,
        deadline_s: float | None = None,
    ) -> None:
        """Wait until a stream has done all it was given; `check` raises where nobody waits any longer.

        Raises:
            GpuError: something on it failed, or it was not done within `deadline_s`
                (`STREAM_DEADLINE_S`): what it may still use must be kept.
        """
        api = self.cuda.api
        deadline = gpu_wait.STREAM_DEADLINE_S if deadline_s is None else deadline_s

        def done() -> bool:
            status, *_ = api.cuStreamQuery(stream)
            if status == api.CUresult.CUDA_ERROR_NOT_READY:
                return False
            if int(status):
                why = self.cuda.explain(status)
                raise GpuError(f"{what} failed: {why}; the GPU takes no more work from this process")
            return True

        self.enter()
        if not gpu_wait.wait_until(done, deadline, check=check):
            raise GpuError(f"{what} did not end within {deadline:g} s: {STUCK}")

    def forget_launch(self, launch: Launch) -> None:
        """Forget a launch, and give back what waited for it."""
        ready: list[Callable[[], None]] = []
        with self._lock:
            self._running.discard(launch)
            waiting = self._retired
            self._retired = []
            for launches, release in waiting:
                launches.discard(launch)
                if launches:
                    self._retired.append((launches, release))
                else:
                    ready.append(release)
        for release in ready:
            release()

    @property
    def busy(self) -> bool:
        """Some launch has not ended."""
        for launch in self._launches():
            with suppress(GpuError):  # raised again where it is waited for
                _ = launch.done
        return bool(self._running)

    def retire(self, release: Callable[[], None]) -> None:
        """Call `release` once all launches of now have ended, at once where none runs.

        CUDA waits for kernels before it frees or unpins: behind one that does not end, for ever.
        """
        if self.busy:
            with self._lock:
                if self._running:
                    self._retired.append((set(self._running), release))
                    return
        self.enter()
        release()

    def _launches(self) -> list[Launch]:
        with self._lock:
            return list(self._running)

    def abandon(self, thing: object) -> None:
        """Keep what a kernel that does not end may still use until the process ends."""
        _abandoned.append(thing)

    def close(self) -> None:
        """Give back streams and code; what launches that have not ended may use stays."""
        if self._closed:
            return
        self._closed = True
        if self.busy:
            self.abandon(self)
            return
        self.enter()
        for stream in self._streams:
            self.cuda.quietly("cuStreamDestroy", stream)
        self._streams.clear()
        self.events.close()
        self._code.clear()

    def allow_shared(self, kernel: GpuKernel, shared_bytes: int) -> None:
        """Let blocks of the kernel have so much dynamic shared memory.

        Raises:
            GpuError: it is more than this GPU has.
        """
        if shared_bytes <= kernel.shared_bytes_allowed:
            return
        attribute = self.cuda.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        what = f"give a block of {kernel.name} {shared_bytes} bytes of shared memory"
        self.cuda(what, "cuFuncSetAttribute", kernel.function, attribute, shared_bytes)
        kernel.shared_bytes_allowed = shared_bytes


def _stem(source: str | Path | KernelText) -> str:
    return source.stem if isinstance(source, Path) else source if isinstance(source, str) else source.name
