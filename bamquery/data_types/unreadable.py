"""Columns that a source has and no query can read: known by name, so that queries can leave them out."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_NAME: Final = "bamquery.unreadable"


class UnreadableType(pa.ExtensionType):
    """In the place of a type that BamQuery has not.

    Attributes:
        reason: what the column is and why it cannot be read, for an error.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(pa.null(), _NAME)

    def __hash__(self) -> int:
        return hash(self.reason)

    def __arrow_ext_serialize__(self) -> bytes:
        return self.reason.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> UnreadableType:
        return cls(serialized.decode())


def unreadable(kind: pa.DataType) -> str | None:
    """Why a column of that type cannot be read; None where it can."""
    return kind.reason if isinstance(kind, UnreadableType) else None
