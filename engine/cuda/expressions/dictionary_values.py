"""What expressions are of rows that refer to a dictionary: each of its values is asked once, by the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pylibcudf as plc

from bamquery.data_types.type_groups import value_type
from bamquery.engine import host_evaluation
from bamquery.engine.cuda.cache.late_columns import Dictionary, LateColumn
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.transfer.upload import upload
from bamquery.engine.pipeline.outputs import may_be_kept
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Expression, walk
from bamquery.plan.interning import DIFFERENT_EACH_TIME
from bamquery.plan.rewriting import substitute


@dataclass(frozen=True, slots=True)
class DictionaryAnswers:
    """An expression's values for those of a dictionary, and for null behind them if some row is.

    Attributes:
        column: the values.
        places: int32, never null, where each row's is.
    """

    column: plc.Column
    places: plc.Column


def only_column(expression: Expression) -> ColumnRef | None:
    """The one column that an expression depends on; None where it is of several, of none, or of chance."""
    found: ColumnRef | None = None
    for part in walk(expression):
        if isinstance(part, ColumnRef):
            if found is not None and part.index != found.index:
                return None
            found = part
        elif isinstance(part, Call) and part.function in DIFFERENT_EACH_TIME:
            return None
    return found


def has_dictionary(frame: CudaFrame, column: int) -> bool:
    """Whether the rows refer to a dictionary of fewer values."""
    held = frame.held[column]
    return isinstance(held, LateColumn) and held.dictionary is not None and held.dictionary.size < frame.rows


def ask_dictionary(kernels: Kernels, expression: Expression, frame: CudaFrame) -> DictionaryAnswers | None:
    """The expression's answers for a dictionary of fewer values than there are rows.

    None where it depends on anything else, or cannot be computed for a value, which no row may have.
    """
    if not any(isinstance(one, LateColumn) and one.dictionary is not None for one in frame.held):
        return None
    reference = only_column(expression)
    if reference is None or not has_dictionary(frame, reference.index):
        return None
    held = frame.held[reference.index]
    assert isinstance(held, LateColumn)
    dictionary = held.dictionary
    assert dictionary is not None
    own = ColumnRef(0, reference.name, value_type(reference.type))
    moved = substitute(expression, [own] * (reference.index + 1))
    column = _answers(kernels, moved, dictionary, nulls=held.places.nulls)
    return None if column is None else DictionaryAnswers(column, held.places.clamp(kernels, dictionary.size))


def _answers(
    kernels: Kernels, expression: Expression, dictionary: Dictionary, *, nulls: bool
) -> plc.Column | None:
    known = dictionary.answers.find((expression, nulls))
    if known is not None:
        return known
    values: Any = dictionary.host
    if nulls:
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    try:
        found: Any = host_evaluation.evaluate(expression, pa.record_batch([values], ["value"]))
    except ExecutionError:
        return None
    if isinstance(found, pa.Scalar):
        constant: Any = found
        found = pa.repeat(constant, len(values))
    if found.type != value_type(expression.type):
        return None
    column = upload(kernels.session, found)
    if may_be_kept([expression]):
        dictionary.answers.keep((expression, nulls), column)
    return column
