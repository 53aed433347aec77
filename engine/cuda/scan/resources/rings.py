"""Queue pairs, made once for a GPU, to a controller that serves the files of tables."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bamquery._native import QueueMemory, status_text
from bamquery.driver.gpu.arguments import Argument
from bamquery.driver.gpu.device import Gpu, GpuKernel
from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError
from bamquery.storage.fragments.fragment import Fragment

_WARPS: Final = 7
"""Of a thread block that move data; one more sweeps completions."""
_MOST_FILES: Final = 256
"""Namespaces kept, each of which is an open file."""
_STOP_S: Final = 1.0
_LOST: Final = frozenset({0x7C0, 0x7C1, 0x7C2, 0x7C3})
"""Statuses after which slots or pairs are missing: made by the core, never sent."""


@dataclass(frozen=True)
class RingShape:
    """How queue pairs are made.

    Attributes:
        pairs: one for each thread block that reads.
        depth: places of a ring; one slot less.
        slot_bytes: of the largest read.
        lba_bytes: 512 or 4,096.
        direct: past the page cache.
        threads: of the controller.
    """

    pairs: int
    depth: int
    slot_bytes: int
    lba_bytes: int
    direct: bool
    threads: int

    @property
    def lanes(self) -> int:
        """Of each warp, that keep a command in flight."""
        return min(32, (self.depth - 1) // _WARPS)

    @property
    def block(self) -> int:
        """Threads of a block."""
        return 32 * (_WARPS + 1)

    def grid(self, commands: int) -> int:
        """Blocks for so many commands at most: no more than there are pairs."""
        return max(1, min(self.pairs, -(-commands // (_WARPS * self.lanes))))

    @property
    def nap_ns(self) -> int:
        """How long the sweeping warp rests when nothing has come."""
        return 200 if self.slot_bytes >= 4096 else 0


def controller_threads(cores: int) -> int:
    """Threads that leave the host some: of 16 cores 12, which was fastest (docs/benchmarks)."""
    return max(1, min(12, cores * 3 // 4))


def block_rings(block_bytes: int, lba_bytes: int, direct: bool, threads: int) -> RingShape:
    """For scattered blocks."""
    return RingShape(64, 256, block_bytes, lba_bytes, direct, threads)


def stream_rings(lba_bytes: int, direct: bool, threads: int) -> RingShape:
    """For whole vectors and runs of them."""
    return RingShape(32, 64, 64 << 10, lba_bytes, direct, threads)


class Rings:
    """Queue pairs of one shape and the controller behind them; thread-safe.

    Attributes:
        broken: commands were lost, and with them slots or pairs: others take their place for later scans.
    """

    def __init__(self, gpu: Gpu, shape: RingShape) -> None:
        """Start the controller, whose threads park while nothing runs.

        Raises:
            GpuError: the queue pairs' memory cannot be pinned.
        """
        self.shape: Final = shape
        memory = QueueMemory(
            leased_pairs=shape.pairs,
            shared_pairs=0,
            depth=shape.depth,
            slot_bytes=shape.slot_bytes,
            block_bytes=shape.lba_bytes,
        )
        self.controller: Final = SoftwareController(memory, threads=shape.threads)
        self.queues: Final = GpuQueues(gpu, memory, self.controller.activity)
        self.controller.start()
        self._files: OrderedDict[str, int] = OrderedDict()
        self._paths: dict[int, str] = {}
        self._watched: weakref.WeakSet[Fragment] = weakref.WeakSet()
        self._gone: list[str] = []
        self._users: dict[object, set[str]] = {}
        """Files that each of the scans reads."""
        self._lock = threading.RLock()
        self.broken = False

    def begin(self, user: object) -> None:
        """A scan is about to use them: namespaces that it asks for stay until its `end`."""
        with self._lock:
            self._tidy()
            self._users[user] = set()

    def end(self, user: object) -> None:
        """The scan has done with them."""
        with self._lock:
            del self._users[user]
            self._tidy()

    @property
    def is_used(self) -> bool:
        """Some scan has not done with them."""
        return bool(self._users)

    def forget(self, folder: Path) -> None:
        """Close the files below a folder that no scan reads."""
        with self._lock:
            self._close([path for path in self._files if folder in Path(path).parents])

    def close(self) -> None:
        """End the controller and give the memory back; no scan uses them."""
        with suppress(TimeoutError):
            self.controller.stop(_STOP_S)
        self.queues.close(settle_s=0)

    def namespace(self, fragment: Fragment, user: object) -> int:
        """The namespace of a fragment's file, which `user` reads until its `end`.

        Raises:
            StorageError: it cannot be opened, or not read directly.
        """
        path = str(fragment.path)
        with self._lock:
            self._users[user].add(path)
            nsid = self._files.get(path)
            if nsid is None:
                nsid = self.controller.add_file(path, self.shape.lba_bytes, direct=self.shape.direct)
                self._files[path] = nsid
                self._paths[nsid] = path
                if fragment not in self._watched:
                    self._watched.add(fragment)
                    weakref.finalize(fragment, self._gone.append, path)
            self._files.move_to_end(path)
            return nsid

    def start(
        self, kernel: GpuKernel, arguments: Sequence[Argument], *, commands: int, stream: Any
    ) -> Launch:
        """Start a kernel whose first argument is the pool, for so many commands at most."""
        return self.queues.start(
            kernel,
            self.queues.view,
            *arguments,
            grid=self.shape.grid(commands),
            block=self.shape.block,
            shared_bytes=self.queues.memory.flags_bytes,
            stream=stream,
        )

    def failure(self, count: int, nsid: int, lba: int, blocks: int, code: int) -> NvmeError:
        """The error for what a kernel recorded; where slots are lost, later scans get others."""
        if code in _LOST:
            self.broken = True
        others = f"; {count - 1} more failed after it" if count > 1 else ""
        size = f" of {blocks} block{'s' if blocks > 1 else ''}" if blocks else ""
        message = f"read{size} failed: {status_text(code)}{others}"
        return NvmeError(message, nsid, lba, code >> 8, code & 0xFF, path=self._paths.get(nsid))

    def _tidy(self) -> None:
        gone = []
        while self._gone:
            gone.append(self._gone.pop())
        beyond = list(self._files)[: max(len(self._files) - _MOST_FILES, 0)]
        self._close([*gone, *beyond])

    def _close(self, paths: Iterable[str]) -> None:
        used = set().union(*self._users.values())
        for path in paths:
            if path in used:
                continue
            nsid = self._files.pop(path, None)
            if nsid is not None:
                self.controller.remove_namespace(nsid)
                del self._paths[nsid]
