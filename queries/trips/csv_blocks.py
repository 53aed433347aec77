"""TLC's CSV files of all years, as batches of columns with the line that each row came from.

What those files do, and what is done about it:

- the header may have blanks around its names, quotes, or a byte order mark, and a blank second line;
- data lines may end in more commas than the header has names: surplus fields must be empty;
- lines end in CR LF or LF; times are ISO 8601, or as the city's open-data portal writes them;
- copies are sometimes tab-separated.

Blocks, parser and rejects are those of ingest. A block goes through the parser at once. Where that meets a
value or a number of fields that it cannot take, or where lines and rows do not agree (a quote that never
closes swallows lines), the block is looked at line by line: lines that are no records are rejects with a
reason, the others are parsed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.errors import IngestError
from bamquery.queries.trips.arrow import Array, arrow
from bamquery.queries.trips.convert import NULL_TEXTS, PORTAL_TIMES
from bamquery.queries.trips.schema import BY_NAME, Kind, NameMap, fold_header, map_names
from bamquery.storage.ingest.csv.blocks import CsvBlock, TextFile, read_blocks
from bamquery.storage.ingest.csv.dialect import sniff
from bamquery.storage.ingest.csv.parser import Misfit, parse
from bamquery.storage.ingest.csv.rejects import sift
from bamquery.storage.ingest.sources.reject_log import Reject

_HEAD_BYTES: Final = 1 << 16
_DELIMITERS: Final = b",\t;|"
_LINE_FEED: Final = 10


@dataclass(frozen=True)
class TripBlock:
    """Records of consecutive lines.

    Attributes:
        arrays: one for each column of the header, rows in file order; columns without a place are null.
        lines: for each row its line number in the file.
        rejects: lines between them that are not records.
        block: the lines.
    """

    arrays: list[Array]
    lines: NDArray[np.int64]
    rejects: list[Reject]
    block: CsvBlock

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """The lines with these numbers, as in the file."""
        if not numbers:
            return {}
        lines = self.block.data.split(b"\n")
        return {
            number: lines[number - self.block.first_line].rstrip(b"\r").decode(errors="backslashreplace")
            for number in numbers
        }


class CsvFile:
    """One TLC CSV file, plain or compressed.

    Attributes:
        path: the file.
        header: its column names as written.
        names: their places in `trips`.
        bytes_read: taken from the file so far, as it is on disk.

    Raises:
        IngestError: the file cannot be read, is empty, or none of its columns is one of TLC's.
    """

    def __init__(self, path: Path) -> None:
        """Read the header."""
        self.path = path
        self.bytes_read = 0
        with TextFile(path) as file:
            head = file.read(_HEAD_BYTES)
        first = next((line for line in head.split(b"\n") if line.strip(b"\xef\xbb\xbf \r")), b"")
        dialect = sniff(
            head.replace(b"\0", b"?"),  # a zero byte is a broken value, and the file another one's business
            path,
            is_all=len(head) < _HEAD_BYTES,
            delimiter=chr(max(_DELIMITERS, key=first.count)),
            nulls=NULL_TEXTS,
        )
        if dialect is None:
            raise IngestError(f"not a CSV file: no header ends within {_HEAD_BYTES >> 10} KiB", path)
        self._dialect = dialect
        self.header = list(dialect.first)
        while self.header and not fold_header(self.header[-1]):
            self.header.pop()  # names end here; the fields below must be empty like any surplus
        self.names: NameMap = map_names(self.header, path)

    def blocks(self) -> Iterator[TripBlock]:
        """The file's records in order, once.

        Raises:
            IngestError: the file cannot be read to its end.
        """
        for block in read_blocks(self.path, self._dialect, one_line=True):
            self.bytes_read += block.source_bytes
            yield self._parse(block)

    def _parse(self, block: CsvBlock) -> TripBlock:
        lines = block.first_line + _lines_with_text(block.data)
        # A lone CR ends a record for Arrow's parser, and could make up for a line that a quote swallowed.
        plain = block.data.count(b"\r") == block.data.count(b"\r\n")
        arrays = self._arrays(block, len(lines), as_text=False) if plain else None
        rejects: list[Reject] = []
        if arrays is None:
            sifted = sift(block, self._dialect, fields=len(self.header), one_line=True)
            rejects, lines = sifted.rejects, np.array(sifted.lines, np.int64)
            records = sifted.block_like(block)
            arrays = self._arrays(records, len(lines), as_text=False)
            if arrays is None:
                arrays = self._arrays(records, len(lines), as_text=True)
            assert arrays is not None, "sifted lines hold the expected fields, and text is always text"
        return TripBlock(arrays, lines, rejects, block)

    def _arrays(self, block: CsvBlock, rows: int, *, as_text: bool) -> list[Array] | None:
        """All columns by the parser, or None where it does not find exactly `rows` good records."""
        types = self._types(as_text)
        try:
            batch = parse(block, self._dialect, self.path, list(types), types, PORTAL_TIMES)
        except (IngestError, Misfit):
            return None
        if batch.num_rows != rows:
            return None
        found = {place: batch.column(str(place)) for place in types}
        surplus = range(len(self.header), len(self._dialect.names))
        if any(found[place].null_count != rows for place in surplus):
            return None
        return [found.get(place, arrow.nulls(rows)) for place in range(len(self.header))]

    def _types(self, as_text: bool) -> dict[int, pa.DataType]:
        """Arrow types by column number, for the columns that `trips` has and those that must be empty."""
        word = pa.dictionary(pa.int32(), pa.string())
        by_kind: dict[Kind, pa.DataType] = {Kind.TIME: pa.timestamp("us"), Kind.AMOUNT: pa.float64()}
        types: dict[int, pa.DataType] = {}
        for name, places in self.names.positions.items():
            for place in places:
                typed = by_kind.get(BY_NAME[name].kind, word)
                types[place] = pa.string() if as_text else typed
        for place in range(len(self.header), len(self._dialect.names)):
            types[place] = pa.string()
        return types


def _lines_with_text(data: bytes) -> NDArray[np.int64]:
    """Numbers, from 0, of the lines that are not empty (a lone CR counts as empty)."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw == _LINE_FEED)
    if not len(ends) or ends[-1] != len(raw) - 1:
        ends = np.append(ends, len(raw))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    only_return = (lengths == 1) & (raw[np.minimum(starts, len(raw) - 1)] == ord("\r"))
    return np.flatnonzero((lengths > 0) & ~only_return)
