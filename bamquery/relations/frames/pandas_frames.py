"""An answer as pandas' frame, under types that depend on the query only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bamquery.relations.frames.frame_options import Decimals, HugeInts
from bamquery.relations.frames.host_columns import host_column, is_python_values, objects
from bamquery.text.identifiers import unique_names

if TYPE_CHECKING:
    import pandas


def pandas_frame(table: pa.Table, hugeint: HugeInts, decimals: Decimals) -> pandas.DataFrame:
    """The table's rows; see `RelationFrames.to_pandas`. pandas is there.

    Raises:
        ExecutionError: a value is beyond what its new type holds.
    """
    import pandas  # noqa: PLC0415 (slow to import, and not needed otherwise)

    names = unique_names(table.schema.names)
    columns = [
        host_column(name, column, hugeint, decimals)
        for name, column in zip(names, table.columns, strict=True)
    ]
    as_objects = {
        place: objects(names[place], column)
        for place, column in enumerate(columns)
        if is_python_values(column.type)
    }
    plain = [
        pa.nulls(table.num_rows, pa.bool_()) if place in as_objects else column
        for place, column in enumerate(columns)
    ]

    def kind(arrow: pa.DataType) -> Any:
        if pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
            return _nullable(pandas, arrow)
        if pa.types.is_decimal(arrow) and decimals == "arrow":
            return pandas.ArrowDtype(arrow)
        return None

    frame: pandas.DataFrame = pa.table(plain, names=names).to_pandas(types_mapper=kind)
    for place, values in as_objects.items():
        frame.isetitem(place, pandas.Series(values, dtype=object))
    for place, column in enumerate(columns):
        if pa.types.is_dictionary(column.type) and not len(frame.iloc[:, place].cat.categories):
            none = pandas.Index(["text"])[:0]  # of the type that strings have, not of objects
            frame.isetitem(place, frame.iloc[:, place].cat.set_categories(none))
    return frame


def _nullable(pandas: Any, kind: pa.DataType) -> Any:
    """Pandas' own type with a mask: without it a single null would make floats of integers."""
    if pa.types.is_boolean(kind):
        return pandas.BooleanDtype()
    sign = "Int" if pa.types.is_signed_integer(kind) else "UInt"
    return getattr(pandas, f"{sign}{kind.bit_width}Dtype")()
