"""TLC's CSV files of all years, as batches of columns with the line that each row came from.

What those files do, and what is done about it:

- the header may have blanks around its names, quotes, or a byte order mark, and a blank second line;
- data lines may end in more commas than the header has names: surplus fields must be empty;
- lines end in CR LF or LF; times are ISO 8601, or as the city's open-data portal writes them;
- copies are sometimes tab-separated.

A block of lines goes through Arrow's parser at once. Where that meets a value or a number of fields that it
cannot take, or where lines and rows do not agree (a quote that never closes swallows lines), the block is
looked at line by line: lines that cannot be a record are set aside with a reason, the others parsed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.errors import IngestError
from bamquery.queries.trips.arrow import Array, arrow, arrow_csv
from bamquery.queries.trips.convert import NULL_TEXTS, PORTAL_TIMES
from bamquery.queries.trips.csv_lines import SetAside, sift
from bamquery.queries.trips.schema import BY_NAME, Kind, NameMap, fold_header, map_names

BLOCK_BYTES: Final = 8 << 20
# A record is a few hundred bytes; a file with more than this between line ends is not CSV.
LONGEST_LINE: Final = 1 << 20
_DELIMITERS: Final = ",\t;|"
_LINE_FEED: Final = 10


@dataclass(frozen=True)
class CsvBlock:
    """Records of consecutive lines.

    Attributes:
        arrays: one for each column of the header, rows in file order; columns without a place are null.
        lines: for each row its line number in the file.
        set_aside: lines between them that are not records.
        first_line: the number of the block's first line.
        data: the block's bytes.
    """

    arrays: list[Array]
    lines: NDArray[np.int64]
    set_aside: list[SetAside]
    first_line: int
    data: bytes

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """The lines with these numbers, as in the file."""
        if not numbers:
            return {}
        lines = self.data.split(b"\n")
        return {
            number: lines[number - self.first_line].rstrip(b"\r").decode(errors="backslashreplace")
            for number in numbers
        }


class CsvFile:
    """One TLC CSV file, plain or compressed.

    Attributes:
        path: the file.
        header: its column names as written.
        names: their places in `trips`.

    Raises:
        IngestError: the file cannot be read, is empty, or none of its columns is one of TLC's.
    """

    def __init__(self, path: Path, block_bytes: int = BLOCK_BYTES) -> None:
        """Read the header."""
        self.path = path
        self._block_bytes = block_bytes
        try:
            self._raw: Any = arrow.OSFile(str(path))
            self._stream: Any = arrow.input_stream(self._raw, compression=_compression(path))
        except OSError as error:
            raise IngestError(f"cannot open: {error}", path) from error
        self._position = 0
        self._blocks = self._read_blocks()
        self._first = next(self._blocks, b"")
        head, _, rest = self._first.partition(b"\n")
        self._line = 1
        while rest and not head.strip(b"\xef\xbb\xbf \r"):
            head, _, rest = rest.partition(b"\n")
            self._line += 1
        text = head.decode("utf-8-sig", errors="replace").rstrip("\r")
        if not text.strip():
            raise IngestError("empty: no header line", path)
        self._first = rest
        self._line += 1
        self._delimiter = max(_DELIMITERS, key=text.count)
        self.header = text.split(self._delimiter)
        while self.header and not fold_header(self.header[-1]):
            self.header.pop()  # names end here; the fields below must be empty like any surplus
        self.names: NameMap = map_names(self.header, path)
        self._width = max(len(self.header), self._first_width())

    @property
    def bytes_read(self) -> int:
        """Bytes taken from the file so far, as it is on disk."""
        return self._position

    def blocks(self) -> Iterator[CsvBlock]:
        """The file's records in order, once.

        Raises:
            IngestError: the file cannot be read to its end.
        """
        with self._stream:
            if self._first:
                yield self._parse(self._first)
            for data in self._blocks:
                yield self._parse(data)

    def _read_blocks(self) -> Iterator[bytes]:
        """The file in pieces that end where a line does."""
        rest = b""
        while True:
            try:
                piece = self._stream.read(self._block_bytes)
                self._position = self._raw.tell()
            except (OSError, pa.ArrowException) as error:
                raise IngestError(f"cannot read on: {error}", self.path) from error
            if not piece:
                break
            end = piece.rfind(b"\n") + 1
            if end:
                yield rest + piece[:end]
                rest = piece[end:]
            else:
                rest += piece
            if len(rest) > max(LONGEST_LINE, self._block_bytes):
                raise IngestError(f"not a CSV file: {len(rest):,} bytes without a line end", self.path)
        if rest:
            yield rest

    def _first_width(self) -> int:
        """Fields in the first line that is not blank: most files have one number of fields throughout."""
        for line in self._first.split(b"\n", 8)[:8]:
            if line.strip():
                return line.count(self._delimiter.encode()) + 1
        return 0

    def _parse(self, data: bytes) -> CsvBlock:
        first_line = self._line
        self._line += data.count(b"\n")
        lines = first_line + _lines_with_text(data)
        if not len(lines):
            return CsvBlock(self._no_rows(), lines, [], first_line, data)
        # A lone CR ends a record for Arrow's parser, and could make up for a line that a quote swallowed.
        plain = data.count(b"\r") == data.count(b"\r\n")
        arrays = self._arrow(data, len(lines), as_text=False) if plain else None
        set_aside: list[SetAside] = []
        if arrays is None:
            numbered = enumerate(data.split(b"\n"), first_line)
            sifted = sift(numbered, self._delimiter, len(self.header), self._width)
            set_aside, lines = sifted.set_aside, np.array(sifted.lines, np.int64)
            if len(lines):
                arrays = self._arrow(sifted.data, len(lines), as_text=False)
                if arrays is None:
                    arrays = self._arrow(sifted.data, len(lines), as_text=True)
                assert arrays is not None, "sifted lines hold the expected fields, and text is always text"
            else:
                arrays = self._no_rows()
        return CsvBlock(arrays, lines, set_aside, first_line, data)

    def _no_rows(self) -> list[Array]:
        return [arrow.nulls(0)] * len(self.header)

    def _arrow(self, data: bytes, rows: int, *, as_text: bool) -> list[Array] | None:
        """All columns by Arrow's parser, or None where it does not find exactly `rows` good records."""
        types = self._types(as_text)
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                read_options=arrow_csv.ReadOptions(
                    column_names=[str(place) for place in range(self._width)], block_size=len(data) + 1
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=list(NULL_TEXTS),
                    strings_can_be_null=True,
                    timestamp_parsers=[arrow_csv.ISO8601, *PORTAL_TIMES],
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != rows:
            return None
        found = {name: table[name].combine_chunks() for name in types}
        if any(found[str(place)].null_count != rows for place in range(len(self.header), self._width)):
            return None
        return [found.get(str(place), arrow.nulls(rows)) for place in range(len(self.header))]

    def _types(self, as_text: bool) -> dict[str, pa.DataType]:
        """Arrow types by column number, for the columns that `trips` has and those that must be empty."""
        word = pa.dictionary(pa.int32(), pa.string())
        by_kind: dict[Kind, pa.DataType] = {Kind.TIME: pa.timestamp("us"), Kind.AMOUNT: pa.float64()}
        types: dict[str, pa.DataType] = {}
        for name, places in self.names.positions.items():
            for place in places:
                typed = by_kind.get(BY_NAME[name].kind, word)
                types[str(place)] = pa.string() if as_text else typed
        for place in range(len(self.header), self._width):
            types[str(place)] = pa.string()
        return types


def _compression(path: Path) -> str | None:
    """By the file's first bytes: copies are not always named after what they are."""
    with path.open("rb") as file:
        start = file.read(4)
    for magic, name in ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\x28\xb5\x2f\xfd", "zstd")):
        if start.startswith(magic):
            return name
    return None


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
