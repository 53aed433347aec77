"""Python objects that hold or stream Arrow data: pyarrow's own, pandas, polars, anything with a PyCapsule."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import BamQueryError, IngestError
from bamquery.storage.format.array_validation import validate
from bamquery.storage.format.storable_types import POLARS_OBJECT, DataType
from bamquery.storage.ingest.sources.column_names import names_in_object
from bamquery.storage.ingest.sources.failures import READ_ERRORS, reason
from bamquery.storage.ingest.sources.source import BATCH_BYTES, BATCH_ROWS, Chunk, readable

_DATASET_READAHEAD: Final = 2
_SPENT: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Readers that a pass was begun over: pyarrow's give no rows in a second one, and no error either."""
_SPENT_LOCK: Final = threading.Lock()


class StreamReader:
    """Batches of one schema, from a function that starts a pass over them, given the columns wanted.

    Columns are wanted by their places, since several may have one name.
    """

    path: Final = None
    is_text: Final = False

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        start: Callable[[list[int]], Iterator[pa.RecordBatch]],
        *,
        rows: int | None = None,
        size: int | None = None,
        once: pa.RecordBatchReader | None = None,
        is_fixed: bool = False,
    ) -> None:
        """`start` is called for every pass, or where there is `once`, for a single one.

        Memory that somebody else filled may say anything, so each batch is validated in full: a wrong offset
        or index is an error here and not a crash later.

        Args:
            name: for messages.
            schema: of the batches.
            start: takes places in the schema; its batches have these columns in this order, or any columns
                where none is wanted: then only their numbers of rows count.
            rows: of one pass, where known.
            size: in bytes, where known as well.
            once: the reader of which a second pass is an error, in whichever statement.
            is_fixed: whether all passes give the same memory, of which one pass's validation is enough.
        """
        self.name = name
        self.schema = readable(schema)
        self.rows = rows
        self.bytes = size
        self._start = start
        self._once = once
        self._is_fixed = is_fixed
        self._validated: frozenset[int] = frozenset()

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """See `SourceReader.read`."""
        del types, batch_bytes
        if self._once is not None:
            _spend(self._once, self.name)
        first_row = 1
        try:
            for batch in self._start(list(columns)):
                if columns:
                    self._validate(batch, columns, first_row)
                size = (self.bytes or 0) * batch.num_rows // max(self.rows or 0, 1)
                yield Chunk(batch if columns else batch.select([]), "", first_row, size)
                first_row += batch.num_rows
            if self._is_fixed:
                self._validated |= frozenset(columns)
        except BamQueryError:
            raise
        except Exception as error:  # whatever the object's own code raises
            raise IngestError(f"{self.name}: failed after {first_row - 1} rows: {reason(error)}") from error

    def _validate(self, batch: pa.RecordBatch, columns: Sequence[int], first_row: int) -> None:
        for place, array in zip(columns, batch.columns, strict=True):
            if place in self._validated:
                continue
            try:
                validate(array)
            except pa.ArrowException as error:
                raise IngestError(
                    f'{self.name}: rows from {first_row}, column "{self.schema.names[place]}": its memory is '
                    f"not what Arrow's format says: {reason(error)}"
                ) from error


def open_object(what: Any) -> StreamReader:
    """The reader that reads a Python object.

    A pandas index is left out, as by pyarrow's `preserve_index=False`: call `reset_index()` to keep it. A
    polars LazyFrame is collected batch by batch, each time it is read.

    Raises:
        IngestError: not such an object, or one whose schema cannot be had.
    """
    try:
        reader = _open_known(what)
        if reader is None:
            reader = _open_capsule(what)
    except READ_ERRORS as error:
        raise IngestError(f"{_kind(what)}: {reason(error)}") from error
    if reader is None:
        raise IngestError(
            f"cannot load {_kind(what)}: give a path or a list of paths, a pyarrow table, batch, reader or "
            "dataset, a pandas or polars frame, or an object with __arrow_c_stream__"
        )
    return reader


def _open_known(what: Any) -> StreamReader | None:
    if isinstance(what, pa.RecordBatch):
        what = pa.Table.from_batches([what])
    if isinstance(what, pa.Table):
        return _table(what, "pyarrow.Table")
    if isinstance(what, pa.RecordBatchReader):
        return _reader(what, "pyarrow.RecordBatchReader")
    if _is_a(what, "pyarrow", "Dataset"):
        return _dataset(what)
    if _is_a(what, "pandas", "DataFrame"):
        return _pandas(what)
    if _is_a(what, "polars", "LazyFrame"):
        return _lazy_frame(what)
    if _is_a(what, "polars", "DataFrame"):
        return _polars(what)
    if _is_a(what, "pandas", "Series") or _is_a(what, "polars", "Series"):
        raise IngestError(f"{_kind(what)}: is a column, not a table: use .to_frame()")
    return None


def _open_capsule(what: Any) -> StreamReader | None:
    if hasattr(what, "__arrow_c_stream__"):
        return _reader(pa.RecordBatchReader.from_stream(what), _kind(what))
    if hasattr(what, "__arrow_c_array__"):
        return _table(pa.Table.from_batches([pa.record_batch(what)]), _kind(what))
    return None


def _reader(reader: pa.RecordBatchReader, name: str) -> StreamReader:
    return StreamReader(
        name, reader.schema, lambda columns: (batch.select(columns) for batch in reader), once=reader
    )


