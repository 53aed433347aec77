"""Where a GPU's benchmarks read from: memory or a file, as a namespace and as memory that the GPU reaches."""

from __future__ import annotations

import concurrent.futures
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bamquery import _native
from bamquery.driver.bench.backing import prepare_backing
from bamquery.driver.bench.workload import DRIVES, SECTOR_BYTES, Access, Setup
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.memory import PinnedMemory
from bamquery.driver.software_controller import SoftwareController

_PIECE_BYTES = 64 << 20


class GpuBacking:
    """A controller with one namespace, which has the workload's content."""

    def __init__(self, controller: SoftwareController, nsid: int, workload: Setup) -> None:
        """`controller` runs; the content may be missing yet."""
        self.controller = controller
        self.nsid = nsid
        self._workload = workload

    def fill(self) -> None:
        """Write the content, on all cores; files have it."""
        if self._workload.backing.path is not None:
            return
        target = self.controller.contents(self.nsid)

        def fill(offset: int) -> None:
            _native.fill_content(
                target[offset : offset + _PIECE_BYTES], self._workload.seed, offset // SECTOR_BYTES
            )

        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(fill, range(0, len(target), _PIECE_BYTES)))

    @contextmanager
    def pin(self, gpu: Gpu) -> Iterator[PinnedMemory]:
        """The content where the GPU reaches it: memory as it is, a file's pages through a map of it.

        Raises:
            GpuError: it cannot be pinned.
        """
        path = self._workload.backing.path
        if path is None:
            view: Any = np.frombuffer(self.controller.contents(self.nsid), np.uint8)
        else:
            with open(path, "rb") as file:
                size = self._workload.extent_bytes
                view = np.frombuffer(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ), np.uint8)
        size = -(-view.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE  # the last page is there as a whole
        with gpu.pin(view, view.ctypes.data, size, read_only=path is not None) as pinned:
            yield pinned


@contextmanager
def gpu_backing(
    workload: Setup, memory: _native.QueueMemory, *, writable: bool, streaming_stores: bool = False
) -> Iterator[GpuBacking]:
    """A controller that runs on `memory`, with the workload's namespace, threads and drive profile.

    Raises:
        BamQueryError: the backing cannot be used.
    """
    controller = SoftwareController(
        memory, threads=workload.controller_threads, streaming_stores=streaming_stores
    )
    if workload.profile is not None:
        controller.set_profile(DRIVES[workload.profile], workload.drives)
    with controller:
        if workload.backing.path is None:
            backing = GpuBacking(
                controller, controller.add_memory(workload.extent_bytes, workload.lba_bytes), workload
            )
            backing.fill()
            yield backing
            return
        with prepare_backing(workload, writes=writable) as found:
            found.restore_for(writes=writable)
            direct = workload.backing.access is Access.DIRECT
            nsid = controller.add_file(
                workload.backing.path, workload.lba_bytes, direct=direct, writable=writable
            )
            yield GpuBacking(controller, nsid, workload)
