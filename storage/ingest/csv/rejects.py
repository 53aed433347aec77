"""Lines that are no records, told from records one at a time: the slow, exact way for blocks that are broken.

With `ignore_errors` a file's records are read and the other lines are rejects, each with its number, kind,
reason and text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from bamquery.errors import IngestError
from bamquery.storage.ingest.csv.blocks import CsvBlock, find_bad_text, has_open_quote
from bamquery.storage.ingest.csv.dialect import Dialect
from bamquery.storage.ingest.csv.parser import Misfit
from bamquery.storage.ingest.csv.records import read_records
from bamquery.storage.ingest.sources.reject_log import Reject

RejectKind: TypeAlias = Literal["MISSING COLUMNS", "TOO MANY COLUMNS", "UNQUOTED VALUE", "INVALID ENCODING"]
"""DuckDB's words."""

_T = TypeVar("_T")
_MOST_LINES: Final = 1000
"""Of a record; a quote that is still open then is one that nothing closes."""
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*+"')


@dataclass(slots=True)
class Sifted:
    """What a block of lines holds.

    Attributes:
        data: the records, each with exactly the expected number of fields.
        lines: the number of the line that each record begins on.
        rejects: the other lines; blank ones are neither.
    """

    data: bytes = b""
    lines: list[int] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)

    def block_like(self, block: CsvBlock) -> CsvBlock:
        """The records as a block in the place of the one that they are from."""
        return replace(block, data=self.data)


class _RejectedError(Exception):
    def __init__(self, kind: RejectKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def try_block(
    block: CsvBlock, dialect: Dialect, path: Path, attempt: Callable[[CsvBlock], _T]
) -> tuple[_T, Sequence[Reject]]:
    """What `attempt` makes of a block, or else of its records alone, and the lines that are beside these."""
    if find_bad_text(block, path) is None:
        try:
            return attempt(block), ()
        except (IngestError, Misfit):
            pass  # lines are looked at one by one
    sifted = sift(block, dialect)
    return attempt(sifted.block_like(block)), sifted.rejects


def sift(block: CsvBlock, dialect: Dialect, *, fields: int | None = None, one_line: bool = False) -> Sifted:
    """Sort a block's lines into records and others; blank lines are neither.

    A quote may be closed on a later line where that makes a record; otherwise its line is a reject, and the
    next one begins a record again.

    Args:
        block: whole lines.
        dialect: how they are written; records get as many fields as it has names.
        fields: how many a record has, if that is fewer; those behind them must be empty.
        one_line: every record ends with its line, so a quote does, too.
    """
    sifted = Sifted()
    kept: list[bytes] = []
    raw = block.data.split(dialect.newline)
    if not raw[-1]:
        raw.pop()  # what is behind the last line end
    place = 0
    while place < len(raw):
        count = 1
        line = raw[place].rstrip(b"\r")
        if line.strip() or dialect.delimiter.encode() in line:
            try:
                record, count = _take_record(raw[place:], dialect, fields, one_line=one_line)
            except _RejectedError as error:
                text = line.decode(errors="backslashreplace")
                sifted.rejects.append(Reject(block.first_line + place, error.kind, str(error), text))
            else:
                sifted.lines.append(block.first_line + place)
                kept.append(record)
        elif len(dialect.names) == 1:
            sifted.lines.append(block.first_line + place)
            kept.append(line)
        place += count
    sifted.data = b"".join(record + dialect.newline for record in kept)
    return sifted


def _take_record(
    raw: Sequence[bytes], dialect: Dialect, fields: int | None, *, one_line: bool
) -> tuple[bytes, int]:
    """The record that begins with a line, and how many lines it has.

    Raises:
        _RejectedError: there is none.
    """
    open_quote = has_open_quote(raw[0], dialect)
    count = 1
    if open_quote:
        count = 0 if one_line else _lines_to_closing_quote(raw, dialect)
        if not count:
            _check_utf8(raw[0])
            raise _RejectedError("UNQUOTED VALUE", "a quote that does not close")
    record = dialect.newline.join(raw[:count]).rstrip(b"\r")
    try:
        return _check_fields(record, dialect, fields), count
    except _RejectedError:
        if open_quote:  # what closes it is another one
            raise _RejectedError("UNQUOTED VALUE", "a quote that does not close") from None
        raise


def _lines_to_closing_quote(raw: Sequence[bytes], dialect: Dialect) -> int:
    """How many lines there are up to the one that closes the first one's quote; 0 if none does."""
    record = raw[0]
    for count, line in enumerate(raw[1:_MOST_LINES], 2):
        record += dialect.newline + line
        if b'"' in line and not has_open_quote(record, dialect):
            return count
    return 0


def _check_utf8(record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError as error:
        raise _RejectedError("INVALID ENCODING", f"byte {error.start + 1} is not UTF-8") from None


def _check_fields(record: bytes, dialect: Dialect, fields: int | None) -> bytes:
    """The record with as many fields as the dialect has names."""
    text = _check_utf8(record)
    if "\r" in _QUOTED.sub("", text):
        raise _RejectedError("UNQUOTED VALUE", "a carriage return inside the line")
    width = len(dialect.names)
    expected = width if fields is None else fields
    values = next(read_records(io.StringIO(text, newline=""), dialect.delimiter), [""])
    if len(values) < expected:
        raise _RejectedError(
            "MISSING COLUMNS", f"only {len(values)} of the {expected} fields that the header names"
        )
    surplus = values[expected:]
    for place, value in enumerate(surplus, expected + 1):
        if value.strip() or fields is None:
            raise _RejectedError(
                "TOO MANY COLUMNS", f"field {place} holds {value!r}, the header names only {expected}"
            )
    if len(values) == width and '"' not in text:
        return record
    return _join_fields(values[:expected] + [""] * (width - expected), dialect.delimiter)


def _join_fields(values: Sequence[str], delimiter: str) -> bytes:
    special = (delimiter, '"', "\r", "\n")
    quoted = (
        '"' + value.replace('"', '""') + '"' if any(mark in value for mark in special) else value
        for value in values
    )
    return delimiter.join(quoted).encode()
