"""Where a GPU's benchmarks read from: memory or a file, as a namespace and as memory that the GPU reaches."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bamquery.driver.bench.served import ServedBacking
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.memory import PinnedMemory


@contextmanager
def pin(backing: ServedBacking, gpu: Gpu) -> Iterator[PinnedMemory]:
    """The content where the GPU reaches it: memory as it is, a file's pages through a map of it.

    Raises:
        GpuError: it cannot be pinned.
    """
    path = backing.workload.backing.path
    if path is None:
        view: Any = np.frombuffer(backing.controller.contents(backing.nsid), np.uint8)
    else:
        with open(path, "rb") as file:
            size = backing.workload.extent_bytes
            view = np.frombuffer(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ), np.uint8)
    size = -(-view.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE  # the last page is there as a whole
    with gpu.pin(view, view.ctypes.data, size, read_only=path is not None) as pinned:
        yield pinned
