"""The load itself: a source's batches, read ahead, into a table's writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import pyarrow as pa

from bamquery.errors import CancelledError, IngestError
from bamquery.storage.ingest.progress import Progress
from bamquery.storage.ingest.sources.source import BATCH_BYTES, IngestSource
from bamquery.text.identifiers import fold_case, suggestion

_READ_AHEAD: Final = 16
"""Part of a memory limit for batches that are read before they are wanted."""
_BATCH: Final = 32
"""Part of it for one batch: some are read and written, and fragments hold on to those they are made of."""
_NO_VALUES: Final[Mapping[str, Any]] = MappingProxyType({})


class RowWriter(Protocol):
    """The part of `TableWriter` that loading needs."""

    @property
    def schema(self) -> pa.Schema:
        """Of the table."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows of exactly this schema."""
        ...


def ingest(
    writer: RowWriter,
    source: IngestSource,
    progress: Progress | None = None,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    missing: Mapping[str, Any] = _NO_VALUES,
    memory_limit: int | None = None,
    relieve: Callable[[], None] = lambda: None,
) -> int:
    """Write all rows of `source` and return how many they were; the commit is the caller's.

    Columns are found by name without regard to case, in any order; those that the source lacks become null
    or what `missing` says, and values go to the table's types where they fit exactly. Reading and decoding
    run on a thread of their own, ahead of the writer.

    Args:
        writer: of the table.
        source: what to load.
        progress: where to show it; by default a bar if standard error is a terminal.
        cancelled: asked after each batch.
        missing: by name, values of columns that the source lacks.
        memory_limit: bytes of which a small part may wait to be written.
        relieve: called after each batch, to give freed memory back where there is much of it.

    Raises:
        IngestError: the source cannot be read, or has a column or value that the table cannot take.
        StorageError: the rows cannot be written.
        CancelledError: `cancelled` said so.
        KeyboardInterrupt: within a second of Ctrl-C.
    """
    # Not before rows are loaded: a program that only asks would pay for it.
    from bamquery.storage.ingest.arrow.convert import convert_batch  # noqa: PLC0415
    from bamquery.storage.ingest.sources.read_ahead import READ_AHEAD_BYTES, ReadAhead  # noqa: PLC0415

    names = _names_in_source(writer.schema, source)
    wanted = [name for name in names if name is not None]
    positions = [None if name is None else wanted.index(name) for name in names]
    ahead = READ_AHEAD_BYTES if memory_limit is None else min(READ_AHEAD_BYTES, memory_limit // _READ_AHEAD)
    batch_bytes = BATCH_BYTES if memory_limit is None else min(BATCH_BYTES, memory_limit // _BATCH)
    rows = 0
    show = (progress or Progress()).show(f"Loading {source.name}", source.total_rows, source.total_bytes)
    with show as report, ReadAhead(source.batches(wanted, batch_bytes=batch_bytes), ahead) as batches:
        for batch in batches:
            if cancelled():
                raise CancelledError(f"loading {source.name} was cancelled after {rows} rows")
            writer.write(
                convert_batch(batch, positions, writer.schema, source.name, rows + 1, missing=missing)
            )
            rows += batch.num_rows
            del batch  # its memory is the writer's to release
            relieve()
            report(rows, source.bytes_read)
    return rows


def _names_in_source(table: pa.Schema, source: IngestSource) -> list[str | None]:
    """For each column of the table, what the source calls it.

    Raises:
        IngestError: the source has a column that the table lacks; names all.
    """
    by_folded = {fold_case(name): name for name in source.schema.names}
    names = [by_folded.pop(fold_case(name), None) for name in table.names]
    if by_folded:
        extra = list(by_folded.values())
        listed = ", ".join(f'"{name}"' for name in extra)
        hint = suggestion(extra[0], table.names) if len(extra) == 1 else ""
        raise IngestError(
            f"{source.name}: the table has no column {listed}.{hint} To load the rest: exclude=[{listed}]"
        )
    return names
