"""How a CSV file is written: its delimiter, line ends, header, and where the data starts."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bamquery.errors import IngestError
from bamquery.storage.ingest.csv.records import read_records
from bamquery.storage.ingest.sources.column_names import names_in_file

_DELIMITERS: Final = (",", "\t", ";", "|")
_SAMPLE_RECORDS: Final = 200
_LINE: Final = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_OTHER_ENCODINGS: Final = {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What `sniff` found."""

    delimiter: str
    newline: bytes
    """Which byte ends a line: LF (after a CR or not), or CR alone."""
    names: tuple[str, ...]
    """One a field; made up ("column07") where the header has none."""
    unnamed: int
    """How many of the last fields the header does not name."""
    start: int
    """Offset of the first byte behind byte order mark, comments and header."""
    first_line: int
    """Number of the line there, from 1."""
    first: tuple[str, ...]
    """The fields of the first record."""
    has_header: bool
    """Whether that is the header."""
    nulls: tuple[str, ...]
    """Texts that are null."""


def sniff(
    head: bytes,
    path: Path,
    *,
    is_all: bool,
    delimiter: str | None = None,
    header: bool = True,
    nulls: tuple[str, ...] = ("",),
) -> Dialect | None:
    """The dialect of a file that starts with `head`; None where that is too little to end the first record.

    The delimiter is the one that gives most records the same number of fields, of which there are more than
    one. Fields that records have beyond the header are given names, as is a field that the header leaves
    empty; of equal names all but the first get numbers. Lines at the start that begin with # are comments
    unless they have as many fields as the lines behind them.

    Args:
        head: the first bytes of the file.
        path: for messages.
        is_all: `head` is the whole file.
        delimiter: if it is known.
        header: whether the first record is one.
        nulls: texts that are null.

    Raises:
        IngestError: the file is not UTF-8 text, or has nothing but blank lines.
    """
    mark = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
    _require_utf8(head, path)
    lines = _LINE.findall(head, mark)
    if not is_all and lines:
        lines.pop()  # it may go on behind the sample
    if not any(line.strip(b"\r\n") for line in lines):
        if is_all:
            raise IngestError("has no header and no rows, only blank lines", path)
        return None
    candidates = (delimiter,) if delimiter else _DELIMITERS
    behind = lines[_marked_lines(lines) :]
    if not behind and not is_all:
        return None
    found = max(candidates, key=lambda candidate: _score(behind or lines, candidate))
    comments = lines[: _comment_lines(lines, found)]
    lines = lines[len(comments) :]
    start = mark + sum(map(len, comments))
    consumed = _Counted(lines)
    records = _records(consumed, found)
    first = next(records, None)
    if first is None or (consumed.ended and not is_all):
        return None
    header_bytes, header_lines = consumed.bytes, consumed.lines
    rows = [] if header else [first]
    rows += [record for record, _ in zip(records, range(_SAMPLE_RECORDS), strict=False)]
    if len(rows) > 1 and not is_all:
        rows.pop()  # an open quote at the sample's end would make one record of the rest
    fields = _usual_length(rows, len(first)) or len(first)
    names = _header_names(first, fields, path) if header else [""] * fields
    width = len(str(len(names) - 1))
    filled = [name or f"column{i:0{width}}" for i, name in enumerate(names)]
    return Dialect(
        delimiter=found,
        newline=b"\r" if b"\n" not in head and b"\r" in head else b"\n",
        names=tuple(names_in_file(filled)),
        unnamed=next((i for i, name in enumerate(reversed(names)) if name), 0) if header else 0,
        start=start + header_bytes if header else start,
        first_line=1 + len(comments) + (header_lines if header else 0),
        first=tuple(first),
        has_header=header,
        nulls=nulls,
    )


def _require_utf8(head: bytes, path: Path) -> None:
    for mark, encoding in _OTHER_ENCODINGS.items():
        if head.startswith(mark):
            raise IngestError(
                f"is {encoding}, and CSV must be UTF-8: convert it (iconv -f {encoding} -t UTF-8)", path
            )
    if b"\0" in head:
        raise IngestError("is not text: it holds zero bytes", path)


def _header_names(header: list[str], fields: int, path: Path) -> list[str]:
    names = [name.strip() for name in header]
    while len(names) > fields and not names[-1]:
        names.pop()
    for name in names:
        if any("\udc80" <= character <= "\udcff" for character in name):
            raise IngestError(
                "line 1: the header is not UTF-8: convert the file (iconv -f LATIN1 -t UTF-8)", path
            )
    return names + [""] * (fields - len(names))


def _marked_lines(lines: list[bytes]) -> int:
    """How many lines at the start may be comments: those up to the last that begins with #."""
    marked = 0
    for i, line in enumerate(lines):
        if line.startswith(b"#"):
            marked = i + 1
        elif line.strip(b"\r\n"):
            break
    return marked


def _comment_lines(lines: list[bytes], delimiter: str) -> int:
    """How many lines at the start are comments: they have not as many fields as most records behind them."""
    marked = _marked_lines(lines)
    behind = _records(lines[marked:], delimiter)
    usual = _usual_length([record for record, _ in zip(behind, range(_SAMPLE_RECORDS), strict=False)])
    if usual < 2:
        return 0  # any line may be a value
    for i, line in enumerate(lines[:marked]):
        if len(next(_records([line], delimiter), [])) == usual:
            return i
    return marked


def _score(lines: list[bytes], delimiter: str) -> tuple[float, float]:
    """Share of records that have the most usual number of fields, and that number.

    Where that is one field, 0 and the share: a delimiter that is in some texts only is none.
    """
    records = [record for record, _ in zip(_records(lines, delimiter), range(_SAMPLE_RECORDS), strict=False)]
    usual = _usual_length(records)
    if len(records) > 1 and all(len(record) == 1 for record in records[1:]):
        usual = 1  # what only the first record has is in a name
    share = sum(len(record) == usual for record in records) / max(len(records), 1)
    return (share, usual) if usual > 1 else (0.0, share)


def _usual_length(records: list[list[str]], preferred: int = 0) -> int:
    """The most frequent number of fields; of equally frequent ones `preferred`, or else the largest."""
    counts = Counter(len(record) for record in records)
    return max(counts, key=lambda length: (counts[length], length == preferred, length), default=0)


def _records(lines: Iterable[bytes], delimiter: str) -> Iterator[list[str]]:
    """Records that are not blank lines."""
    text = (line.decode("utf-8", "surrogateescape") for line in lines)
    return (record for record in read_records(text, delimiter) if record)


class _Counted:
    """Lines, and how much of them was taken."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = iter(lines)
        self.bytes = 0
        self.lines = 0
        self.ended = False

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.bytes += len(line)
            self.lines += 1
            yield line
        self.ended = True
