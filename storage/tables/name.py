"""Table names as folder names: any name, on any file system, and never a path."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from bamquery.errors import CatalogError
from bamquery.text.identifiers import fold_case

_LONGEST: Final = 240  # bytes of a folder name; file systems take 255
_ENCODED: Final = re.compile(r"(?:[a-z0-9_-]|%[0-9A-F]{2})+")


def encode(name: str) -> str:
    """The folder name of a table: folded, every byte but a-z, 0-9, `_` and `-` percent-encoded.

    Raises:
        CatalogError: the name is empty, not Unicode text, or too long.
    """
    if not name:
        raise CatalogError("a table needs a name that is not empty")
    try:
        # quote() never touches letters, digits and _.-~, of which folding leaves the last two to be encoded.
        encoded = quote(fold_case(name), safe="").replace(".", "%2E").replace("~", "%7E")
    except UnicodeEncodeError as error:
        raise CatalogError(f"{name!r} is not Unicode text and cannot name a table") from error
    if len(encoded) > _LONGEST:
        raise CatalogError(
            f'the table name "{name[:40]}…" is too long: it takes {len(encoded)} bytes as a folder name, '
            f"{_LONGEST} is the most"
        )
    return encoded


def decode(folder: str) -> str | None:
    """The folded name whose folder this is, or None where no table's folder is called so."""
    if _ENCODED.fullmatch(folder) is None:
        return None
    try:
        name = unquote(folder, errors="strict")
    except UnicodeDecodeError:
        return None
    try:
        return name if encode(name) == folder else None
    except CatalogError:
        return None
