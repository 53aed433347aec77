"""Strings out of their codes, which are in the GPU's memory: lengths first, then bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceStrings
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity, pad_size
from bamquery.engine.cuda.scan.reads.string_reads import (
    StringOffsets,
    WaitingStrings,
    running_sums,
    string_column,
    wide_word,
)
from bamquery.engine.cuda.scan.reads.vector_check import VectorCheck
from bamquery.engine.cuda.scan.resources.counter_board import Slot

_CODED: Final = struct.Struct("<6Q")
"""What CodedStrings has behind its ScanStrings."""
_BAD_ENDS: Final = "its strings' ends do not ascend within their parts"
_BAD_CODES: Final = "its codes are no strings of the length that it says"


@dataclass(frozen=True)
class Codes:
    """Where the codes of a selection's rows are: CodedStrings of engine/kernels/fsst/coded_strings.hpp.

    Attributes:
        offsets: with `pairs`, where they are in their columns; without, whole vectors have them.
        shifts: of these, what is added to the number of a byte of the column for its address, on the GPU.
        bases: with `pairs`, sums of the blocks that begin with each row.
        blocks: these, one after the other.
        memory: which all of it is in.
    """

    offsets: StringOffsets
    shifts: int = 0
    bases: rmm.DeviceBuffer | None = None
    blocks: rmm.DeviceBuffer | None = None
    memory: Sequence[rmm.DeviceBuffer] = ()

    def pack(self, chunk: ChunkMemory, name: str, selection: Selection) -> bytes:
        """The CodedStrings."""
        return self.offsets.pack(chunk, name, selection) + _CODED.pack(
            *(chunk.parameters(name), chunk.listed.resident.symbols(name), chunk.vector_rows, self.shifts),
            *(0 if buffer is None else buffer.ptr for buffer in (self.bases, self.blocks)),
        )


@dataclass
class DecodedStrings(WaitingStrings):
    """Strings whose lengths are being added up: the host must know how much memory they take.

    Attributes:
        name: of the column.
        kind: its type.
        selection: the rows.
        read: what it is accounted for in.
        codes: where these are.
        validity: its bitmap and the word with the number of nulls; None: no row is null.
        sums: bytes of the strings before each row, and of all.
        total: the two words with the bytes of all.
    """

    name: str
    kind: pa.DataType
    selection: Selection
    read: ColumnRead
    codes: Codes
    validity: tuple[rmm.DeviceBuffer, Slot] | None
    sums: rmm.DeviceBuffer
    total: Slot

    @classmethod
    def start(  # noqa: PLR0917 - one read of one column
        cls,
        chunk: ChunkMemory,
        name: str,
        kind: pa.DataType,
        selection: Selection,
        read: ColumnRead,
        codes: Codes,
        validity: tuple[rmm.DeviceBuffer, Slot] | None,
        checks: list[Any],
    ) -> DecodedStrings:
        """Start to add up lengths; `validity` is that of blocks, whose ends were looked at before."""
        rows = selection.rows
        coded = codes.pack(chunk, name, selection)
        in_vectors = codes.offsets.pairs is None
        valid = None
        if in_vectors and chunk.nulls(name) is not None:
            valid = chunk.allocate(rows, "reading nulls")
        bad_ends, bad_codes = chunk.board.take(4), chunk.board.take(4)
        sums, total = running_sums(
            *(chunk, "scan_fsst_lengths", rows, (coded,)),
            (None if valid is None else valid.ptr, bad_ends.address, bad_codes.address),
            file="fsst/decode",
        )
        checks += [VectorCheck(name, bad_ends, _BAD_ENDS), VectorCheck(name, bad_codes, _BAD_CODES)]
        if selection.everything and in_vectors:
            bad_sizes = chunk.board.take(4)
            what = (coded, sums.ptr, bad_sizes.address)
            chunk.launch("fsst/decode", "scan_fsst_sizes", *what, items=chunk.rows.count)
            checks.append(VectorCheck(name, bad_sizes, _BAD_CODES))
        if valid is not None:
            validity = pack_validity(chunk, valid, rows)
        return cls(name, kind, selection, read, codes, validity, sums, total)

    def complete(self, chunk: ChunkMemory) -> DeviceStrings:
        """The column."""
        rows, size = self.selection.rows, wide_word(chunk, self.total)
        self.read.string_bytes = size
        data = chunk.allocate(pad_size(size), f'reading column "{self.name}"')
        if size:
            coded = self.codes.pack(chunk, self.name, self.selection)
            chunk.launch("fsst/decode", "scan_fsst_bytes", coded, self.sums.ptr, data.ptr, items=rows)
        for used in self.codes.memory:
            chunk.release(used)
        return string_column(chunk, self.name, self.kind, data, rows, self.sums, size, self.validity)


def ends_check(column: str, bad: Slot) -> VectorCheck:
    """Of ends that kernels look at."""
    return VectorCheck(column, bad, _BAD_ENDS)
