"""Rows of files that are not BamQuery's, read end to end by their format's own reader."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Generic

import pyarrow as pa

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Frame
from bamquery.engine.operators.operator import Operator
from bamquery.engine.operators.scan_predicates import conjunction, rebase
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import FileScanProfile
from bamquery.engine.sources import FileSource
from bamquery.plan.expressions import referenced_columns
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Scan


class FileScan(Operator[Frame], Generic[Frame]):
    """Reads the columns that are wanted and filters them on all threads; frames come in the files' order."""

    def __init__(self, scan: Scan, files: FileSource) -> None:
        shown = {"columns": ", ".join(files.schema.field(column).name for column in scan.columns)}
        if scan.predicates:
            shown["filter"] = " AND ".join(map(format_expression, scan.predicates))
        self._source = files.source
        self._position = FileScanProfile(
            "File scan",
            shown,
            source=files.name,
            rows_total=files.source.total_rows,
            bytes_total=files.source.total_bytes,
        )
        super().__init__(scan.fields, (), self._position)
        self._wanted = sorted({*scan.columns, *referenced_columns(*scan.predicates)})
        self._outputs = [self._wanted.index(column) for column in scan.columns]
        self._predicate = rebase(conjunction(scan.predicates), self._wanted) if scan.predicates else None

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame a batch of the source."""

        def read(batch: pa.RecordBatch) -> Frame:
            frame = context.device.from_arrow(batch)
            if self._predicate is not None:
                frame = context.device.filter(frame, self._predicate)
            return context.device.select(frame, self._outputs)

        names = [self._source.schema.field(column).name for column in self._wanted]
        batches = self._counted(names)
        frames = ordered_map(context, read, batches, threads=context.settings.effective_threads)
        try:
            yield from frames
        finally:
            frames.close()
            batches.close()

    def _counted(self, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        """The source's batches; the profile says how many rows and bytes they are."""
        batches = self._source.batches(names)
        try:
            for batch in batches:
                self._position.rows_scanned += batch.num_rows
                self._position.bytes_scanned = self._source.bytes_read
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()
