"""`bamquery nvme test`: everything that can be learnt of a drive by reading it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from bamquery.driver.bench.workload import Figures, Interrupted
from bamquery.driver.controller import Controller, NamespaceShape
from bamquery.driver.nvme.drive import NvmeController, NvmeDrive
from bamquery.driver.nvme.rates import LOADS, Load, measure_load
from bamquery.driver.nvme.reading import (
    Comparison,
    Open,
    Places,
    Way,
    compare,
    draw_places,
    read_blocks,
    two_ways,
)
from bamquery.driver.nvme.statuses import Refusal, try_refusals
from bamquery.errors import StorageError
from bamquery.statement_context.cancellation import check_cancelled

BLOCKS: Final = 1_000_000
_SEED: Final = 1
_RATE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.05

Say = Callable[[str], None]
"""Hears what is done now, several times a second."""
Result = TypeVar("Result")


@dataclass
class Findings:
    """What was found so far; Ctrl-C may end it anywhere.

    Attributes:
        doorbells: how the drive hears of commands, in words.
        comparison: of the blocks that were read in two ways.
        ways: those two.
        refusals: of reads that must be refused.
        rates: of a few loads.
        error: what ended the test before its end.
    """

    doorbells: str = ""
    comparison: Comparison | None = None
    ways: tuple[Way, ...] = ()
    refusals: list[Refusal] = field(default_factory=list)
    rates: list[Figures] = field(default_factory=list)
    error: str = ""
    interrupted: bool = False

    @property
    def right(self) -> bool:
        """Whether it came to its end, and all blocks were the same, and all that must be refused was."""
        return (
            not self.error
            and not self.interrupted
            and self.comparison is not None
            and not self.comparison.different
            and all(refusal.refused for refusal in self.refusals)
            and all(figures.right for figures in self.rates)
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "right": self.right,
            "error": self.error or None,
            "interrupted": self.interrupted,
            "doorbells": self.doorbells or None,
            "comparison": self.comparison and self.comparison.to_dict(),
            "ways": [vars(way) for way in self.ways],
            "error_statuses": [refusal.to_dict() for refusal in self.refusals],
            "rates": [figures.to_dict() for figures in self.rates],
        }


def opens(drive: NvmeDrive, nsid: int) -> Open:
    """Controllers over a drive, for reading a namespace."""

    @contextmanager
    def open_way(way: Way) -> Iterator[Controller]:
        memory = drive.queue_memory(nsid, pairs=way.pairs, depth=way.depth, transfer_bytes=way.transfer_bytes)
        with NvmeController(drive, memory) as controller:
            yield controller

    return open_way


@dataclass(frozen=True)
class Trial:
    """What is done with a namespace.

    Attributes:
        open_way: makes controllers.
        shape: of the namespace.
        say: hears what is done.
        rate_seconds: for each of the loads.
    """

    open_way: Open
    shape: NamespaceShape
    say: Say
    rate_seconds: float = _RATE_SECONDS

    def run(self, blocks: int, findings: Findings) -> None:
        """Fill in what there is to find.

        Raises:
            KeyboardInterrupt: Ctrl-C; the findings have what was found until then, and no controller is left.
        """
        try:
            self._compare(blocks, findings)
            self._refuse(findings)
            for load in LOADS:
                self._measure(load, findings)
        except StorageError as error:
            findings.error = str(error)
        except KeyboardInterrupt:
            findings.interrupted = True
            raise

    def _compare(self, blocks: int, findings: Findings) -> None:
        places = draw_places(self.shape, blocks, _SEED)
        findings.ways = tuple(two_ways(self.shape, len(os.sched_getaffinity(0))))
        found = [self._read(places, way, number) for number, way in enumerate(findings.ways, 1)]
        findings.comparison = compare(places, *found)

    # Each controller in a function of its own: its queue pairs are free for the next when that ends.

    def _read(self, places: Places, way: Way, number: int) -> NDArray[np.uint32]:
        def progress(done: int) -> None:
            share = 100 * done // places.blocks
            self.say(f"reading {places.blocks:,} blocks, way {number} of 2: {share} %")

        with self.open_way(way) as controller:
            return read_blocks(controller, self.shape, places, way, progress)

    def _refuse(self, findings: Findings) -> None:
        with self.open_way(Way(1, 2, 2 * self.shape.block_bytes, 1)) as controller:
            findings.doorbells = getattr(controller, "doorbells_text", "")
            findings.refusals.extend(try_refusals(controller, self.shape))

    def _measure(self, load: Load, findings: Findings) -> None:
        # A power of two, as all transfers are.
        most = 1 << (self.shape.bytes.bit_length() - 1)
        way = Way(load.pairs, load.in_flight + 1, min(load.transfer_bytes, most), 1)

        def progress(path: str, seconds: float, operations: int, moved: int) -> None:
            del seconds, moved
            check_cancelled()
            self.say(f"measuring {path}: {operations:,} reads")

        try:
            with self.open_way(way) as controller:
                figures = measure_load(controller, self.shape, load, self.rate_seconds, progress)
        except Interrupted as stopped:
            findings.rates.extend(stopped.figures)
            raise
        findings.rates.append(figures)


def call_interruptibly(call: Callable[[], Result]) -> Result:
    """What a call of native code returns, which Ctrl-C does not wait for.

    Raises:
        KeyboardInterrupt: Ctrl-C; the call goes on until the process ends, which is to be soon.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # raised where somebody hears it
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_SECONDS)
    if errors:
        raise errors[0]
    return results[0]
