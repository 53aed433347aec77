"""Rows of files that are not BamQuery's, read end to end by their format's own reader."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter, column_under_casts
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.scan.file_pruning import files_to_read
from bamquery.engine.profiling.scan_profile import FileScanProfile
from bamquery.engine.sources.scan_predicates import conjunction, rebase
from bamquery.engine.sources.scan_sources import FileSource
from bamquery.plan.expressions import Expression, referenced_columns
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Scan
from bamquery.plan.rewriting import renumber
from bamquery.storage.ingest.sources.source import BATCH_BYTES, DeferredBatch

_LEAST_BATCH: Final = 1 << 20
"""Bytes: where memory is scarce each thread works on a batch, and one costs some time by itself."""


class FileScan(Operator[Frame], Generic[Frame]):
    """Reads the columns that are wanted and filters them on all threads; frames come in the files' order."""

    def __init__(self, scan: Scan, files: FileSource) -> None:
        shown = {"columns": ", ".join(files.schema.field(column).name for column in scan.columns)}
        if scan.predicates:
            shown["filter"] = " AND ".join(map(format_expression, scan.predicates))
        self._source = files.source
        self._files = files_to_read(files.source, scan.predicates)
        self._dynamic_filters: list[tuple[Expression, DynamicFilter]] = []
        self._position = FileScanProfile("File scan", shown, source=files.name)
        self._note(self._files)
        super().__init__(scan.fields, (), self._position)
        self._wanted = sorted({*scan.columns, *referenced_columns(*scan.predicates)})
        self._columns = scan.columns
        place = {column: i for i, column in enumerate(self._wanted)}
        self._outputs = [place[column] for column in scan.columns]
        self._predicate = rebase(conjunction(scan.predicates), self._wanted) if scan.predicates else None

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """Taken where `value` is a column, or a cast of one, that has one value in each file."""
        column = column_under_casts(value)
        if (
            column is None
            or dynamic_filter.moves
            or self._columns[column.index] not in self._source.file_columns
        ):
            return False
        places = {index: self._columns[index] for index in referenced_columns(value)}
        self._dynamic_filters.append((renumber(value, places), dynamic_filter))
        return True

    def _note(self, files: Sequence[int] | None) -> None:
        """Let the profile say how many files are read."""
        count, position = self._source.file_count, self._position
        position.files_total = count
        position.files_read = count if files is None else len(files)
        if count > 1:
            position.details["files"] = f"{position.files_read:,} of {count:,}"
        position.rows_total, position.bytes_total = self._source.totals(files)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame a batch of the source."""
        files = self._files
        conditions = [
            condition.as_expression(value)
            for value, dynamic_filter in self._dynamic_filters
            for condition in dynamic_filter.conditions
        ]
        if conditions:
            files = files_to_read(self._source, conditions, files)
            self._note(files)

        def read(batch: DeferredBatch) -> Frame:
            frame = context.device.from_arrow(batch.load())
            if self._predicate is not None:
                frame = context.device.filter(frame, self._predicate)
            return context.device.select(frame, self._outputs)

        names = [self._source.schema.field(column).name for column in self._wanted]
        batch_bytes = max(int(BATCH_BYTES * context.memory.share), _LEAST_BATCH)
        batches = self._source.deferred_batches(names, files, batch_bytes)
        frames = ordered_map(context, read, self._count(batches), threads=context.stepping_threads)
        try:
            yield from frames
        finally:
            frames.close()
            if isinstance(batches, Generator):
                batches.close()

    def _count(self, batches: Iterator[DeferredBatch]) -> Iterator[DeferredBatch]:
        """The same, each counted when it is read or about to be: its answer may wait for those before."""
        for batch in batches:
            self._position.rows_scanned += batch.rows
            self._position.bytes_scanned += batch.bytes
            yield batch
