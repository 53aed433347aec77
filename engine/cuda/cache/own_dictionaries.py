"""Columns of few strings, which are dictionaries of their own rows."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.cache.late_columns import Dictionary, Held, LateColumn, RowPlaces, column_of
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.device import Device
from bamquery.plan.nodes import Field
from bamquery.storage.format.storable_types import is_string_like

_FEW_VALUES: Final = 1 << 12
"""Strings of a column that are its dictionary: as many combinations are counted where rows are grouped."""


def as_dictionary(kernels: Kernels, device: Device[CudaFrame], field: pa.Field[Any], column: Held) -> Held:
    """A column of few strings as rows of a dictionary, which is the column itself; others as they are.

    Joins then pass on the strings' numbers, and rows are grouped by these.
    """
    is_dictionary = isinstance(column, LateColumn) and column.dictionary is not None
    if is_dictionary or not is_string_like(field.type) or pa.types.is_dictionary(field.type):
        return column
    values = column_of(column)
    if not 0 < values.size() <= _FEW_VALUES or values.null_count():
        return column
    fields = [Field(field.name, field.type)]
    host = device.to_arrow(make_frame([values], values.size()), fields).column(0)
    return _rows_of(kernels, values, host)


def known_dictionary(kernels: Kernels, column: Held, host: pa.Array[Any]) -> Held:
    """The same for a column whose values are in the host's memory, too."""
    if not is_string_like(host.type) or not 0 < len(host) <= _FEW_VALUES or host.null_count:
        return column
    return _rows_of(kernels, column_of(column), host)


def _rows_of(kernels: Kernels, values: plc.Column, host: pa.Array[Any]) -> LateColumn:
    rows = RowPlaces.run(kernels, 0, values.size(), whole=True)
    return LateColumn(kernels, values, rows, Dictionary(values, host))
