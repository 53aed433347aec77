"""A page cache in a GPU's memory, and arrays that kernels read and write through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Self

import numpy.typing as npt

from bamquery import _native
from bamquery.closeable import Closeable
from bamquery.driver.array import TIMEOUT, Striped, element_type
from bamquery.driver.compile.toolchain import cuda_module
from bamquery.driver.controller import Controller
from bamquery.driver.gpu.memory import GpuMemory
from bamquery.driver.gpu.queues import GpuQueues

_BLOCK_THREADS: Final = 256
_MOST_DRIVES: Final = 256
"""Of a cache: PageId::kMaxDrives."""


class GpuPageCache(Closeable):
    """A fixed number of pages in a GPU's memory, shared by all arrays and kernels that use it.

    Attributes:
        queues: of each drive; the first one's error record is the cache's.
        pools: the QueuePoolView of each drive, one after the other, in the GPU's memory.
    """

    def __init__(
        self,
        queues: GpuQueues | Sequence[GpuQueues],
        controllers: Controller | Sequence[Controller],
        *,
        pages: int,
        page_bytes: int = 4096,
    ) -> None:
        """Take GPU memory for `pages` pages of `page_bytes`: a power of two, not above the queues' slots.

        Args:
            queues: one, or several of one GPU, whose places here are the numbers of their drives; up to 256.
                Their blocks may differ in size.
            controllers: who serves each of them.
            pages: at least one.
            page_bytes: at least a block.

        Raises:
            ValueError: there can be no such cache.
            GpuError: there is not enough memory.
        """
        self.queues: Final = (queues,) if isinstance(queues, GpuQueues) else tuple(queues)
        self.controllers: Final = (
            (controllers,) if isinstance(controllers, Controller) else tuple(controllers)
        )
        self._check(page_bytes)
        self.pages: Final = pages
        self.page_bytes: Final = page_bytes
        self.block_bytes: Final = min(one.memory.block_bytes for one in self.queues)
        sizes = {"page_count": pages, "page_bytes": page_bytes, "block_bytes": self.block_bytes}
        gpu = self.queues[0].gpu
        with ExitStack() as undo:
            size = _native.page_cache_bytes(**sizes)
            # What is allocated lies on a multiple of 256 only.
            self._memory = undo.enter_context(gpu.allocate(size + 4096))
            address = -(-self._memory.address // 4096) * 4096
            self.view, counters, self._counter_bytes = _native.page_cache_view(address, **sizes)
            self._counters = address - self._memory.address + counters
            self.view_memory: Final[GpuMemory] = undo.enter_context(gpu.allocate(len(self.view)))
            self.view_memory.write(self.view)
            views = b"".join(one.view for one in self.queues)
            self.pools: Final[GpuMemory] = undo.enter_context(gpu.allocate(len(views)))
            self.pools.write(views)
            self._resources = undo.pop_all()

    def _check(self, page_bytes: int) -> None:
        drives = len(self.queues)
        if not 1 <= drives <= _MOST_DRIVES or drives != len(self.controllers):
            raise ValueError(
                f"a page cache is of 1 to {_MOST_DRIVES} drives, with a controller for each of their queues, "
                f"not of {drives} queues and {len(self.controllers)} controllers"
            )
        for one, controller in zip(self.queues, self.controllers, strict=True):
            memory = one.memory
            if controller.memory is not memory or one.gpu is not self.queues[0].gpu:
                raise ValueError("the queues are of another controller, or of another GPU")
            if page_bytes > memory.slot_bytes:
                raise ValueError(f"pages of {page_bytes} bytes do not fit slots of {memory.slot_bytes}")
            if page_bytes < memory.block_bytes:
                raise ValueError(f"pages of {page_bytes} bytes are not of whole blocks")
            if memory.shared_pairs == 0:
                raise ValueError("the queue memory has no shared pairs")

    def clear(self) -> None:
        """Forget all pages, dirty ones too, and all statistics."""
        self._memory.clear()

    def flush(self, timeout: float = TIMEOUT) -> None:
        """Write back all dirty pages. NvmeError: a page that could not be; it stays dirty.

        What one drive refuses does not keep the others' pages from it.
        """
        first, *others = self.queues
        first.run(
            first.gpu.load("flush_cache"),
            self.view_memory,
            self.pools,
            len(self.queues),
            int(timeout * 1e9),
            first.errors,
            grid=first.gpu.multiprocessors,
            block=_BLOCK_THREADS,
            timeout_s=2 * timeout + 10,
            others=others,
        )

    def check(self) -> None:
        """Raise the first access that failed since the last look: NvmeError, of several with its drive."""
        self.queues[0].check(several=len(self.queues) > 1)

    @contextmanager
    def activity(self) -> Iterator[None]:
        """Keep all controllers awake."""
        with ExitStack() as awake:
            for controller in self.controllers:
                awake.enter_context(controller.activity())
            yield

    def statistics(self) -> dict[str, int]:
        """Hits, misses, coalesced misses, evictions, write-backs and failures since the beginning."""
        return _native.page_cache_counters(self._memory.read(self._counter_bytes, self._counters))

    def close(self) -> None:
        """Give the memory back; what is dirty is lost."""
        self._resources.close()


class GpuArray(Closeable):
    """`count` numbers from byte `offset` of a namespace on, or of several that are striped, for kernels.

    As an argument of `@numba.cuda.jit` kernels it takes `array[i]`, `array[i] = value` and `len(array)`, in
    any launch shape: leave `with array.kernels():` around the launches. Kernels written in C++ take
    `view_memory`, a SharedArrayView. A read that fails gives 0.
    """

    def __init__(
        self,
        cache: GpuPageCache,
        nsid: int | Striped,
        dtype: npt.DTypeLike,
        count: int,
        *,
        offset: int = 0,
        writable: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        """Make an array over what the namespace has; see `bamquery.driver.array.Array`.

        Raises:
            ValueError: the elements do not lie within the namespaces, or are no numbers of 8 to 64 bits.
        """
        self.dtype: Final = element_type(dtype)
        self.cache: Final = cache
        self._count = count
        place = nsid if isinstance(nsid, Striped) else Striped([(0, nsid)])
        members = list(place.members)
        space_bytes, namespace_blocks = _address_space(cache, place, writable=writable)
        gpu = cache.queues[0].gpu
        with ExitStack() as undo:
            table = _native.stripe_members(members)
            stripes = undo.enter_context(gpu.allocate(len(table)))
            stripes.write(table)
            view = _native.shared_array_view(
                cache=cache.view,
                pools=cache.pools.address,
                drives=len(cache.queues),
                errors=cache.queues[0].errors.address,
                members=members,
                stripes=stripes.address,
                stripe_bytes=place.stripe_bytes,
                offset=offset,
                space_bytes=space_bytes,
                namespace_blocks=namespace_blocks,
                count=count,
                element_bytes=self.dtype.itemsize,
                writable=writable,
                timeout=timeout,
            )
            self.view_memory: Final[GpuMemory] = undo.enter_context(gpu.allocate(len(view)))
            self.view_memory.write(view)
            self._resources = undo.pop_all()

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
        with self.cache.activity():
            yield self
            numba_cuda.synchronize()
        self.cache.check()

    def close(self) -> None:
        """Give the view's memory back."""
        self._resources.close()


def _address_space(cache: GpuPageCache, place: Striped, *, writable: bool) -> tuple[int, int]:
    """Bytes of the namespaces as one, and, where there is one, how many of the cache's blocks it has.

    Raises:
        ValueError: they are no such namespaces.
    """
    members = list(place.members)
    if not members or len(set(members)) != len(members):
        raise ValueError("array: it takes a namespace, and none of them twice")
    shapes = []
    for drive, nsid in members:
        if not 0 <= drive < len(cache.controllers):
            raise ValueError(f"array: there is no drive {drive} among {len(cache.controllers)}")
        shape = cache.controllers[drive].shape_of(nsid)
        lba = cache.queues[drive].memory.block_bytes
        if shape.block_bytes != lba:
            raise ValueError(f"array: namespace {nsid} does not have blocks of {lba} bytes")
        if writable and not shape.writable:
            raise ValueError(f"array: namespace {nsid} takes no writes")
        shapes.append(shape)
    space_bytes = _native.striped_bytes(
        min(shape.bytes for shape in shapes),
        members=len(members),
        stripe_bytes=place.stripe_bytes,
        page_bytes=cache.page_bytes,
    )
    return space_bytes, shapes[0].blocks * (shapes[0].block_bytes // cache.block_bytes)
