"""Small CSV files that begin with the header of one that was looked at: many are looked at together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bamquery.errors import IngestError
from bamquery.storage.ingest.csv.blocks import BLOCK_BYTES, CsvBlock
from bamquery.storage.ingest.csv.source import CsvReader
from bamquery.storage.ingest.csv.type_inference import rows_if_read
from bamquery.storage.ingest.sources.formats import compression_of

_SMALL: Final = 1 << 18
"""Bytes of a file that is worth it: larger ones take longer to parse than to begin with."""
_FEWEST, _MOST = 16, 1024
"""Files at once."""


class AlikeFiles:
    """Opens files as the one before was found to be, where each value of theirs is of its column's type.

    That is the type which both files' values have in common, whatever the second one's would be alone. A
    header in the same words is one here, too.
    """

    def __init__(self) -> None:
        self._at_once = _FEWEST

    def open(self, like: CsvReader, files: Sequence[Path], check: Callable[[], None]) -> list[CsvReader]:
        """The first ones of `files` that are alike, maybe not all of these; none where the first one is not.

        `check` is called before each file; what it raises ends it.
        """
        beginning = _read_header(like)
        if not beginning:
            return []
        found: list[tuple[Path, bytes]] = []
        size = 0
        for path in files[: self._at_once]:
            check()
            content = _content(path, like.path, beginning)
            if content is None or size + len(content) > BLOCK_BYTES:
                break
            found.append((path, content))
            size += len(content)
        while found:
            if self._fit([content for _, content in found], like):
                self._at_once = min(2 * self._at_once, _MOST)
                return [like.alike(path, len(beginning) + len(content)) for path, content in found]
            self._at_once = max(len(found) // 2, _FEWEST)
            found = found[: len(found) // 2]
        return []

    def _fit(self, contents: Sequence[bytes], like: CsvReader) -> bool:
        dialect = like.dialect
        # A quote that is not closed would reach into the next file.
        if any(content.count(b'"') % 2 for content in contents):
            return False
        ended = [
            content if content.endswith(dialect.newline) else content + dialect.newline
            for content in contents
            if content
        ]
        data = b"".join(ended)
        block = CsvBlock(data, 1, data.count(dialect.newline), 0)
        try:
            return not data or rows_if_read(like.readings, block, dialect, like.path) is not None
        except IngestError:  # which is told of the one file that it is about
            return False


def _read_header(like: CsvReader) -> bytes:
    """Header and lines before it; empty where there is none, or that is compressed."""
    if not like.dialect.start:
        return b""
    try:
        with like.path.open("rb") as file:
            found: bytes = file.read(like.dialect.start)
    except OSError:
        return b""
    header = found.rstrip(b"\r\n").rpartition(like.dialect.newline)[2]
    if compression_of(found) != "none" or not found.endswith(like.dialect.newline) or header[:1] in b"#":
        return b""
    return found


def _content(path: Path, like: Path, beginning: bytes) -> bytes | None:
    """What is behind the same beginning; None where there is another one, or too much."""
    if path.suffix.lower() != like.suffix.lower():
        return None
    try:
        with path.open("rb") as file:
            found: bytes = file.read(_SMALL + 1)
    except OSError:
        return None
    if len(found) > _SMALL or not found.startswith(beginning):
        return None
    return found[len(beginning) :]
