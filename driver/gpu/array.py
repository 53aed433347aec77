"""A page cache in a GPU's memory, and arrays that kernels read and write through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Self

import numpy.typing as npt

from bamquery import _native
from bamquery.closeable import Closeable
from bamquery.driver.array import TIMEOUT, element_type
from bamquery.driver.compile.toolchain import cuda_module
from bamquery.driver.controller import Controller
from bamquery.driver.gpu.memory import GpuMemory
from bamquery.driver.gpu.queues import GpuQueues

_BLOCK_THREADS: Final = 256


class GpuPageCache(Closeable):
    """A fixed number of pages in a GPU's memory, shared by all arrays and kernels that use it."""

    def __init__(
        self, queues: GpuQueues, controller: Controller, *, pages: int, page_bytes: int = 4096
    ) -> None:
        """Take GPU memory for `pages` pages of `page_bytes`: a power of two, not above the queues' slots.

        Raises:
            ValueError: there can be no such cache.
            GpuError: there is not enough memory.
        """
        memory = queues.memory
        if page_bytes > memory.slot_bytes:
            raise ValueError(f"pages of {page_bytes} bytes do not fit slots of {memory.slot_bytes}")
        if memory.shared_pairs == 0:
            raise ValueError("the queue memory has no shared pairs")
        sizes = {"page_count": pages, "page_bytes": page_bytes, "block_bytes": memory.block_bytes}
        self.queues: Final = queues
        self.controller: Final = controller
        self.pages: Final = pages
        self.page_bytes: Final = page_bytes
        with ExitStack() as undo:
            size = _native.page_cache_bytes(**sizes)
            # What is allocated lies on a multiple of 256 only.
            self._memory = undo.enter_context(queues.gpu.allocate(size + 4096))
            address = -(-self._memory.address // 4096) * 4096
            self.view, counters, self._counter_bytes = _native.page_cache_view(address, **sizes)
            self._counters = address - self._memory.address + counters
            self.view_memory: Final[GpuMemory] = undo.enter_context(queues.gpu.allocate(len(self.view)))
            self.view_memory.write(self.view)
            self._resources = undo.pop_all()

    def clear(self) -> None:
        """Forget all pages, dirty ones too, and all statistics."""
        self._memory.clear()

    def flush(self, timeout: float = TIMEOUT) -> None:
        """Write back all dirty pages. NvmeError: a page that could not be; it stays dirty."""
        queues = self.queues
        queues.run(
            queues.gpu.load("flush_cache"),
            self.view_memory,
            queues.view_memory,
            int(timeout * 1e9),
            queues.errors,
            grid=queues.gpu.multiprocessors,
            block=_BLOCK_THREADS,
            timeout_s=2 * timeout + 10,
        )

    def statistics(self) -> dict[str, int]:
        """Hits, misses, coalesced misses, evictions, write-backs and failures since the beginning."""
        return _native.page_cache_counters(self._memory.read(self._counter_bytes, self._counters))

    def close(self) -> None:
        """Give the memory back; what is dirty is lost."""
        self._resources.close()


class GpuArray(Closeable):
    """`count` numbers from byte `offset` of a namespace on, for kernels.

    As an argument of `@numba.cuda.jit` kernels it takes `array[i]`, `array[i] = value` and `len(array)`, in
    any launch shape: leave `with array.kernels():` around the launches. Kernels written in C++ take
    `view_memory`, a SharedArrayView. A read that fails gives 0.
    """

    def __init__(
        self,
        cache: GpuPageCache,
        nsid: int,
        dtype: npt.DTypeLike,
        count: int,
        *,
        namespace_bytes: int,
        offset: int = 0,
        writable: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        """Make an array over a namespace of `namespace_bytes`.

        Raises:
            ValueError: the elements do not lie within the namespace, or are no numbers of 8 to 64 bits.
        """
        self.dtype: Final = element_type(dtype)
        self.cache: Final = cache
        self._count = count
        view = _native.shared_array_view(
            cache=cache.view,
            pool=cache.queues.view,
            errors=cache.queues.errors.address,
            nsid=nsid,
            offset=offset,
            namespace_blocks=-(-namespace_bytes // cache.queues.memory.block_bytes),
            count=count,
            element_bytes=self.dtype.itemsize,
            writable=writable,
            timeout=timeout,
        )
        self.view_memory: Final = cache.queues.gpu.allocate(len(view))
        self.view_memory.write(view)

    def __len__(self) -> int:
        return self._count

    @property
    def value(self) -> int:
        """Address of the SharedArrayView: what a numba kernel is passed."""
        return self.view_memory.address

    @property
    def _numba_type_(self) -> Any:
        """How numba asks what type a value has."""
        from bamquery.driver.gpu.numba_array import gpu_array_type  # noqa: PLC0415 (numba is optional)

        return gpu_array_type(self.dtype)

    @contextmanager
    def kernels(self) -> Iterator[Self]:
        """Around launches by numba: keeps the controller awake, waits for them, raises what went wrong.

        Raises:
            NvmeError: the first access that failed, and how many did.
        """
        numba_cuda = cuda_module("numba.cuda")
        with self.cache.controller.activity():
            yield self
            numba_cuda.synchronize()
        self.cache.queues.check()

    def close(self) -> None:
        """Give the view's memory back."""
        self.view_memory.close()
