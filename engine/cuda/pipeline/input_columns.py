"""Columns of a frame as programs' kernels load them; rows of late columns are loaded from where they are."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.cache.late_columns import Held, LateColumn
from bamquery.engine.cuda.expressions.dictionary_values import ask_dictionary
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.libcudf_types import device_type, is_narrow
from bamquery.engine.pipeline.instructions import Input

_INPUT: Final = struct.Struct("<QQiiQ")
"""An `Input` of registers.hpp: values, valid, first_bit, narrow, places."""
_PLACE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class InputColumn:
    """Values of fixed width.

    Attributes:
        column: of the rows, or of those among which they are; decimals may be narrow.
        places: int32, where each row is in the column; None: they are its rows.
    """

    column: plc.Column
    places: plc.Column | None = None

    @property
    def has_nulls(self) -> bool:
        """Whether some value of the column is null."""
        return bool(self.column.null_count())

    def pack(self) -> bytes:
        """An `Input`; of at least one row."""
        column, data = self.column, self.column.data()
        mask = column.null_mask() if self.has_nulls else None
        assert data is not None
        values = int(data.ptr) + column.offset() * plc.types.size_of(column.type())
        where = 0
        if self.places is not None:
            places = self.places.data()
            assert places is not None
            where = int(places.ptr) + _PLACE_BYTES * self.places.offset()
        valid, narrow = 0 if mask is None else int(mask.ptr), is_narrow(column.type())
        return _INPUT.pack(values, valid, column.offset(), narrow, where)


def input_column(held: Held, kind: pa.DataType) -> InputColumn | None:
    """What a kernel loads for a column of a type; None where it is not of the type that it is said to be."""
    wanted = device_type(kind)
    if held.type().id() != wanted.id() or held.type().scale() != wanted.scale():
        return None
    # Values of a dictionary, and rows that may be null by their place alone, are copied first.
    if not isinstance(held, LateColumn):
        return InputColumn(held)
    if held.is_made or held.places.nulls or held.dictionary:
        return InputColumn(held.stored)
    return InputColumn(held.source, held.places.column)


def answers_column(kernels: Kernels, one: Input, frame: CudaFrame) -> InputColumn | None:
    """An input that is computed for the values of a dictionary, and loaded by the rows' places there."""
    answers = ask_dictionary(kernels, one.expression, frame)
    if answers is None:
        return None
    column = input_column(answers.column, one.type)
    return None if column is None else InputColumn(column.column, answers.places)


def pack_inputs(columns: Sequence[InputColumn]) -> bytes:
    """The `Inputs` of a generated text: one at least."""
    return b"".join(column.pack() for column in columns) or bytes(_INPUT.size)
