"""Strings out of the blocks that hold them: listed on the GPU, and read by its own commands."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.columns.device_columns import DeviceStrings
from bamquery.engine.cuda.scan.reads.accounting import KernelTime
from bamquery.engine.cuda.scan.reads.string_checks import offsets_check
from bamquery.engine.cuda.scan.reads.string_reads import (
    StringRead,
    WaitingStrings,
    running_sums,
    wide_word,
)
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.engine.cuda.scan.scan_state import DEADLINE_NS

_LISTED: Final = struct.Struct("<QQQQII")
"""ScanListed."""
_BLOCK: Final = 16
"""Bytes of a ScanBlock."""


@dataclass
class BlockStrings(StringRead):
    """A column of strings whose rows' offsets were fetched.

    Attributes:
        checks: gets that of the offsets.
        bases: sums of the blocks that begin with each row.
        memory: the blocks, one after the other.
    """

    checks: list[Any]
    bases: rmm.DeviceBuffer = field(init=False)
    _blocks: Slot = field(init=False)
    memory: rmm.DeviceBuffer = field(init=False)

    def start(self, chunk: ChunkMemory) -> None:
        """Start to find out how many blocks are to be read."""
        bad = chunk.board.take(4)
        self.measure(chunk, None, bad)
        self.checks.append(offsets_check(self.name, bad))
        self.bases, self._blocks = running_sums(
            chunk, "scan_string_blocks", self.selection.rows, (self.strings, self.sums.ptr)
        )

    def list_blocks(self, chunk: ChunkMemory) -> tuple[bytes, int]:
        """Start to list the blocks, once the board was copied back: the ScanListed, and how many they are."""
        blocks = wide_word(chunk, self._blocks)
        size = chunk.state.block_bytes
        self.memory = chunk.allocate(blocks * size, f'fetching column "{self.name}"')
        listing = chunk.allocate(blocks * _BLOCK, "listing blocks")
        if blocks:
            chunk.launch(
                "strings/offsets",
                "scan_string_listing",
                *(self.strings, self.bases.ptr, blocks, listing.ptr),
                items=blocks,
            )
        tally = chunk.board.tally()
        self.read.tallies.append(tally)
        self.read.expected.append(self._blocks)
        taken = chunk.board.take(4)
        job = _LISTED.pack(listing.ptr, self.memory.ptr, taken.address, tally.address, blocks, 0)
        return job, blocks

    def complete(self, chunk: ChunkMemory) -> DeviceStrings | WaitingStrings:
        """The column, once the kernel that reads the blocks was started."""
        return self.gather(chunk, self.bases, self.memory, 0)


def fetch_listed(chunk: ChunkMemory, columns: Sequence[BlockStrings]) -> KernelTime | None:
    """Start to read the blocks of all columns, once the board was copied back; None where there are none."""
    listed = [column.list_blocks(chunk) for column in columns]
    blocks = sum(count for _, count in listed)
    if not blocks:
        return None
    state = chunk.state
    rings = state.fetch_rings
    jobs = chunk.uploads.put(b"".join(job for job, _ in listed), state.stream)
    arguments = (
        *(jobs, len(listed), rings.shape.lba_bytes, state.block_bytes, rings.shape.lanes),
        *(rings.shape.nap_ns, DEADLINE_NS),
        *(chunk.board.control.address, chunk.board.fetch_errors.address),
    )
    kernel = state.launcher.kernel("fetch/listed", "scan_fetch_listed")
    with state.session.lock:
        launch = rings.start(kernel, arguments, commands=blocks, stream=state.stream)
    seconds: Callable[[], float] = state.note_launch(launch)
    return KernelTime(seconds, tuple(column.name for column in columns))
