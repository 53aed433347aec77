"""Packs the vectors of a column that is being written, if its first ones say that this is worth it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR, RAW_BITS, UNIT, payload_starts
from bamquery.storage.files.buffers import concatenate_records, view
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.format.storable_types import value_kind
from bamquery.storage.fragments.choose_packing import PackingChoice, choose_packing
from bamquery.storage.statistics.packed_parts import LEAST_BITS, PackedParts, packed_part_columns


class Packing:
    """How the values of a column are stored: settled when the first of them come."""

    def __init__(
        self, type_: pa.DataType, allowed: bool, *, always: bool = False, parts: bool = False
    ) -> None:
        """`type_` as stored; `always`: nothing is asked of a sample, as for codes of dictionaries.

        `parts`: if it is packed, the column may have parts.
        """
        self._type = type_
        self._parts = parts
        self._settled = not allowed
        self._always = always
        self.packer: Packer | None = None
        """None so long as nothing is packed."""

    def pack(
        self, values: memoryview, validity: NDArray[np.uint8] | None, rows: int
    ) -> tuple[memoryview, NDArray[np.uint32] | None]:
        """What is stored of the next whole vectors, and the CRC-32C of each; None where it is as it was.

        `values` and `validity` are as `_native.vector_statistics` takes them.
        """
        if not self._settled:
            self._settled = True
            choice = PackingChoice() if self._always else choose_packing(self._type, values, validity, rows)
            if choice is not None:
                self.packer = Packer(value_kind(self._type), choice, self._parts)
        if self.packer is None:
            return values, None
        payload, crcs = self.packer.pack(values, validity, rows)
        return view(payload), crcs


@dataclass
class Packer:
    """Turns pieces of whole vectors into payloads, end to end.

    Attributes:
        kind: of values.
        choice: how all of them are packed.
        has_parts: whether bounds and checksums of their parts are collected.
    """

    kind: str
    choice: PackingChoice
    has_parts: bool = False
    _parameters: list[NDArray[Any]] = field(default_factory=list)
    _parts: list[PackedParts] = field(default_factory=list)
    _bytes: int = 0

    def pack(
        self, values: memoryview, validity: NDArray[np.uint8] | None, rows: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """The payloads of the next vectors, and the CRC-32C of each."""
        choice = self.choice
        payload, found, crcs = _native.pack_vectors(
            self.kind, values, validity, rows, choice.divisor, choice.origin, choice.exponents
        )
        parameters = found.reshape(-1).view(PACKED_VECTOR).copy()
        if self.has_parts:
            starts = payload_starts(parameters)
            counts = np.minimum(rows - np.arange(len(parameters), dtype=np.int64) * VECTOR_ROWS, VECTOR_ROWS)
            parts = _native.packed_parts(
                self.kind, payload, starts, found, counts, choice.divisor, choice.origin
            )
            self._parts.append(PackedParts.from_native(parts))
        parameters["offset"] += np.uint32(self._bytes // UNIT)
        self._parameters.append(parameters)
        self._bytes += payload.size
        return payload, crcs

    @property
    def parameters(self) -> NDArray[Any]:
        """Those of all vectors so far."""
        return concatenate_records(self._parameters)

    def part_columns(self) -> dict[str, Any]:
        """What the vectors file has of the column's parts; nothing where most vectors have none."""
        if not self._parts:
            return {}
        bits = self.parameters["bits"]
        wide = (bits >= LEAST_BITS) & (bits != RAW_BITS)
        if 2 * np.count_nonzero(wide) < len(wide):
            return {}
        return packed_part_columns(PackedParts.concatenate(self._parts))
