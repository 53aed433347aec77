"""Software controllers that serve a benchmark's content: one, or one for each drive."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bamquery import _native
from bamquery.driver.bench.backing import prepare_backing
from bamquery.driver.bench.workload import DRIVES, SECTOR_BYTES, Access, DriveFigures, Setup
from bamquery.driver.software_controller import SoftwareController

_PIECE_BYTES: Final = 64 << 20


class ServedBacking:
    """A controller with one namespace, which has the workload's content."""

    def __init__(self, controller: SoftwareController, nsid: int, workload: Setup) -> None:
        """`controller` runs; the content may be missing yet."""
        self.controller: Final = controller
        self.nsid: Final = nsid
        self.workload: Final = workload

    def fill(self) -> None:
        """Write the content, on all cores; files have it."""
        if self.workload.backing.path is not None:
            return
        target = self.controller.contents(self.nsid)

        def fill(offset: int) -> None:
            _native.fill_content(
                target[offset : offset + _PIECE_BYTES], self.workload.seed, offset // SECTOR_BYTES
            )

        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(fill, range(0, len(target), _PIECE_BYTES)))


@contextmanager
def serve(
    workload: Setup, memory: _native.QueueMemory, *, writable: bool, streaming_stores: bool = False
) -> Iterator[ServedBacking]:
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
            nsid = controller.add_memory(workload.extent_bytes, workload.lba_bytes)
            backing = ServedBacking(controller, nsid, workload)
            backing.fill()
            yield backing
            return
        with prepare_backing(workload, writes=writable) as found:
            found.restore_for(writes=writable)
            direct = workload.backing.access is Access.DIRECT
            nsid = controller.add_file(
                workload.backing.path, workload.lba_bytes, direct=direct, writable=writable
            )
            yield ServedBacking(controller, nsid, workload)


def name_of(number: int, share: Setup) -> str:
    """Which drive, for a table."""
    return f"drive {number}: {share.backing}"


class DriveCounts:
    """What a controller has done since."""

    def __init__(self, number: int, served: ServedBacking) -> None:
        self._name = name_of(number, served.workload)
        self._controller = served.controller
        self._before = served.controller.statistics()

    def figures(self) -> DriveFigures:
        """Commands are those that it answered."""
        memory, before, now = self._controller.memory, self._before, self._controller.statistics()
        return DriveFigures(
            namespace=self._name,
            commands=now.reads + now.writes - before.reads - before.writes,
            bytes=now.read_bytes + now.write_bytes - before.read_bytes - before.write_bytes,
            errors=now.errors + now.lost - before.errors - before.lost,
            doorbell_writes=None,
            pairs=memory.leased_pairs + memory.shared_pairs,
            depth=memory.depth,
        )
