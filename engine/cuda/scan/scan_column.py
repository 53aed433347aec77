"""A column of a scan, and whether kernels read it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from bamquery.storage.types import is_string_like


@dataclass(frozen=True)
class ScanColumn:
    """A column of the scan.

    Attributes:
        refused: why kernels do not read it, and the device's column reader does; None: they do.
    """

    name: str
    kind: pa.DataType
    refused: str | None


def scan_column(name: str, kind: pa.DataType) -> ScanColumn:
    """The column of a table."""
    refused = None
    if pa.types.is_dictionary(kind):
        refused = "kernels do not read dictionary columns yet"
    elif is_string_like(kind):
        refused = "kernels do not read strings yet"
    return ScanColumn(name, kind, refused)
