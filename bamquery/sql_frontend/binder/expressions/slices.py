"""`text[i]` and `text[i:j]`: characters by position, from 1 on, or from the end where it is negative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.plan.expressions import Call, Expression, Literal
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.functions import scalar_functions as functions
from bamquery.sql_frontend.functions.coercion import coerce, decode, is_null, is_string_literal
from bamquery.sql_frontend.functions.operators import STRING, literal

if TYPE_CHECKING:
    from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder

_BIGINT: Final = pa.int64()
_LONGEST: Final = (1 << 32) - 1
"""No text has as many characters."""


def bind_bracket(binder: ExpressionBinder, node: exp.Bracket) -> Expression:
    """The character at a place, or those from one place to another, both included.

    Null where the text or a place is. What lies outside of the text is left out.

    Raises:
        SqlError: anything but a text, a place that is no integer, more than one place.
    """
    (place,) = node.expressions if len(node.expressions) == 1 else (None,)
    with errors_at(binder.sql, node):
        if place is None:
            raise ValueError("[] takes one place, or two with a colon between them")
    if not isinstance(place, exp.Slice):
        value, index = binder.bind_all([node.this, place])
        with errors_at(binder.sql, node):
            return functions.call("substring", [_string_operand(value), _place(index), literal(1, _BIGINT)])
    ends = [end for end in (place.this, place.expression) if end is not None]
    value, *bound = binder.bind_all([node.this, *ends])
    with errors_at(binder.sql, node):
        text, places = _string_operand(value), iter(map(_place, bound))
        first = next(places) if place.this is not None else literal(1, _BIGINT)
        return _slice(text, first, next(places) if place.expression is not None else None)


def _string_operand(value: Expression) -> Expression:
    value = decode(value)
    if is_null(value):
        return literal(None, STRING)
    if not types.is_string(value.type):
        raise ValueError(f"[] needs VARCHAR, not {type_name(value.type)}: cast it")
    return value


def _place(value: Expression) -> Expression:
    value = decode(value)
    if is_null(value) or is_string_literal(value) or value.type in _INTEGERS:
        return coerce(value, _BIGINT)
    raise ValueError(f"a place within [] needs BIGINT, not {type_name(value.type)}: cast it")


_INTEGERS: Final = frozenset(
    {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()}
)


def _slice(text: Expression, first: Expression, last: Expression | None) -> Expression:
    begin, end = _constant(first), None if last is None else _constant(last)
    if begin is not None and (last is None or end is not None):
        known = _slice_by_constants(text, begin, end)
        if known is not None:
            return known
    end_of_text = literal(-1, _BIGINT)
    return Call("text_between", (text, first, end_of_text if last is None else last), STRING)


def _slice_by_constants(text: Expression, first: int, last: int | None) -> Expression | None:
    """The same by what every device has, where there is anything; else None."""
    if last is not None and last < -1:
        text = functions.call("left", [text, literal(max(last, -_LONGEST) + 1, _BIGINT)])
    if first >= 0:
        first = max(first, 1)
        bounds = [first] if last is None or last < 0 else [first, max(min(last, _LONGEST) - first + 1, 0)]
        return functions.call("substring", [text, *(literal(bound, _BIGINT) for bound in bounds)])
    if last is None or last == -1:
        return functions.call("right", [text, literal(min(-first, _LONGEST), _BIGINT)])
    if last < 0:
        return functions.call("right", [text, literal(max(min(last - first + 1, _LONGEST), 0), _BIGINT)])
    return None


def _constant(place: Expression) -> int | None:
    return place.value.as_py() if isinstance(place, Literal) else None
