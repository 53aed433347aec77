"""A relation's rows as other libraries' frames, arrays and tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from bamquery.driver.compile.toolchain import INSTALL
from bamquery.relations.base import RelationBase
from bamquery.relations.frames.batch_sizes import batches_of
from bamquery.relations.frames.frame_options import Decimals, HugeInts, require_choice
from bamquery.relations.frames.gpu_results import cudf_frame, device_arrays, require_gpu
from bamquery.relations.frames.optional_libraries import require
from bamquery.relations.frames.python_values import python_rows, require_polars_types, whole_number
from bamquery.session.result import Result
from bamquery.text.identifiers import unique_names

if TYPE_CHECKING:
    import cudf
    import cupy
    import pandas
    import polars
    import torch

    from bamquery.relations.frames.host_arrays import Array

# What converts is imported where it is asked for: a first SELECT waits for none of it (PLC0415).


class RelationFrames(RelationBase):
    """`to_arrow` and its like; each is a run of its own. docs/python/frames.md has what each type becomes."""

    def to_batches(self, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Batches as they come, none of them empty; the whole answer is never in memory.

        Closing the iterator, or leaving it to be garbage collected, stops the query.

        Args:
            rows: of each batch but the last one; None: as many as the query makes at once.

        Raises:
            TypeError: `rows` is no whole number. ValueError: it is less than 1.
        """
        if rows is not None and whole_number(rows, "rows") < 1:
            raise ValueError("rows is 1 or more")
        return _batches(self.run(), rows)

    def to_arrow(self) -> pa.Table:
        """All rows."""
        with self.run() as result:
            return result.table()

    def to_pandas(self, *, hugeint: HugeInts = "float64", decimals: Decimals = "float") -> pandas.DataFrame:
        """All rows as a frame of pandas; the types follow from the columns' types, never from the values.

        Integers and booleans are pandas' nullable ones (`Int64`, `boolean`), dates `datetime64[us]`,
        intervals `timedelta64[us]` whose months have 30 days, dictionaries of strings categories. BLOB and
        TIME are objects (24:00:00 is text). A name that comes again gets `_1`, `_2`, ….

        Args:
            hugeint: `float64`; `int64` (as `Int64`), which raises where a value does not fit; `object` for
                Python's int. DECIMAL(38,0) is HUGEINT.
            decimals: what DECIMAL becomes: `float` (float64), `decimal` (objects), or `arrow`
                (`pandas.ArrowDtype`).

        Raises:
            BamQueryError: pandas is not installed. ExecutionError: a date or interval is too far away for
                microseconds, or a HUGEINT too large; names the column.
        """
        require_choice(hugeint, get_args(HugeInts), "hugeint")
        require_choice(decimals, get_args(Decimals), "decimals")
        require("pandas", "to_pandas()")
        from bamquery.relations.frames.pandas_frames import pandas_frame  # noqa: PLC0415

        return pandas_frame(self.to_arrow(), hugeint, decimals)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a frame of polars. A name that comes again gets `_1`, `_2`, ….

        Raises:
            BamQueryError: polars is not installed, or has no such type. ExecutionError: a time of day is
                24:00:00.
        """
        library = require("polars", "to_polars()")
        from bamquery.relations.frames.host_columns import has_end_of_day, unreadable_days  # noqa: PLC0415

        require_polars_types(self._fields)
        table = self.to_arrow()
        for field, column in zip(table.schema, table.columns, strict=True):
            if pa.types.is_time(field.type) and has_end_of_day(column):
                raise unreadable_days(field.name)
        frame: polars.DataFrame = library.from_arrow(table.rename_columns(unique_names(table.schema.names)))
        return frame

    def to_numpy(self, *, hugeint: HugeInts = "float64", decimals: Decimals = "float") -> dict[str, Array]:
        """Columns by name as NumPy's arrays, masked arrays where they hold nulls.

        Their dtypes follow from the columns' types: numbers are as they are, dates and times
        `datetime64`, intervals `timedelta64[us]`, strings, BLOB and TIME objects. The arrays are the
        caller's own. A name that comes again gets `_1`, `_2`, ….

        Args:
            hugeint: as `to_pandas`.
            decimals: `float` or `decimal`.

        Raises:
            ExecutionError: as `to_pandas`.
        """
        require_choice(hugeint, get_args(HugeInts), "hugeint")
        require_choice(decimals, ("float", "decimal"), "decimals")
        from bamquery.relations.frames.host_arrays import numpy_arrays  # noqa: PLC0415

        return numpy_arrays(self.to_arrow(), hugeint, decimals)

    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows as dicts of Python values, which are those of `fetchall`.

        A name that comes again gets `_1`, `_2`, ….
        """
        names = unique_names(self.columns)
        with self.run() as result, result.running.call():
            return [dict(zip(names, row, strict=True)) for batch in result for row in python_rows(batch)]

    def to_cudf(self) -> cudf.DataFrame:
        """All rows as cuDF's frame, over the GPU memory that they were computed in.

        Raises:
            BamQueryError: the query does not run on a GPU, or cuDF is not installed or has no such type.
        """
        with self.run() as result:
            require_gpu(result.profile.device, result.profile.notes, "to_cudf()")
            require("cudf", "to_cudf()", INSTALL)
            return cudf_frame(*result.device_frame(), self._fields)

    def to_cupy(self) -> dict[str, cupy.ndarray]:
        """Columns by name as CuPy's arrays, without a copy; dates and timestamps are their counts.

        Raises:
            BamQueryError: the query does not run on a GPU, CuPy is not installed, or a column has nulls or
                is no array.
        """
        from bamquery.relations.frames.host_arrays import require_array_types  # noqa: PLC0415

        with self.run() as result:
            require_gpu(result.profile.device, result.profile.notes, "to_cupy()")
            library = require("cupy", "to_cupy()", INSTALL)
            require_array_types(self._fields, "to_cudf()")
            arrays = device_arrays(*result.device_frame(), self._fields)
        return {name: library.asarray(array) for name, array in arrays.items()}

    def to_torch(self) -> dict[str, torch.Tensor]:
        """Columns by name as torch's tensors on the device that the query runs on.

        On a GPU they are over the memory that the columns were computed in; on the CPU they have been
        copied once, as what the engine reads may be mapped files, and tensors can be written to. Dates
        and times are their counts. A name that comes again gets `_1`, `_2`, ….

        Raises:
            BamQueryError: torch is not installed, or a column has nulls or is no array.
        """
        library = require("torch", "to_torch()")
        from bamquery.relations.frames.host_arrays import host_tensors, require_array_types  # noqa: PLC0415

        with self.run() as result:
            on_gpu = result.profile.device.startswith("cuda")
            require_array_types(self._fields, "to_cudf()" if on_gpu else "to_numpy()")
            if not on_gpu:
                return host_tensors(library, result.table())
            device, frame = result.device_frame()
            arrays = device_arrays(device, frame, self._fields)
        return {name: library.as_tensor(array, device=device.name) for name, array in arrays.items()}

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, for whatever takes Arrow streams: `polars.DataFrame(rel)`, `con.load("t", rel)`.

        Where another schema is asked for, columns are cast to it; one that cannot be raises.
        """
        reader: Any = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Names and types, for who wants to know them before asking for rows."""
        return self.schema.__arrow_c_schema__()


# Not methods: generators that knew their relation would keep it, and the versions it holds, from being freed.


def _batches(result: Result, rows: int | None) -> Iterator[pa.RecordBatch]:
    with result:
        yield from result if rows is None else batches_of(result, rows)
