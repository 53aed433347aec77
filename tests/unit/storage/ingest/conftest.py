"""What the tests of ingest share: a source as a table, and a table's writer that only keeps rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.storage.ingest.sources.source import BATCH_ROWS, Chunk, IngestSource


@pytest.fixture
def rows_of() -> Callable[..., pa.Table]:
    """All rows of a source, after a check that it keeps its promises about batches."""

    def read(source: IngestSource, columns: Sequence[str] | None = None) -> pa.Table:
        batches = list(source.batches(columns))
        assert all(0 < batch.num_rows <= BATCH_ROWS for batch in batches)
        schema = source.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        assert all(batch.schema == schema for batch in batches)
        table = pa.Table.from_batches(batches, schema)
        table.validate(full=True)
        return table

    return read


@dataclass
class HeapWriter:
    """The part of TableWriter that `ingest` uses."""

    schema: pa.Schema
    batches: list[pa.RecordBatch] = field(default_factory=list)

    def write(self, batch: pa.RecordBatch) -> None:
        assert batch.schema == self.schema
        self.batches.append(batch)

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, self.schema)


@pytest.fixture
def heap_writer() -> type[HeapWriter]:
    return HeapWriter


@dataclass
class TableReader:
    """A reader over a table in memory, as `SourceReader`."""

    name: str
    table: pa.Table
    path: Path | None = None
    is_text: bool = False

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def rows(self) -> int:
        return self.table.num_rows

    @property
    def bytes(self) -> int:
        return self.table.nbytes

    def read(self, columns: Sequence[int], types: Sequence[pa.DataType], batch_bytes: int) -> Iterator[Chunk]:
        first = 1
        for batch in self.table.to_batches(max_chunksize=1000):
            yield Chunk(batch.select(list(columns)), "", first, batch.nbytes)
            first += batch.num_rows


@pytest.fixture
def table_reader() -> type[TableReader]:
    return TableReader
