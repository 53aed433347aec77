"""The software controller: CPU threads that execute the NVMe commands of a QueueMemory's queue pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from bamquery import _native
from bamquery._native import QueueMemory
from bamquery.driver.controller import DEADLINE, Controller
from bamquery.driver.drive_profile import PROFILES, DriveProfile
from bamquery.driver.faults import Fault


@dataclass(frozen=True)
class ControllerStatistics:
    """What a controller has done since it was made.

    Attributes:
        reads: commands, of whatever outcome; so are writes and flushes.
        writes: see reads.
        flushes: see reads.
        refused: commands of any kind that were not valid.
        read_bytes: of commands that ended well.
        write_bytes: see read_bytes.
        errors: completions with a status other than success.
        held: commands that a fault or a drive profile made wait.
        lost: commands that got no completion.
        looks: visits of a queue pair that found commands.
        failed_queues: queue pairs whose doorbells took impossible values.
        thread_seconds: CPU time of each thread; together, over bytes, they are CPU cores per GB/s.
        fired: how often each of the faults at hand did.
        direct_paths: how each thread that has ended used direct files: "io_uring", or "preadv: " and why.
    """

    reads: int
    writes: int
    flushes: int
    refused: int
    read_bytes: int
    write_bytes: int
    errors: int
    held: int
    lost: int
    looks: int
    failed_queues: int
    thread_seconds: tuple[float, ...]
    fired: tuple[int, ...]
    direct_paths: tuple[str, ...]


class SoftwareController(Controller):
    """Executes commands against namespaces of memory and files. A context manager: starts and stops."""

    def __init__(
        self,
        memory: QueueMemory,
        *,
        threads: int | None = None,
        streaming_stores: bool = False,
        executor_depth: int = 256,
    ) -> None:
        """Take the queue pairs of `memory`, whose rings are fresh.

        Args:
            memory: kept alive by the controller.
            threads: None: half of the processors, 8 at most. 0: none; clients do the work while they wait.
            streaming_stores: copy past the caches, which pays where landing buffers fit in none of them.
            executor_depth: operations on direct files in flight, of each thread.
        """
        self._native: Final = _native.SoftwareController(
            memory,
            threads=-1 if threads is None else threads,
            streaming_stores=streaming_stores,
            executor_depth=executor_depth,
        )
        super().__init__(memory, self._native)

    def __enter__(self) -> Self:
        self.start()
        return self

    @property
    def native(self) -> _native.SoftwareController:
        """For the extension's clients."""
        return self._native

    def start(self) -> None:
        """Start the threads, if they do not run."""
        self._native.start()

    def stop(self, deadline: float = DEADLINE) -> None:
        """Answer all that was submitted with "queue deleted" and end the threads. TimeoutError."""
        if not self._native.stop(deadline):
            raise TimeoutError(f"the controller's threads did not end within {deadline} s")

    @property
    def threads(self) -> int:
        """How many there are when it runs."""
        return self._native.threads

    def add_memory(self, size: int, block_bytes: int = 512) -> int:
        """Make a namespace of zeroed memory and return its nsid. ValueError: blocks are not 512 or 4096."""
        return self._native.add_memory(size, block_bytes)

    def add_file(
        self, path: str | Path, block_bytes: int = 512, *, direct: bool = False, writable: bool = False
    ) -> int:
        """Make a file, as long as it is now, a namespace and return its nsid.

        Args:
            path: a file or block device.
            block_bytes: of an LBA: 512 or 4096.
            direct: past the page cache (O_DIRECT, io_uring); otherwise by copies from and to it.
            writable: otherwise writes get "access denied".

        Raises:
            StorageError: it cannot be opened, or not read directly in such blocks.
        """
        return self._native.add_file(path, block_bytes, direct, writable)

    def contents(self, nsid: int) -> memoryview:
        """The bytes of a namespace of memory. ValueError: it is none."""
        return self._native.memory(nsid)

    def remove_namespace(self, nsid: int, deadline: float = DEADLINE) -> None:
        """Make commands to the namespace get "no such namespace", and wait until none is executing.

        Raises:
            ValueError: there is no such namespace.
            TimeoutError: commands were still executing at the deadline; its file is closed when they end.
        """
        if not self._native.remove_namespace(nsid, deadline):
            raise TimeoutError(f"commands of namespace {nsid} were still executing after {deadline} s")

    def set_faults(self, faults: Sequence[Fault], seed: int = 0) -> None:
        """Make new commands go wrong; an empty sequence: none do."""
        self._native.set_faults([fault.rule() for fault in faults], seed)

    def set_profile(self, profile: DriveProfile | str | None, drives: int = 1) -> None:
        """Make new commands take as long as with so many of these drives. KeyError: no such name."""
        if profile is None:
            self._native.clear_profile()
            return
        drive = PROFILES[profile] if isinstance(profile, str) else profile
        self._native.set_profile(
            drive.name,
            drive.read_latency,
            drive.write_latency,
            drive.read_commands,
            drive.write_commands,
            drive.read_bytes,
            drive.write_bytes,
            drives,
        )

    def statistics(self) -> ControllerStatistics:
        """What has been done so far."""
        found = self._native.statistics()
        return ControllerStatistics(
            reads=found["reads"],
            writes=found["writes"],
            flushes=found["flushes"],
            refused=found["refused"],
            read_bytes=found["read_bytes"],
            write_bytes=found["write_bytes"],
            errors=found["errors"],
            held=found["held"],
            lost=found["lost"],
            looks=found["looks"],
            failed_queues=found["failed_queues"],
            thread_seconds=tuple(found["thread_seconds"]),
            fired=tuple(found["fired"]),
            direct_paths=tuple(found["direct_paths"]),
        )
