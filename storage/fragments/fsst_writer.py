"""Compresses the strings of a column that is being written, if its first ones say that this is worth it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.fsst.parameters import FSST_VECTOR
from bamquery.storage.files.buffers import concatenate_records, view
from bamquery.storage.fragments.choose_packing import FORCED, WORTH

_LONG_ROW: Final = 4096
"""Bytes of a row, on average, beyond which strings are left plain: ends weigh nothing beside them, and 1,024
of them must not come to the 4 GiB that a vector holds."""


class StringPacking:
    """How the strings of a column are stored: settled when the first of them come."""

    def __init__(self, allowed: bool) -> None:
        self._settled = not allowed
        self.packer: StringPacker | None = None
        """None so long as nothing is compressed."""

    def pack(
        self,
        offsets: NDArray[np.int64],
        rows: int,
        data: NDArray[np.uint8],
        validity: NDArray[np.uint8] | None,
    ) -> tuple[memoryview, NDArray[np.uint32]] | None:
        """The payloads of the next whole vectors, and the CRC-32C of each; None where strings stay plain.

        `offsets` has one more than there are `rows`, and counts bytes of `data` from its first on.
        """
        if not self._settled:
            self._settled = True
            return self._choose(offsets, rows, data, validity)
        return None if self.packer is None else self.packer.pack(offsets, rows, data, validity)

    def _choose(
        self,
        offsets: NDArray[np.int64],
        rows: int,
        data: NDArray[np.uint8],
        validity: NDArray[np.uint8] | None,
    ) -> tuple[memoryview, NDArray[np.uint32]] | None:
        """As `pack`, of the column's first rows, by which symbols are found."""
        size = int(offsets[rows] - offsets[0])
        if size > _LONG_ROW * rows:
            return None
        packer = StringPacker(_native.fsst_train(offsets, rows, data, int(offsets[0])))
        payload, crcs = packer.pack(offsets, rows, data, validity)
        stored = payload.nbytes + len(crcs) * FSST_VECTOR.itemsize
        plain = 8 * rows + size + (0 if validity is None else rows / 8)
        if not FORCED["pack"] and stored >= WORTH * plain:
            return None
        self.packer = packer
        return payload, crcs


@dataclass
class StringPacker:
    """Turns pieces of whole vectors into payloads, end to end.

    Attributes:
        symbols: that all of them are compressed by.
        plain_bytes: of all strings so far.
    """

    symbols: bytes
    plain_bytes: int = 0
    _parameters: list[NDArray[Any]] = field(default_factory=list)
    _bytes: int = 0

    def pack(
        self,
        offsets: NDArray[np.int64],
        rows: int,
        data: NDArray[np.uint8],
        validity: NDArray[np.uint8] | None,
    ) -> tuple[memoryview, NDArray[np.uint32]]:
        """See `StringPacking.pack`."""
        start = int(offsets[0])
        payload, found, crcs = _native.fsst_pack(self.symbols, offsets, rows, data, start, validity)
        parameters = found.reshape(-1).view(FSST_VECTOR).copy()
        parameters["offset"] += np.uint64(self._bytes)
        self._parameters.append(parameters)
        self._bytes += payload.size
        self.plain_bytes += int(offsets[rows]) - start
        return view(payload), crcs

    @property
    def parameters(self) -> NDArray[Any]:
        """Those of all vectors so far."""
        return concatenate_records(self._parameters)
