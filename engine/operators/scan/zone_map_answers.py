"""Counts and extremes of all rows of a table, as zone maps have them: no row need be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.plan.expressions import AggregateCall, ColumnRef
from bamquery.storage.format.storable_types import is_string_like
from bamquery.storage.fragments.fragment import Fragment

_EXTREMES: Final = ("min", "max")


def zone_map_answers(
    fragments: Sequence[Fragment], columns: Sequence[pa.Field[Any]], calls: Sequence[AggregateCall]
) -> pa.RecordBatch | None:
    """One row, a column for each call; None where zone maps do not know all of them.

    Args:
        fragments: all of the table.
        columns: what the calls' column references refer to.
        calls: aggregates.

    Raises:
        CorruptionError: statistics are not as they were written.
        StorageError: they cannot be read.
    """
    if not calls or not all(_is_known(call, columns) for call in calls):
        return None
    answers = [_answer(fragments, columns, call) for call in calls]
    return pa.RecordBatch.from_arrays(answers, names=[call.function for call in calls])


def _is_known(call: AggregateCall, columns: Sequence[pa.Field[Any]]) -> bool:
    if call.distinct or call.filter is not None or call.order or call.parameter is not None:
        return False
    if call.function == "count_star":
        return True
    if call.function not in ("count", *_EXTREMES) or not isinstance(call.arguments[0], ColumnRef):
        return False
    kind = columns[call.arguments[0].index].type
    # Of strings only beginnings are kept.
    return call.function == "count" or (call.type == kind and not is_string_like(kind))


def _answer(
    fragments: Sequence[Fragment], columns: Sequence[pa.Field[Any]], call: AggregateCall
) -> pa.Array[Any]:
    if call.function == "count_star":
        return _array(sum(fragment.rows for fragment in fragments), call.type)
    (column,) = call.arguments
    assert isinstance(column, ColumnRef)
    name = columns[column.index].name
    known = [fragment.zone_map.column_statistics(name) for fragment in fragments]
    if call.function == "count":
        rows = sum(fragment.rows for fragment in fragments)
        return _array(rows - sum(one.null_count for one in known), call.type)
    greatest = call.function == "max"
    bounds = [one.maximum if greatest else one.minimum for one in known]
    found: Any = pa.array([bound for bound in bounds if bound is not None], call.type)
    # NaN is the greatest number.
    if any(one.nan_count for one in known) and (greatest or not len(found)):
        return _array(float("nan"), call.type)
    found = (pc.max if greatest else pc.min)(found)
    return _array(found, call.type)


def _array(value: Any, kind: Any) -> pa.Array[Any]:
    answer: pa.Array[Any] = pa.array([value], kind)
    return answer
