"""Long lists of whole numbers after IN, as one set: a node for each would cost more than the scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.plan.expressions import Call, Expression, Literal, Members
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.statement_context.cancellation import check_cancelled

LONG: Final = 256
"""Members from which on rules do not look at each of them."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_BETWEEN_CHECKS: Final = 4096


def whole_numbers(items: Sequence[exp.Expr]) -> list[int] | None:
    """The numbers of a long list; None where it is short, or has anything but numbers that a BIGINT holds.

    Raises:
        CancelledError: the statement was cancelled.
    """
    if len(items) < LONG:
        return None
    found = []
    for place, item in enumerate(items):
        if not place % _BETWEEN_CHECKS:
            check_cancelled()
        negative = type(item) is exp.Neg
        number = item.args["this"] if negative else item
        if type(number) is not exp.Literal or number.args["is_string"] or len(number.args["this"]) > 19:
            return None
        if not number.args["this"].isdecimal():
            return None
        value = -int(number.args["this"]) if negative else int(number.args["this"])
        if not _LEAST <= value <= _MOST:
            return None
        found.append(value)
    return found


def membership(value: Expression, numbers: Sequence[int]) -> Expression | None:
    """IN over such a list, for a value of an integer type: numbers beyond the type are equal to none of it.

    None: the value is of another type, or no number is of its type.
    """
    value = decode(value)
    if isinstance(value, Literal) or not pa.types.is_integer(value.type):
        return None
    low, high = types.integer_range(value.type)
    kept = {number for number in numbers if low <= number <= high}
    if not kept:
        return None
    return Call("in", (value, Members(pa.array(sorted(kept), value.type))), pa.bool_())
