"""The same blocks, read in two ways and compared: whatever a path does wrong, two hardly do alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.driver.controller import Controller, NamespaceShape
from bamquery.driver.queue_client import QueueClient
from bamquery.statement_context.cancellation import check_cancelled

_BATCH: Final = 256
"""Places of one call: between calls, Ctrl-C is heard."""
_RUN_BLOCKS: Final = 1024
_LOOK_SECONDS: Final = 0.05
_SHOWN: Final = 16
DEADLINE: Final = 30.0
"""Seconds for the commands of a call."""


@dataclass(frozen=True)
class Way:
    """How blocks are read.

    Attributes:
        pairs: queue pairs, each with a thread.
        depth: entries of their rings.
        transfer_bytes: of a command in a run.
        around: blocks of a command at a random place: the one, and those beside it.
    """

    pairs: int
    depth: int
    transfer_bytes: int
    around: int


@dataclass(frozen=True)
class Places:
    """What is read: single blocks, and runs of blocks.

    Attributes:
        singles: LBAs at random.
        runs: first LBAs, at random, too.
        run_blocks: of each run.
    """

    singles: NDArray[np.uint64]
    runs: NDArray[np.uint64]
    run_blocks: int

    @property
    def blocks(self) -> int:
        """Of all of them."""
        return len(self.singles) + len(self.runs) * self.run_blocks

    def lba(self, place: int) -> int:
        """Of the block whose checksum is at a place of `read_blocks`' answer."""
        if place < len(self.singles):
            return int(self.singles[place])
        run, block = divmod(place - len(self.singles), self.run_blocks)
        return int(self.runs[run]) + block


@dataclass(frozen=True)
class Comparison:
    """What came of reading in two ways.

    Attributes:
        blocks: compared.
        different: how many are not the same.
        first_different: some of those: LBA, and both checksums (CRC-32C).
    """

    blocks: int
    different: int
    first_different: tuple[tuple[int, int, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


Open = Callable[[Way], AbstractContextManager[Controller]]
"""A controller with fresh rings, as a way wants them, as far as it can."""
Progress = Callable[[int], None]
"""Hears several times a second how many blocks were read."""


def draw_places(shape: NamespaceShape, blocks: int, seed: int) -> Places:
    """Half of the blocks single, half in runs; of a namespace that has fewer, no more than it has."""
    wanted = max(min(blocks, shape.blocks), 1)
    run_blocks = min(_RUN_BLOCKS, max(wanted // 2, 1), shape.blocks)
    singles = _draw(shape.blocks, seed, wanted - wanted // 2)
    runs = _draw(shape.blocks - run_blocks + 1, seed + 1, wanted // 2 // run_blocks)
    # The last block is one that errors of one like.
    singles[-1] = shape.blocks - 1
    return Places(singles, runs, run_blocks)


def _draw(blocks: int, seed: int, count: int) -> NDArray[np.uint64]:
    # Not numpy's: its module of random numbers is imported at first use, and loses a Ctrl-C that comes then.
    return _native.draw_blocks("random", blocks, 1, seed, 1.0, 0, count)


def read_blocks(
    controller: Controller, shape: NamespaceShape, places: Places, way: Way, progress: Progress
) -> NDArray[np.uint32]:
    """CRC-32C of every block of `places`: of the single ones, then of the runs'.

    Raises:
        NvmeError: of the first command that failed.
        KeyboardInterrupt: Ctrl-C; no command is in flight then.
    """
    return _Reader(controller, shape, places, way).run(progress)


def compare(places: Places, first: NDArray[np.uint32], second: NDArray[np.uint32]) -> Comparison:
    """Checksums of the same places, read in two ways."""
    different = np.flatnonzero(first != second)
    shown = [(places.lba(int(at)), int(first[at]), int(second[at])) for at in different[:_SHOWN]]
    return Comparison(places.blocks, len(different), tuple(shown))


class _Reader:
    """One pass: threads take batches until there are none."""

    def __init__(self, controller: Controller, shape: NamespaceShape, places: Places, way: Way) -> None:
        self._client = QueueClient(controller)
        self._shape = shape
        self._places = places
        self._around = min(way.around, controller.memory.slot_bytes // shape.block_bytes, shape.blocks)
        self._threads = controller.memory.leased_pairs
        self._found = np.zeros(places.blocks, np.uint32)
        # Whether it is of single blocks, and the first of them, or the number of the run.
        singles = [(True, at) for at in range(0, len(places.singles), _BATCH)]
        self._batches = iter([*singles, *((False, run) for run in range(len(places.runs)))])
        self._lock = threading.Lock()
        self._done = 0
        self._over = threading.Event()
        self._errors: list[BaseException] = []

    def run(self, progress: Progress) -> NDArray[np.uint32]:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self._threads)]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                check_cancelled()
                progress(self._done)
                time.sleep(_LOOK_SECONDS)
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        if self._errors:
            raise self._errors[0]
        progress(self._done)
        return self._found

    def _work(self) -> None:
        try:
            while not self._over.is_set():
                with self._lock:
                    batch = next(self._batches, None)
                if batch is None:
                    return
                blocks = self._read_singles(batch[1]) if batch[0] else self._read_run(batch[1])
                with self._lock:
                    self._done += blocks
        except BaseException as error:  # raised where somebody hears it
            self._errors.append(error)
            self._over.set()

    def _read_singles(self, at: int) -> int:
        lbas = self._places.singles[at : at + _BATCH]
        around = self._around
        last = np.uint64(self._shape.blocks - around)
        starts = np.minimum(lbas - lbas % np.uint64(around), last)
        target = bytearray(len(lbas) * around * self._shape.block_bytes)
        self._client.read_places(self._shape.nsid, starts, target, DEADLINE)
        checksums = _native.strided_crcs(target, self._shape.block_bytes).reshape(len(lbas), around)
        self._found[at : at + len(lbas)] = checksums[np.arange(len(lbas)), (lbas - starts).astype(np.int64)]
        return len(lbas)

    def _read_run(self, run: int) -> int:
        blocks = self._places.run_blocks
        target = bytearray(blocks * self._shape.block_bytes)
        self._client.read_into(self._shape.nsid, int(self._places.runs[run]), target, DEADLINE)
        at = len(self._places.singles) + run * blocks
        self._found[at : at + blocks] = _native.strided_crcs(target, self._shape.block_bytes)
        return blocks


def two_ways(shape: NamespaceShape, cores: int) -> Sequence[Way]:
    """Unlike in all that a way has. Buffers take less than 4 MiB each: many may lock no more than eight."""
    return (Way(1, 64, shape.block_bytes, 1), Way(max(min(4, cores), 2), 32, 32 << 10, 8))
