"""A CSV file as blocks of whole records, each with its line number, at a bounded size."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.errors import IngestError
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.ingest.csv.dialect import Dialect
from bamquery.storage.ingest.csv.records import read_records
from bamquery.storage.ingest.sources.failures import unreadable
from bamquery.storage.ingest.sources.formats import compression_of, read_start

BLOCK_BYTES: Final = 8 << 20
_READ_BUFFER: Final = 1 << 20
_LONGEST_RECORD: Final = 64 << 20
_TRUNCATED_ZSTD: Final = "Truncated compressed stream"
"""What Arrow says then."""
_QUOTED: Final = re.compile(rb'"(?:[^"]|"")*+("?)')
_SHOWN_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Some whole records."""

    data: bytes
    first_line: int
    """Number of its first line in the file, from 1."""
    last_line: int
    source_bytes: int
    """Bytes of the file, compressed if it is, read for this block."""


class TextFile:
    """The bytes of a file, decompressed if it is gzip or zstd; knows how far it is in the file itself."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            IngestError: it is empty or cannot be opened.
        """
        self._path = path
        self._compression = compression_of(read_start(path))
        self._stack = ExitStack()
        try:
            self._raw = self._stack.enter_context(path.open("rb", buffering=_READ_BUFFER))
        except OSError as error:
            raise unreadable(path, error) from error
        self._file: Any = self._raw
        if self._compression == "gzip":
            self._file = self._stack.enter_context(gzip.GzipFile(fileobj=self._raw))
        elif self._compression == "zstd":
            raw = pa.PythonFile(cast(io.BufferedReader, self._raw))
            self._file = self._stack.enter_context(pa.CompressedInputStream(raw, "zstd"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end.

        Raises:
            IngestError: the disk fails, or the compressed data is damaged or ends early.
            CancelledError: the statement that reads was cancelled.
        """
        check_cancelled()
        pieces = []
        try:
            while size and (piece := self._file.read(size)):
                pieces.append(piece)
                size -= len(piece)
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, EOFError) or str(error) == _TRUNCATED_ZSTD:
                raise IngestError(
                    f"is a truncated {self._compression} file: the end of its data is missing", self._path
                ) from error
            raise unreadable(self._path, error) from error
        return b"".join(pieces)

    def position(self) -> int:
        """Bytes of the file consumed so far."""
        return self._raw.tell()


def read_blocks(
    path: Path, dialect: Dialect, *, ignore_errors: bool = False, one_line: bool = False
) -> Iterator[CsvBlock]:
    """The records behind the header, in blocks of about `BLOCK_BYTES`.

    Args:
        path: the file.
        dialect: how it is written.
        ignore_errors: a quote that is open for longer than a block is taken for one that nothing closes, and
            the block ends with some line.
        one_line: every record ends with its line.

    Raises:
        IngestError: a record is longer than a block can be (most likely a quote that is never closed), or the
            file cannot be read; names the line.
    """
    with TextFile(path) as file:
        file.read(dialect.start)
        carry = b""
        line = dialect.first_line
        position = 0
        while piece := file.read(BLOCK_BYTES):
            data = carry + piece
            end = 0 if one_line else _record_end(data, dialect)
            if one_line or (ignore_errors and not end):
                end = data.rfind(dialect.newline) + 1
            carry = data[end:]
            if len(carry) > _LONGEST_RECORD:
                raise _unclosed_quote(path, line + data.count(dialect.newline, 0, end))
            if not end:
                continue
            next_line = line + data.count(dialect.newline, 0, end)
            yield CsvBlock(data[:end], line, next_line - 1, file.position() - position)
            position = file.position()
            line = next_line
        if carry:
            if not (ignore_errors or one_line) and has_open_quote(carry, dialect):
                raise _unclosed_quote(path, line)
            lines = carry.count(dialect.newline) + (not carry.endswith(dialect.newline))
            yield CsvBlock(carry, line, line + lines - 1, file.position() - position)


def whole_records(data: bytes, dialect: Dialect, *, is_all: bool) -> bytes:
    """`data`, which starts with a record, up to the last record that is sure to be complete."""
    return data if is_all else data[: _record_end(data, dialect)]


def find_bad_record(block: CsvBlock, dialect: Dialect, path: Path) -> IngestError | None:
    """The first record of a block without the right number of fields, as an error; None if all have it."""
    expected = len(dialect.names)
    text = io.StringIO(block.data.decode("utf-8", "surrogateescape"), newline="")
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for line in text:
            read += 1
            yield line

    before = 0
    for record in read_records(lines(), dialect.delimiter):
        if record and len(record) != expected:
            line = block.first_line + before
            shown = dialect.delimiter.join(record).encode("utf-8", "replace").decode()[:_SHOWN_CHARACTERS]
            return IngestError(
                f"line {line}: has {len(record)} field{'s' * (len(record) != 1)} where the others have "
                f"{expected}: {shown}",
                path,
            )
        before = read
    return None


def find_bad_text(block: CsvBlock, path: Path) -> IngestError | None:
    """The first line of a block that is not UTF-8, as an error; None if all is."""
    try:
        block.data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = block.first_line + block.data.count(b"\n", 0, error.start)
        return IngestError(
            f"line {line}: is not UTF-8 (byte 0x{block.data[error.start]:02x}): convert the file "
            "(iconv -f LATIN1 -t UTF-8)",
            path,
        )
    return None


def has_open_quote(data: bytes, dialect: Dialect) -> bool:
    """Whether `data`, which starts with a record, ends within quotes."""
    return b'"' in data and len(_quotes(data, dialect.delimiter)) % 2 == 1


def _unclosed_quote(path: Path, line: int) -> IngestError:
    return IngestError(
        f"line {line}: a record starts here that does not end; most likely a quote is not closed", path
    )


def _record_end(data: bytes, dialect: Dialect) -> int:
    """Offset behind the last complete record, 0 where there is none; `data` starts with a record."""
    end = data.rfind(dialect.newline) + 1
    if data.find(b'"', 0, end) < 0:
        return end
    quotes = _quotes(data, dialect.delimiter)
    while end:
        before = int(np.searchsorted(quotes, end - 1))
        if before % 2 == 0:
            return end
        # This line end is inside a field: try the last one in front of it.
        end = data.rfind(dialect.newline, 0, int(quotes[before - 1])) + 1
    return 0


def _quotes(data: bytes, delimiter: str) -> NDArray[np.int64]:
    """Offsets of the quotes that open and close fields, in turns; doubled ones in fields may be among them.

    Nearly always these are all quotes, and that shows at once: every second one, from the first on, starts a
    field or directly follows the one before it, which then did not close the field but was doubled. Otherwise
    some are text inside plain fields, and the fields are gone through one by one.
    """
    characters = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    openers = quotes[::2]
    before = characters[openers - 1]
    starts = (openers == 0) | (before == ord(delimiter)) | (before == ord("\n")) | (before == ord("\r"))
    doubled = np.zeros(len(openers), np.bool_)
    doubled[1:] = openers[1:] == quotes[1:-1:2] + 1
    if np.all(starts | doubled):
        return quotes
    return np.array(list(_field_quotes(data, delimiter)), np.int64)


def _field_quotes(data: bytes, delimiter: str) -> Iterator[int]:
    """The quotes that open and close fields, in turns."""
    starts = delimiter.encode() + b"\r\n"
    position = data.find(b'"')
    while position >= 0:
        if position and data[position - 1] not in starts:
            position = data.find(b'"', position + 1)
            continue
        yield position
        quoted = _QUOTED.match(data, position)
        assert quoted is not None
        if not quoted.group(1):
            return
        yield quoted.end() - 1
        position = data.find(b'"', quoted.end())
