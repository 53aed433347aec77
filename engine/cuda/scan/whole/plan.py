"""Whether a scan's columns are read whole, before any condition is asked, and which of them how.

To ask a condition, wait, and read other columns for the rows that pass costs the host a millisecond or two a
column, in which the bus brings a hundred megabytes. Where that is more than all of the columns, nothing is
chosen: they come in one go, and conditions are asked as of columns that stay in the GPU's memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.libcudf_types import narrow_kind
from bamquery.engine.cuda.scan.chunk.vector_list import possible_share
from bamquery.engine.cuda.scan.columns.device_columns import row_bits
from bamquery.engine.cuda.scan.columns.dictionaries import Dictionaries, JoinedDictionary
from bamquery.engine.cuda.scan.columns.scan_column import Form, ScanColumn, scan_column
from bamquery.engine.cuda.scan.resources.resident_vectors import ResidentVectors
from bamquery.engine.cuda.scan.resources.scan_resources import ScanResources
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.engine.operators.scan.selectivity_guess import guess_selectivities
from bamquery.storage.format.layout import VECTOR_ROWS

_COLUMN_S: Final = 4e-4
"""What it costs the host to read a column whole."""
_SCAN_S: Final = 3e-3
"""What a scan costs it that chooses rows."""
_READ_S: Final = 2e-3
"""The same for each of its columns."""
_BLOCK_BITS: Final = 8 * 512
"""Of the least that is read for a row."""
_SAMPLED: Final = 2
"""Fragments whose zone maps tell how many rows pass, about."""
_UNPRUNED: Final = 0.9
"""Share of the vectors that zone maps must leave: what they leave out is not read whole either."""
_MEMORY_PART: Final = 2
"""Part of the cache's default size that payloads and values take together at most."""


@dataclass(frozen=True, slots=True)
class WholeColumn:
    """A column to be read.

    Attributes:
        stored: the column as the fragments have it.
        size: bytes of its values in files.
        bits: of a value; of a dictionary's codes, of a code.
        stored_bits: of a value in its vector; 0: packed.
        joined: the dictionaries that its codes refer to; None: they are values.
    """

    stored: ScanColumn
    size: int
    bits: int
    stored_bits: int
    joined: JoinedDictionary | None

    @property
    def name(self) -> str:
        """As the table calls it."""
        return self.stored.name

    @property
    def made_kind(self) -> pa.DataType:
        """The type of what is made of it: packed decimals have 64 bits anyway, and are made narrow."""
        kind = self.stored.stored_kind
        return kind if self.stored_bits else narrow_kind(kind)

    @property
    def made_bits(self) -> int:
        """Of a value that is made."""
        return self.made_kind.bit_width if pa.types.is_decimal64(self.made_kind) else row_bits(self.bits)


@dataclass(frozen=True, slots=True)
class WholePlan:
    """Columns of all of a table's fragments, which are one run without gaps between their vectors."""

    resident: ResidentVectors
    columns: tuple[WholeColumn, ...]


def plan_whole(
    session: CudaSession, resources: ScanResources, work: ScanWork[CudaFrame], names: Sequence[str]
) -> WholePlan | None:
    """How to read columns whole; None where that takes longer than to choose rows, or cannot be done.

    Raises:
        StorageError: a dictionary is not as it was written, or cannot be read.
        MemoryLimitError: there is too little memory for one.
    """
    runs = list(resources.runs.divide(session, work.fragments, names))
    if len(runs) != 1 or any(fragment.rows % VECTOR_ROWS for fragment in work.fragments[:-1]):
        return None
    (resident,) = runs
    dictionaries = Dictionaries(session, work, resources.dictionaries)
    columns = [_plan_column(resident, dictionaries, work, name) for name in names]
    found = [column for column in columns if column is not None]
    if len(found) < len(columns) or not _fits(session, resident, found):
        return None
    if not _is_worth(work, found, resources.stream_rate):
        return None
    ranges = work.ranges if work.context.settings.zone_maps else ()
    if ranges and possible_share(resident, ranges) < _UNPRUNED:
        return None
    return WholePlan(resident, tuple(found))


def _plan_column(
    resident: ResidentVectors, dictionaries: Dictionaries, work: ScanWork[CudaFrame], name: str
) -> WholeColumn | None:
    kind = work.plan.schema.field(name).type
    packed = resident.is_packed(name)
    column = scan_column(name, kind)
    if column.form is Form.STRINGS:
        if not packed:
            return None
        column = scan_column(name, kind, has_dictionary=True)
    joined = dictionaries.join_all(column) if column.form is Form.DICTIONARY else None
    if column.form is Form.DICTIONARY and joined is None:
        return None
    bits = resident.buffers(name)[0].bits
    if packed:
        return WholeColumn(column, int(resident.payload_sums(name)[-1]), bits, 0, joined)
    if bits < 8 or resident.states(name) is not None:
        return None
    size = sum(fragment.rows for fragment in work.fragments) * bits // 8
    return WholeColumn(column, size, bits, bits, joined)


def _fits(session: CudaSession, resident: ResidentVectors, columns: Sequence[WholeColumn]) -> bool:
    rows = resident.count * VECTOR_ROWS
    size = sum(column.size + rows * column.made_bits // 8 for column in columns)
    return size <= session.cache_limit(None) // _MEMORY_PART


def _is_worth(work: ScanWork[CudaFrame], columns: Sequence[WholeColumn], rate: float) -> bool:
    """Whether all of the columns cross the bus in the time that choosing rows of them would take, at best."""
    sizes = {column.name: column.size for column in columns}
    whole = sum(sizes.values()) / rate + _COLUMN_S * len(columns)
    return whole <= _chosen_bytes(work, sizes) / rate + _SCAN_S + _READ_S * len(columns)


def _chosen_bytes(work: ScanWork[CudaFrame], sizes: Mapping[str, int]) -> float:
    """What is read where rows are chosen: a step's columns, and of the others blocks with rows that pass."""
    steps, names = work.plan.steps, work.plan.schema.names
    if not steps:
        return sum(sizes.values())
    passing = math.prod(guess_selectivities(steps, work.fragments[:_SAMPLED]))
    first = min(
        ([names[column] for column in step.columns] for step in steps),
        key=lambda columns: sum(sizes.get(name, 0) for name in columns),
    )
    rows = sum(fragment.rows for fragment in work.fragments)
    total = 0.0
    for name, size in sizes.items():
        of_a_block = rows * _BLOCK_BITS / (8 * max(size, 1))
        total += size if name in first else size * (1 - (1 - passing) ** of_a_block)
    return total
