"""Arrow IPC files and streams on disk (`.arrow`, `.feather`, `.ipc`), checked before anything uses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.storage.database.file_access import open_arrow
from bamquery.storage.format.array_validation import validate
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.arrow import slices as arrow_slices
from bamquery.storage.ingest.arrow.slices import Array, BatchBlock, LargeBatch
from bamquery.storage.ingest.sources.failures import READ_ERRORS, reason, unreadable
from bamquery.storage.ingest.sources.formats import read_start
from bamquery.storage.ingest.sources.source import BATCH_BYTES, Chunk, readable

_FILE_MAGIC: Final = b"ARROW1"
_FEATHER_V1_MAGIC: Final = b"FEA1"
_LARGE_BATCHES: Final = 4
"""Times that a record batch is larger than a batch should be from which on it is read in slices."""


class ArrowFileReader:
    """One Arrow IPC file, of the file or the stream format.

    A file from outside may say anything, so each batch is validated in full: a wrong offset or index is an
    error here and not a crash later. It is read, not mapped: truncating it meanwhile is an error, not SIGBUS.
    """

    is_text: Final = False
    rows: Final = None

    def __init__(self, path: Path, name: str) -> None:
        """Read the schema.

        Raises:
            IngestError: not an Arrow IPC file, or one whose schema is damaged.
        """
        self.path = path
        self.name = name
        start = read_start(path)
        if start.startswith(_FEATHER_V1_MAGIC):
            raise IngestError(
                "is of Feather's first version, which is not Arrow: write it anew with pandas",
                path,
            )
        self._is_stream = not start.startswith(_FILE_MAGIC)
        try:
            self.bytes = path.stat().st_size
            with open_arrow(path) as file:
                reader = pa.ipc.open_stream(file) if self._is_stream else pa.ipc.open_file(file)
                self.schema = readable(reader.schema)
        except READ_ERRORS as error:
            what = "stream" if self._is_stream else "file"
            raise IngestError(
                f"is not an Arrow IPC {what}, or a damaged or truncated one: {reason(error)}", path
            ) from error

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """See `SourceReader.read`."""
        del types
        # Arrow takes no columns to mean all; one is enough to learn how many rows there are.
        wanted = sorted(set(columns)) or [0]
        places = [wanted.index(i) for i in columns]
        number, first_row = -1, 1
        try:
            for batch, found, size in (
                self._read_stream(wanted) if self._is_stream else self._read_file(wanted, batch_bytes)
            ):
                if found != number:
                    number, first_row = found, 1
                # Nothing may look into a batch before this, not even to ask for its size.
                self._validate(batch, number)
                yield Chunk(batch.select(places), f"record batch {number}", first_row, size)
                first_row += batch.num_rows
        except READ_ERRORS as error:
            place = f"after record batch {number}" if number >= 0 else "record batch 0"
            raise unreadable(self.path, error, place) from error

    def _read_stream(self, columns: list[int]) -> Iterator[tuple[pa.RecordBatch, int, int]]:
        """Batches, their numbers, and bytes of the file read for each."""
        with open_arrow(self.path) as file:
            position = 0
            for number, batch in enumerate(pa.ipc.open_stream(file, options=_read_only_columns(columns))):
                yield batch, number, file.tell() - position
                position = file.tell()

    def _read_file(self, columns: list[int], batch_bytes: int) -> Iterator[tuple[pa.RecordBatch, int, int]]:
        """As `_read_stream`; but large batches come in slices, which then share a number."""
        with open_arrow(self.path) as file, self.path.open("rb", buffering=0) as slice_file:
            reader = pa.ipc.open_file(file, options=_read_only_columns(columns))
            blocks = _blocks(slice_file.fileno())
            share = self.bytes // max(reader.num_record_batches, 1)
            for number in range(reader.num_record_batches):
                large = None
                if number < len(blocks) and blocks[number].body_length > _LARGE_BATCHES * batch_bytes:
                    large = self._large(slice_file.fileno(), blocks[number])
                if large is None:
                    yield reader.get_batch(number), number, share
                else:
                    rows = large.rows * batch_bytes // blocks[number].body_length
                    for batch in self._slices(large, number, columns, rows):
                        yield batch, number, share * batch.num_rows // large.rows

    def _large(self, descriptor: int, block: BatchBlock) -> LargeBatch | None:
        try:
            return LargeBatch(descriptor, block, self.schema)
        except NotImplementedError:
            return None

    def _slices(
        self, large: LargeBatch, number: int, columns: list[int], at_once: int
    ) -> Iterator[pa.RecordBatch]:
        # A column that cannot be sliced is read whole: less than all columns, and dictionaries come with it.
        whole = {column: self._column(number, column) for column in columns if not large.can_slice(column)}
        for first, rows in arrow_slices.slices(large.rows, at_once):
            arrays = [
                whole[column].slice(first, rows) if column in whole else large.read(column, first, rows)
                for column in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, [self.schema.names[column] for column in columns])

    def _column(self, number: int, column: int) -> Array:
        with open_arrow(self.path) as file:
            batch = pa.ipc.open_file(file, options=_read_only_columns([column])).get_batch(number)
        self._validate(batch, number)
        return batch.column(0)

    def _validate(self, batch: pa.RecordBatch, number: int) -> None:
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            try:
                validate(array)
            except pa.ArrowException as error:
                raise unreadable(self.path, error, f'record batch {number}, column "{name}"') from error


def _read_only_columns(columns: list[int]) -> pa.ipc.IpcReadOptions:
    return pa.ipc.IpcReadOptions(included_fields=columns)


def _blocks(descriptor: int) -> list[BatchBlock]:
    try:
        return arrow_slices.blocks(descriptor)
    except NotImplementedError:
        return []
