"""A column of a scan, and how its values are laid out."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bamquery.storage.format.storable_types import is_string_like


class Form(enum.Enum):
    """What kernels have to read for a row."""

    FIXED = "fixed"
    """A value of some bits."""
    STRINGS = "strings"
    """Two offsets, and the bytes between them."""
    DICTIONARY = "dictionary"
    """A code, the number of a value in the fragment's dictionary."""


@dataclass(frozen=True)
class ScanColumn:
    """A column of the scan; `kind` is its type in the table's schema."""

    name: str
    kind: pa.DataType
    form: Form

    @property
    def stored_kind(self) -> pa.DataType:
        """The type of what a row has: of a dictionary's codes."""
        kind: Any = self.kind
        if self.form is not Form.DICTIONARY:
            stored: pa.DataType = kind
            return stored
        index: pa.DataType = kind.index_type if pa.types.is_dictionary(kind) else pa.int32()
        return index

    @property
    def value_kind(self) -> pa.DataType:
        """The type of what is given out."""
        kind: Any = self.kind
        value: pa.DataType = kind.value_type if pa.types.is_dictionary(kind) else kind
        return value


def scan_column(name: str, kind: pa.DataType, *, has_dictionary: bool = False) -> ScanColumn:
    """The column of a table; strings, too, may be stored with a dictionary."""
    if has_dictionary or pa.types.is_dictionary(kind):
        return ScanColumn(name, kind, Form.DICTIONARY)
    return ScanColumn(name, kind, Form.STRINGS if is_string_like(kind) else Form.FIXED)
