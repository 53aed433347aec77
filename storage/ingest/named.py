"""A file with its path as a column behind its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.naming import fold
from bamquery.storage.ingest.source import Chunk, Part
from bamquery.storage.types import DataType

FILENAME: Final = "filename"


class NamedPart:
    """A part with a last column `filename`: its name. Satisfies `Part`."""

    def __init__(self, part: Part) -> None:
        """Add the column.

        Raises:
            IngestError: the file has one of that name, or its own name is no text.
        """
        try:
            part.name.encode()
        except UnicodeEncodeError as error:
            raise IngestError(
                f'its name is not UTF-8, which column "{FILENAME}" is: rename the file, or do without',
                part.path,
            ) from error
        self._part = part
        self.name = part.name
        self.path: Path | None = part.path
        self.rows = part.rows
        self.bytes = part.bytes
        self.is_text = part.is_text
        if any(fold(name) == FILENAME for name in part.schema.names):
            raise IngestError(f'has a column "{FILENAME}" of its own', part.path)
        self.schema: pa.Schema = part.schema.append(pa.field(FILENAME, pa.large_string()))

    def read(self, columns: Sequence[int], types: Sequence[DataType]) -> Iterator[Chunk]:
        """See `Part.read`."""
        last = len(self.schema) - 1
        own = [(column, type_) for column, type_ in zip(columns, types, strict=True) if column != last]
        # One column is enough to learn how many rows there are.
        read = own or [(0, self.schema.field(0).type)]
        for chunk in self._part.read([column for column, _ in read], [type_ for _, type_ in read]):
            path: pa.Array[Any] = pa.repeat(pa.scalar(self.name, pa.large_string()), chunk.batch.num_rows)
            arrays = iter(chunk.batch.columns)
            wanted = [path if column == last else next(arrays) for column in columns]
            batch = chunk.batch.select([])
            if wanted:
                batch = pa.RecordBatch.from_arrays(wanted, [str(i) for i in range(len(wanted))])
            yield Chunk(batch, chunk.place, chunk.first_row, chunk.bytes)
