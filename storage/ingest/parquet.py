"""Parquet files, a row group at a time and a row group a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from bamquery.errors import IngestError
from bamquery.storage.file_access import open_arrow
from bamquery.storage.ingest.failures import READ_ERRORS, unreadable
from bamquery.storage.ingest.formats import read_start
from bamquery.storage.ingest.source import BATCH_BYTES, BATCH_ROWS, Chunk, readable
from bamquery.storage.types import DataType

_MAGIC: Final = b"PAR1"
_ENCRYPTED_MAGIC: Final = b"PARE"
_READ_BUFFER: Final = 1 << 20
_FEWEST_ROWS: Final = 1 << 10


class ParquetPart:
    """One Parquet file. INT96 timestamps are read in microseconds, as DuckDB and Spark do.

    Column chunks are read through a buffer instead of whole, so memory does not grow with row groups, and
    with plain reads instead of a mapping, so a file that is truncated meanwhile is an error.
    """

    is_text: Final = False

    def __init__(self, path: Path, name: str) -> None:
        """Read the footer.

        Raises:
            IngestError: not a Parquet file, or one whose footer is damaged.
        """
        self.path = path
        self.name = name
        start = read_start(path, len(_MAGIC))
        if start == _ENCRYPTED_MAGIC:
            raise IngestError("is an encrypted Parquet file, which BamQuery cannot decrypt", path)
        if start != _MAGIC:
            raise IngestError(f"is not a Parquet file: it starts with {start!r} instead of {_MAGIC!r}", path)
        try:
            self.bytes = path.stat().st_size
            with self._open() as file:
                self.schema = readable(file.schema_arrow)
                self.rows: int = file.metadata.num_rows
                self._groups: int = file.metadata.num_row_groups
        except READ_ERRORS as error:
            raise unreadable(path, error, "footer (the file may be truncated)") from error

    def read(self, columns: Sequence[int], types: Sequence[DataType]) -> Iterator[Chunk]:
        """See `Part.read`; only the pages of these columns are read."""
        del types
        try:
            file = self._open()
        except READ_ERRORS as error:
            raise unreadable(self.path, error) from error
        with file:
            for group in range(self._groups):
                yield from self._read_group(file, group, columns)

    def _read_group(self, file: pq.ParquetFile, group: int, columns: Sequence[int]) -> Iterator[Chunk]:
        names = list(dict.fromkeys(self.schema.names[i] for i in columns))
        first_row = 1
        bytes_per_row = self.bytes / max(self.rows, 1)
        try:
            batches = file.iter_batches(
                batch_size=_batch_rows(file.metadata.row_group(group), names),
                row_groups=[group],
                columns=names,
            )
            for batch in batches:
                wanted = batch.select([self._place(batch, column) for column in columns])
                size = int(bytes_per_row * batch.num_rows)
                yield Chunk(wanted, f"row group {group}", first_row, size, group)
                first_row += batch.num_rows
        except READ_ERRORS as error:
            raise self._explain(error, group, names) from error
        if first_row - 1 != (expected := file.metadata.row_group(group).num_rows):
            raise IngestError(
                f"row group {group}: has {first_row - 1} rows where the footer says {expected}", self.path
            )

    def _place(self, batch: pa.RecordBatch, column: int) -> int:
        """Where a batch has a column: of those of one name all come, in the file's order among themselves."""
        name = self.schema.names[column]
        return int(batch.schema.get_all_field_indices(name)[self.schema.names[:column].count(name)])

    def _explain(self, error: Exception, group: int, names: list[str]) -> IngestError:
        """Name the column by reading each alone: Arrow says what is wrong with a page, not whose it is."""
        place = f"row group {group}"
        for name in names:
            try:
                with self._open() as file:
                    for _ in file.iter_batches(row_groups=[group], columns=[name], use_threads=False):
                        pass
            except READ_ERRORS as column_error:
                return unreadable(self.path, column_error, f'{place}, column "{name}"')
        return unreadable(self.path, error, place)

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(
            open_arrow(self.path),
            memory_map=False,
            pre_buffer=False,
            buffer_size=_READ_BUFFER,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )


def _batch_rows(group: pq.RowGroupMetaData, names: list[str]) -> int:
    """Rows of a batch such that wide ones stay small in bytes."""
    wanted = set(names)
    columns = (group.column(i) for i in range(group.num_columns))
    size = sum(c.total_uncompressed_size for c in columns if c.path_in_schema in wanted)
    rows = BATCH_BYTES * max(group.num_rows, 1) // max(size, 1)
    return min(max(rows, _FEWEST_ROWS), BATCH_ROWS)