def _spend(reader: pa.RecordBatchReader, name: str) -> None:
    with _SPENT_LOCK:
        if reader in _SPENT:
            raise IngestError(
                f"{name}: a stream can be read only once, and it was: make a new one, "
                "or collect it into a table (pyarrow: reader.read_all()) and use that"
            )
        _SPENT.add(reader)


def _table(table: pa.Table, name: str) -> StreamReader:
    def start(columns: list[int]) -> Iterator[pa.RecordBatch]:
        # Without columns a table forgets how many rows a batch has.
        return iter((table.select(columns) if columns else table).to_batches(max_chunksize=BATCH_ROWS))

    size = table.get_total_buffer_size()
    return StreamReader(name, table.schema, start, rows=table.num_rows, size=size, is_fixed=True)


def _dataset(dataset: Any) -> StreamReader:
    names = dataset.schema.names
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise IngestError(
            f'pyarrow.Dataset: several columns are called "{twice}", and a dataset reads by names: '
            "rename them in the source, or give its files or a pyarrow.Table"
        )

    def start(columns: list[int]) -> Iterator[pa.RecordBatch]:
        # The default reads 16 batches ahead in each of 4 files, which has no bound in bytes.
        scanner = dataset.scanner(
            columns=[names[i] for i in columns] or None,
            batch_size=BATCH_ROWS,
            batch_readahead=_DATASET_READAHEAD,
            fragment_readahead=1,
            use_threads=True,
        )
        return iter(scanner.to_batches())

    return StreamReader("pyarrow.Dataset", dataset.schema, start)


def _pandas(frame: Any) -> StreamReader:
    names = [str(name) for name in frame.columns]
    frame = _densify(frame.set_axis(names_in_object(names), axis="columns"))
    schema = _pandas_schema(frame)

    def start(columns: list[int]) -> Iterator[pa.RecordBatch]:
        # In slices, since the conversion copies.
        chosen = frame.iloc[:, columns] if columns else frame
        wanted = pa.schema([schema.field(i) for i in columns]) if columns else schema
        for first in range(0, len(frame), BATCH_ROWS):
            piece = chosen.iloc[first : first + BATCH_ROWS]
            yield pa.RecordBatch.from_pandas(piece, schema=wanted, preserve_index=False)

    own = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
    return StreamReader("pandas.DataFrame", own, start, rows=len(frame))


def _densify(frame: Any) -> Any:
    """The frame with sparse columns, which Arrow has not, as plain ones."""
    plain = {
        name: kind.subtype for name, kind in frame.dtypes.items() if _is_a(kind, "pandas", "SparseDtype")
    }
    return frame.astype(plain) if plain else frame


def _pandas_schema(frame: Any) -> pa.Schema:
    try:
        return pa.Schema.from_pandas(frame, preserve_index=False).remove_metadata()
    except pa.ArrowException as error:
        for i, name in enumerate(frame.columns):
            try:
                pa.Array.from_pandas(frame.iloc[:, i])
            except pa.ArrowException as column_error:
                raise IngestError(
                    f'pandas.DataFrame: column "{name}" has values of several types: {reason(column_error)}'
                ) from error
        raise


def _polars(frame: Any) -> StreamReader:
    schema = _polars_schema(frame.clear())

    def start(columns: list[int]) -> Iterator[pa.RecordBatch]:
        # In slices, since the conversion copies strings.
        chosen = frame.select([schema.names[i] for i in columns]) if columns else frame
        for piece in chosen.iter_slices(BATCH_ROWS):
            yield from piece.to_arrow().to_batches()

    return StreamReader("polars.DataFrame", schema, start, rows=frame.height, size=frame.estimated_size())


def _lazy_frame(frame: Any) -> StreamReader:
    if not hasattr(frame, "collect_batches"):
        raise IngestError(
            "polars.LazyFrame: this version of polars cannot collect it in batches: "
            "use .collect(), or write it with .sink_parquet() and load that file"
        )

    # An empty frame of the same columns, since polars knows best which Arrow types it will make.
    schema = _polars_schema(frame.clear().collect())

    def start(columns: list[int]) -> Iterator[pa.RecordBatch]:
        chosen = frame.select([schema.names[i] for i in columns]) if columns else frame
        for piece in chosen.collect_batches(chunk_size=BATCH_ROWS):
            yield from piece.to_arrow().to_batches(max_chunksize=BATCH_ROWS)

    return StreamReader("polars.LazyFrame", schema, start)


def _polars_schema(empty: Any) -> pa.Schema:
    """Arrow's types of a frame's columns. Those of Python objects, which polars gives as pointers, say so."""
    objects = {name for name, kind in empty.schema.items() if str(kind) == "Object"}
    return pa.schema(
        [
            field.with_type(POLARS_OBJECT) if field.name in objects else field
            for field in empty.to_arrow().schema
        ]
    )


def _is_a(what: Any, package: str, name: str) -> bool:
    """Whether `what` is an instance of a class of a package that need not be installed."""
    return any(cls.__name__ == name and cls.__module__.split(".")[0] == package for cls in type(what).__mro__)


def _kind(what: Any) -> str:
    cls = type(what)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__.split('.')[0]}.{cls.__name__}"
