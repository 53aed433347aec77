"""Reads by rings that somebody else serves, by threads of this process; see `gpu_rings.py`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from bamquery._native import ElsewhereController, QueueMemory
from bamquery.driver.controller import Controller
from bamquery.driver.queue_client import QueueClient
from bamquery.errors import NvmeError
from tests.guests import content
from tests.guests.host.reads import Reads, Refusals

_THREADS: Final = 4
_AT_ONCE: Final = 256
_DEADLINE_S: Final = 20.0


class CpuRings:
    """A namespace of one content, and the queue pairs of its controller, which is elsewhere."""

    name = "threads of a CPU"

    def __init__(self, queues: QueueMemory, nsid: int, blocks: int, seed: int) -> None:
        """`blocks` is all of the namespace."""
        self._nsid: Final = nsid
        self._blocks: Final = blocks
        self._block_bytes: Final = queues.block_bytes
        self._words: Final = content.blocks(seed, 0, blocks, queues.block_bytes)
        native = ElsewhereController(nsid=nsid, block_bytes=queues.block_bytes, blocks=blocks)
        self._client: Final = QueueClient(Controller(queues, native))

    def read(self, commands: int, sizes: tuple[int, ...]) -> Iterator[Reads]:
        """So many commands or a few more, of each of these sizes in blocks as many."""
        for lbas in sizes:
            rounds = -(-commands // (len(sizes) * _THREADS * _AT_ONCE))
            with ThreadPoolExecutor(_THREADS) as pool:
                wrong = sum(pool.map(lambda thread: self._read(thread, rounds, lbas), range(_THREADS)))  # noqa: B023
            yield Reads(f"read_places of {lbas} blocks", rounds * _THREADS * _AT_ONCE, wrong, 0)

    def _read(self, thread: int, rounds: int, lbas: int) -> int:
        """Words that were not what they should be."""
        random = np.random.default_rng([thread, lbas])
        target = np.empty((_AT_ONCE, lbas, self._block_bytes // 8), np.uint64)
        wrong = 0
        for _ in range(rounds):
            places = random.integers(0, self._blocks - lbas + 1, _AT_ONCE, np.uint64)
            target.fill(0xEEEEEEEEEEEEEEEE)
            self._client.read_places(self._nsid, places, target, _DEADLINE_S)
            wanted = self._words[places[:, None] + np.arange(lbas, dtype=np.uint64)]
            wrong += int(np.count_nonzero(target != wanted))
        return wrong

    def refusals(self) -> Refusals:
        """How what cannot be is refused."""
        return Refusals(
            self._status(self._nsid, self._blocks),
            self._status(self._nsid + 0x1000, 0),
            self._status(self._nsid, 0),
            self._write_status(),
        )

    def _status(self, nsid: int, lba: int) -> int:
        try:
            self._client.read(nsid, lba, 1, _DEADLINE_S)
        except NvmeError as error:
            return error.sct << 8 | error.sc
        return 0

    def _write_status(self) -> int:
        try:
            self._client.write(self._nsid, 0, bytes(self._block_bytes), _DEADLINE_S)
        except NvmeError as error:
            return error.sct << 8 | error.sc
        return 0

    def lost(self) -> int:
        """Commands that missed their deadline, and pairs whose controller broke the protocol."""
        counts = self._client.settle()
        return counts.missed + counts.quarantined + counts.broken
