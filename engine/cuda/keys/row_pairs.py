"""Pairs of probe rows and build rows, in the order of the probe rows, then of the build rows.

What was found for each probe row is counted, counts are added up, and pairs written where the sums say.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pylibcudf as plc
import rmm

from bamquery.engine.cuda.frames import column_bytes, column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.key_kernels import address_of, fill_memory, new_memory, start_kernel
from bamquery.engine.cuda.launcher import SCAN_THREADS, WARPS

_FILE: Final = "keys/join_pairs"
_SUMS: Final = "strings/offsets"
_RULE: Final = struct.Struct("<QII")
"""A PairRule of join_table.hpp."""
NO_RULE: Final = bytes(_RULE.size)
_VECTOR: Final = 1024
"""Rows that are counted together."""
_RUN_BYTES: Final = 8
_INT32: Final = pa.int32()
_BOOL: Final = pa.bool_()


@dataclass(frozen=True)
class RowPairs:
    """Pairs of probe rows from `start` to before `stop`.

    Attributes:
        positions: int32, ascending, from `start` on; None: each row once.
        found: int32 build rows; beyond the last one for a row that comes without a partner.
    """

    start: int
    stop: int
    positions: plc.Column | None
    found: plc.Column


@dataclass(frozen=True)
class Runs:
    """Lists of rows, one behind the other.

    Attributes:
        memory: for a row whose key it is the first to have, or which is itself known, where its list lies.
        rows: int32, all lists.
    """

    memory: rmm.DeviceBuffer
    rows: plc.Column

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.memory.size) + column_bytes(self.rows)

    @classmethod
    def of_order(cls, kernels: Kernels, order: plc.Column, firsts: plc.Column, nobody: int) -> Runs:
        """Rows in an order by their first rows, those of `nobody` last; only first rows have runs."""
        memory = new_memory(kernels, _RUN_BYTES * nobody)
        _note_runs(kernels, address_of(order), firsts, nobody, memory)
        return cls(memory, order)

    @classmethod
    def of_pairs(cls, kernels: Kernels, positions: plc.Column, found: plc.Column, rows: int) -> Runs:
        """For each of so many rows what was found for it: pairs in the order of their positions."""
        memory = new_memory(kernels, _RUN_BYTES * rows)
        fill_memory(kernels, memory, 0)
        _note_runs(kernels, None, positions, rows, memory)
        return cls(memory, found)


def _note_runs(
    kernels: Kernels, order: int | None, firsts: plc.Column, nobody: int, memory: rmm.DeviceBuffer
) -> None:
    count = firsts.size()
    what = (order, address_of(firsts), count, nobody, memory.ptr)
    start_kernel(kernels, _FILE, "join_runs", *what, items=count)


def pack_rule(runs: Runs | None, *, alone: bool, partner: bool = False) -> bytes:
    """A PairRule: whether rows without a partner count, and without runs, whether those with one do."""
    return _RULE.pack(0 if runs is None else runs.memory.ptr, int(alone), int(partner))


class RowCounts:
    """How many pairs each of some probe rows becomes.

    Attributes:
        rows: how many there are.
        targets: addresses that kernels count to, by row and by 1,024 rows.
    """

    def __init__(self, kernels: Kernels, rows: int, *, with_offsets: bool = False) -> None:
        """`with_offsets`: of each row, too, and not only of each 1,024."""
        self.rows: Final = rows
        self._kernels = kernels
        self._tile_count = -(-rows // _VECTOR)
        self._tiles = new_memory(kernels, 8 * self._tile_count)
        self._offsets = new_memory(kernels, 8 * (rows + 1)) if with_offsets else None
        self._total = kernels.session.read_back.take(2)
        self.targets: Final = (self._offsets_address, int(self._tiles.ptr))

    def add_up(self) -> None:
        """Counts become sums of those before."""
        kernels, session = self._kernels, self._kernels.session
        total = self._total.address
        session.launcher.start(
            session.launcher.kernel(_SUMS, "scan_string_tiles"),
            *(self._tiles.ptr, self._tile_count, total),
            grid=1,
            block=SCAN_THREADS,
            stream=session.driver_stream,
        )
        if self._offsets is not None:
            what = (self._offsets.ptr, self.rows, self._tiles.ptr, total)
            start_kernel(kernels, _SUMS, "scan_string_sums", *what, items=self.rows, of_a_block=_VECTOR)

    def total(self) -> int:
        """All of them; the host waits."""
        low, high = self._kernels.session.read_back.read(self._total)
        return high << 32 | low

    def select(self, found: plc.Column, nobody: int, chosen: int, *, alone: bool) -> plc.Column:
        """Positions of as many rows as were counted: those with a partner, or `alone` those without."""
        positions = new_memory(self._kernels, 4 * chosen)
        self._select(found, nobody, alone, positions.ptr, None)
        return column_from_buffers(_INT32, chosen, positions)

    def select_pairs(self, found: plc.Column, nobody: int, chosen: int) -> tuple[plc.Column, plc.Column]:
        """Positions of the rows with a partner, and these."""
        positions, partners = (new_memory(self._kernels, 4 * chosen) for _ in range(2))
        self._select(found, nobody, False, positions.ptr, partners.ptr)
        return column_from_buffers(_INT32, chosen, positions), column_from_buffers(_INT32, chosen, partners)

    def find_end(self, begin: int, most: int) -> tuple[int, int]:
        """Where to end rows from `begin` on with about `most` pairs, and the pairs before; the host waits."""
        cut = self._kernels.session.read_back.take(4)
        what = (self._offsets_address, self.rows, begin, most, cut.address)
        start_kernel(self._kernels, _FILE, "join_cut", *what, items=1)
        words = self._kernels.session.read_back.read(cut)
        return words[1] << 32 | words[0], words[3] << 32 | words[2]

    @property
    def _offsets_address(self) -> int | None:
        return None if self._offsets is None else int(self._offsets.ptr)

    def _select(
        self, found: plc.Column, nobody: int, alone: bool, positions: int, partners: int | None
    ) -> None:
        what = (address_of(found), self.rows, nobody, int(alone), self._tiles.ptr, positions, partners)
        start_kernel(self._kernels, _FILE, "join_select", *what, items=self._tile_count, of_a_block=WARPS)


@dataclass(frozen=True)
class FoundPairs:
    """Pairs that are counted, to be made for some rows at a time.

    Attributes:
        kernels: where they are made.
        counts: how many pairs each probe row becomes.
        total: pairs.
        found: for each probe row that whose run it has, or `nobody`: as many as there are runs.
        nobody: see there.
        runs: of build rows.
        beyond: what stands for a partner where there is none.
    """

    kernels: Kernels
    counts: RowCounts
    total: int
    found: plc.Column
    nobody: int
    runs: Runs
    beyond: int

    @property
    def rows(self) -> int:
        """Probe rows."""
        return self.counts.rows

    def find_end(self, begin: int, first: int, most: int) -> tuple[int, int]:
        """Where to end rows from `begin` on, before which there are `first` pairs, and the pairs before that.

        They have no more than about `most` pairs, or are one row.
        """
        if self.total - first <= most:
            return self.rows, self.total
        return self.counts.find_end(begin, most)

    def pairs(self, begin: int, end: int, first: int, last: int) -> RowPairs:
        """Those of some rows, between two that `find_end` gave."""
        kernels, count = self.kernels, last - first
        positions, partners = (new_memory(kernels, 4 * count) for _ in range(2))
        if count:
            (offsets, _), runs = self.counts.targets, self.runs
            rows = (offsets, begin, end, first, count, address_of(self.found), self.nobody)
            lists = (runs.memory.ptr, address_of(runs.rows))
            what = (*rows, *lists, positions.ptr, partners.ptr, self.beyond)
            start_kernel(kernels, _FILE, "join_pairs", *what, items=count)
        columns = (column_from_buffers(_INT32, count, one) for one in (positions, partners))
        return RowPairs(begin, end, *columns)


def pairs_and_rows_alone(
    kernels: Kernels, positions: plc.Column, found: plc.Column, rows: int, beyond: int
) -> FoundPairs:
    """Pairs in the order of their positions, and each row that has none with what is beyond.

    The host waits for their number.
    """
    runs = Runs.of_pairs(kernels, positions, found, rows)
    counts = RowCounts(kernels, rows, with_offsets=True)
    own = new_memory(kernels, 4 * rows)
    what = (rows, pack_rule(runs, alone=True), rows, own.ptr, *counts.targets)
    start_kernel(kernels, "keys/join_table", "join_find_runs", *what, items=rows)
    counts.add_up()
    column = column_from_buffers(_INT32, rows, own)
    return FoundPairs(kernels, counts, counts.total(), column, rows, runs, beyond)


class RowFlags:
    """A byte for each of some rows."""

    def __init__(self, kernels: Kernels, rows: int, *, value: bool) -> None:
        """All have one value."""
        self._kernels = kernels
        self._rows = rows
        self._memory = new_memory(kernels, rows)
        fill_memory(kernels, self._memory, int(value))

    def write(self, positions: plc.Column, *, value: bool) -> None:
        """Give the rows at positions another one; positions beyond the last row are left out."""
        count = positions.size()
        what = (address_of(positions), count, self._rows, int(value), self._memory.ptr)
        start_kernel(self._kernels, _FILE, "join_flag", *what, items=count)

    def column(self) -> plc.Column:
        """As booleans."""
        return column_from_buffers(_BOOL, self._rows, self._memory)
