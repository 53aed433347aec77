"""How files are to be read where that is said, and not found out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from bamquery.storage.format.storable_types import DataType

if TYPE_CHECKING:
    from bamquery.storage.ingest.sources.reject_log import ScanRejects
    from bamquery.storage.ingest.text.date_formats import DateFormat

FILENAME: Final = "filename"
FILE_INDEX: Final = "file_index"
ROW_NUMBER: Final = "file_row_number"
GROUP_NUMBER: Final = "file_row_group_number"
VIRTUAL_COLUMNS: Final = (FILENAME, FILE_INDEX, ROW_NUMBER, GROUP_NUMBER)
"""Columns that files have for who names them; the last two only where their format has such places."""

Compression: TypeAlias = Literal["auto", "none", "gzip", "zstd"]
"""Of a text file as a whole; "auto" is what its first bytes tell."""


@dataclass(frozen=True, slots=True)
class PathOptions:
    """Which columns files get that are not in them."""

    filename: str = ""
    """What the path of the file that a row is from is called; empty where it is no column."""
    row_number: bool = False
    """Whether `file_row_number` is a column."""
    partitioned: bool | None = None
    """Whether folders `key=value` are columns; None: where all files are in such of the same keys."""
    partition_strings: tuple[str, ...] = ()
    """Keys that are text here, whatever they look like: they will be cast."""
    guess_types: bool = True
    """Whether the other keys are of types that their values tell."""
    virtual: tuple[str, ...] = ()
    """Those of `VIRTUAL_COLUMNS` that are named, and come last, where no file has one of that name."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """What a user says of files; what is left at its default is found out by looking at them."""

    delimiter: str | None = None
    """CSV: one character."""
    header: bool | None = None
    """CSV: whether the first record has the names."""
    skip: int = 0
    """CSV: lines before the header."""
    nulls: tuple[str, ...] = ("",)
    """CSV: texts that are null."""
    names: tuple[str, ...] = ()
    """CSV: of the first columns, in place of the header's."""
    declared: tuple[tuple[str | int, DataType], ...] = ()
    """CSV: types that columns will be cast to, by name or position; such a column may be read as text."""
    date_format: DateFormat | None = None
    """CSV and JSON: the only one that dates may have, besides ISO 8601; looked for if it is not given."""
    timestamp_format: DateFormat | None = None
    """CSV and JSON: the same of timestamps."""
    all_text: bool = False
    """CSV: whether every column is text."""
    ignore_errors: bool = False
    """CSV: whether lines that are no records are left out."""
    store_rejects: bool = False
    """CSV: whether those are kept for who asks; where, is `rejects`."""
    rejects: ScanRejects | None = field(default=None, compare=False)
    """CSV: what is told of them."""
    layout: str = "auto"
    """JSON: "lines" (an object a line), "array" or "objects" (one after another, over several lines)."""
    members: tuple[tuple[str, DataType], ...] = ()
    """JSON: the members that become columns, and what these are to be cast to; all, if it is not empty."""
    compression: Compression = "auto"
    """CSV and JSON: what the files have to be, where it is said."""
    paths: PathOptions = PathOptions()
    """What columns paths give."""
    union_by_name: bool | None = None
    """Whether columns are those of all files, which all are looked at; None: unless paths give columns."""


NO_OPTIONS = FileOptions()
