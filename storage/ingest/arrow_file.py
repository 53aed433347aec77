"""Arrow IPC files and streams on disk (`.arrow`, `.feather`, `.ipc`), checked before anything uses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.storage.ingest.failures import READ_ERRORS, reason, unreadable
from bamquery.storage.ingest.formats import read_start
from bamquery.storage.ingest.source import Chunk
from bamquery.storage.types import DataType

_FILE_MAGIC: Final = b"ARROW1"
_FEATHER_V1_MAGIC: Final = b"FEA1"


class ArrowFilePart:
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
            with self._open([]) as reader:
                self.schema: pa.Schema = reader.schema
        except READ_ERRORS as error:
            what = "stream" if self._is_stream else "file"
            raise IngestError(
                f"is not an Arrow IPC {what}, or a damaged or truncated one: {reason(error)}", path
            ) from error

    def read(self, columns: Sequence[int], types: Sequence[DataType]) -> Iterator[Chunk]:
        """See `Part.read`."""
        del types
        # Arrow takes no columns to mean all; one is enough to learn how many rows there are.
        wanted = sorted(set(columns)) or [0]
        names = [self.schema.names[i] for i in columns]
        number = 0
        try:
            with self._open(wanted) as reader:
                for number, (batch, size) in enumerate(self._batches(reader)):
                    self._validate(batch, number)
                    yield Chunk(batch.select(names), f"record batch {number}", 1, size)
        except READ_ERRORS as error:
            raise unreadable(self.path, error, f"after record batch {number}" if number else "") from error

    def _batches(
        self, reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        if isinstance(reader, pa.RecordBatchFileReader):
            count = reader.num_record_batches
            for i in range(count):
                yield reader.get_batch(i), self.bytes // count
        else:
            for batch in reader:
                yield batch, batch.nbytes

    def _validate(self, batch: pa.RecordBatch, number: int) -> None:
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            try:
                array.validate(full=True)
            except pa.ArrowException as error:
                raise unreadable(self.path, error, f'record batch {number}, column "{name}"') from error

    @contextmanager
    def _open(self, columns: list[int]) -> Iterator[pa.RecordBatchFileReader | pa.RecordBatchStreamReader]:
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        with pa.OSFile(str(self.path), "rb") as file:
            if self._is_stream:
                yield pa.ipc.open_stream(file, options=options)
            else:
                yield pa.ipc.open_file(file, options=options)
