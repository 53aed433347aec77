"""Expressions that numpy has no calls for, such as those of texts: computed by Python, a row at a time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    TEXT,
    Column,
    ColumnFunction,
    Columns,
    column_from_arrow,
    is_for_columns,
)
from bamquery.engine.operators.recursion.by_row.expressions import row_function
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError, column_of
from bamquery.plan.expressions import ColumnRef, Expression, walk
from bamquery.plan.rewriting import renumber

_MOST_ROWS: Final = 256
"""For more, operators are faster."""


def row_by_row(expression: Expression, texts: TextCodes) -> ColumnFunction | None:
    """The expression's function, made of that of one row; None: there is none, or it reads no column."""
    columns_read = [part for part in walk(expression) if isinstance(part, ColumnRef)]
    read = sorted({column.index: column.type for column in columns_read}.items())
    function = row_function(renumber(expression, {place: new for new, (place, _) in enumerate(read)}))
    if function is None or not read or not all(is_for_columns(kind) for _, kind in read):
        return None

    def compute(columns: Columns) -> Column:
        if len(columns[read[0][0]].values) > _MOST_ROWS:
            raise LeftToDeviceError
        lists = [_values(columns[place], kind, texts) for place, kind in read]
        values = [function(row) for row in zip(*lists, strict=True)]
        if expression.type == TEXT:
            return _text_column(values, texts)
        return column_from_arrow(column_of(values, expression.type), texts)

    return compute


def _values(column: Column, kind: pa.DataType, texts: TextCodes) -> list[Any]:
    values = texts.to_list(column.values) if kind == TEXT else column.values.tolist()
    if column.valid is None:
        return values
    return [value if valid else None for value, valid in zip(values, column.valid.tolist(), strict=True)]


def _text_column(values: list[str | None], texts: TextCodes) -> Column:
    valid = np.array([value is not None for value in values])
    codes = texts.codes_of_computed(values)
    return Column(codes, None if valid.all() else valid, 0, max(len(texts) - 1, 0))
