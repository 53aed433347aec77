"""Answers in the types that Ibis says they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from ibis.formats.pandas import PandasData
from ibis.formats.pyarrow import PyArrowData

from bamquery.relations.frames.python_values import python_rows

if TYPE_CHECKING:
    import ibis.expr.schema as sch
    import pandas


def conform_to_schema(table: pa.Table, schema: sch.Schema) -> pa.Table:
    """The columns in Ibis's types: its sums of integers, say, are narrower than BamQuery's.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.
    """
    columns: list[Any] = []
    for column, wanted in zip(table.columns, schema.to_pyarrow().types, strict=True):
        if pa.types.is_null(wanted):
            columns.append(pa.nulls(table.num_rows))
        elif pa.types.is_interval(column.type):
            columns.append(pa.array(_durations(column), wanted))
        else:
            columns.append(column)
    return PyArrowData.convert_table(pa.table(columns, names=table.column_names), schema)


def pandas_frame(table: pa.Table, schema: sch.Schema) -> pandas.DataFrame:
    """The rows as pandas has them."""
    import pandas  # noqa: PLC0415 (only who asks for frames needs it)

    frame = pandas.DataFrame(
        {place: _values(column) for place, column in enumerate(table.columns)}, index=range(table.num_rows)
    )
    frame.columns = pandas.Index(table.column_names)
    return PandasData.convert_table(frame, schema)


def _values(column: pa.ChunkedArray[Any]) -> Any:
    if pa.types.is_interval(column.type):
        return _durations(column)
    # Python's values where there are nulls, so that no integer becomes a float on the way.
    as_list = column.null_count or pa.types.is_dictionary(column.type)
    return column.to_pylist() if as_list else column.to_pandas()


def _durations(column: pa.ChunkedArray[Any]) -> list[Any]:
    batches = pa.table([column], names=["interval"]).to_batches()
    return [value for batch in batches for (value,) in python_rows(batch)]
