"""How files are to be read where that is said, and not found out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bamquery.storage.types import DataType

Compression: TypeAlias = Literal["auto", "none", "gzip", "zstd"]
"""Of a text file as a whole; "auto" is what its first bytes tell."""


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
    all_text: bool = False
    """CSV: whether every column is text."""
    layout: str = "auto"
    """JSON: "lines" (an object a line), "array" or "objects" (one after another, over several lines)."""
    members: tuple[tuple[str, DataType], ...] = ()
    """JSON: the members that become columns, and what these are to be cast to; all, if it is not empty."""
    compression: Compression = "auto"
    """CSV and JSON: what the files have to be, where it is said."""
    filename: bool = False
    """A last column `filename`: the path of the file that a row is from."""


NO_OPTIONS = FileOptions()
