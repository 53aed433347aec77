"""Memory of a GPU, and memory of this process that a GPU reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bamquery.closeable import Closeable
from bamquery.errors import GpuError

if TYPE_CHECKING:
    from bamquery.driver.gpu.device import Gpu

_SETTLE_S: Final = 60.0
"""How long a copy waits for launches before it."""


class GpuMemory(Closeable):
    """A run of bytes in a GPU's memory."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        """Allocate `size` bytes (at least 1) of zeros. See Gpu.allocate()."""
        gpu.enter()
        self._gpu = gpu
        self.size: Final = size
        self.address: Final = int(gpu.cuda(f"allocate {size:,} bytes on {gpu.name}", "cuMemAlloc", size))
        self._closed = False
        self._clear()

    def clear(self) -> None:
        """Make it zeros, after all launches."""
        self._gpu.settle(_SETTLE_S)
        self._clear()

    def write(self, data: bytes | np.ndarray[Any, Any], offset: int = 0) -> None:
        """Copy `data` to `offset`, after all launches."""
        source = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data)
        self._require(offset, source.nbytes)
        self._gpu.settle(_SETTLE_S)
        self._copy("cuMemcpyHtoDAsync", self.address + offset, source.ctypes.data, source.nbytes, host=source)

    def read(self, size: int | None = None, offset: int = 0) -> bytes:
        """A copy of `size` bytes from `offset` on, after all launches; of all bytes if None."""
        return self.read_array(np.uint8, size, offset).tobytes()

    def read_array(self, dtype: Any, size: int | None = None, offset: int = 0) -> np.ndarray[Any, Any]:
        """Like read(), as numpy's values."""
        size = self.size - offset if size is None else size
        self._require(offset, size)
        target = np.empty(size, np.uint8)
        self._gpu.settle(_SETTLE_S)
        self._copy("cuMemcpyDtoHAsync", target.ctypes.data, self.address + offset, size, host=target)
        return target.view(dtype)

    def _clear(self) -> None:
        self._copy("cuMemsetD8Async", self.address, 0, self.size)

    def _copy(self, function: str, *what: int, host: object = None) -> None:
        # A stream of its own: behind a kernel that does not end, waiting would be for ever.
        gpu = self._gpu
        gpu.enter()
        stream = gpu.copy_stream
        gpu.cuda("copy from or to the GPU", function, *what, stream)
        try:
            gpu.wait_for_stream(stream, "copying from or to the GPU")
        except BaseException:  # Ctrl-C too: the copy may go on
            gpu.abandon((self, host))
            self._closed = True
            raise

    def close(self) -> None:
        """Free it, once launches that may use it have ended."""
        if not self._closed:
            self._closed = True
            address, gpu = self.address, self._gpu
            gpu.retire(lambda: _release(gpu, "cuMemFree", address))

    def _require(self, offset: int, size: int) -> None:
        if offset < 0 or size < 0 or offset + size > self.size:
            raise GpuError(f"{size} bytes at {offset} do not lie in GPU memory of {self.size} bytes")


class PinnedMemory(Closeable):
    """Pages of this process that cannot move, with the address at which a GPU has them."""

    def __init__(
        self,
        gpu: Gpu,
        owner: object,
        address: int,
        size: int,
        *,
        read_only: bool = False,
        registers: bool = False,
    ) -> None:
        """Pin them; `owner` is kept as long as they are. See Gpu.pin()."""
        self._gpu = gpu
        self._owner: Final = owner
        self._host = address
        self._closed = False
        api = gpu.cuda.api
        gpu.enter()
        flags = api.CU_MEMHOSTREGISTER_DEVICEMAP | api.CU_MEMHOSTREGISTER_PORTABLE
        what = (
            f"pin {size:,} bytes (their limit is the memory there is, and in containers memlock: ulimit -l)"
        )
        if read_only:
            flags |= api.CU_MEMHOSTREGISTER_READ_ONLY
        if registers:
            flags |= api.CU_MEMHOSTREGISTER_IOMEMORY
            what = "map a drive's registers for the GPU (doorbells='forwarded' does without)"
        gpu.cuda(
            what,
            "cuMemHostRegister",
            address,
            size,
            flags,
        )
        self.address: Final = int(
            gpu.cuda("find pinned memory on the GPU", "cuMemHostGetDevicePointer", address, 0)
        )

    def close(self, on_release: Callable[[], None] | None = None) -> None:
        """Let the pages go, once launches that may use them have ended; `on_release` is called then."""
        if self._closed:
            return
        self._closed = True

        def release() -> None:
            _release(self._gpu, "cuMemHostUnregister", self._host)
            if on_release is not None:
                on_release()

        self._gpu.retire(release)  # which keeps this, and so the owner


def _release(gpu: Gpu, function: str, address: int) -> None:
    gpu.enter()
    gpu.cuda.quietly(function, address)
