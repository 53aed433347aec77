"""Conditions on one column that compare it with constants, as keys of values that pass.

Three values are told apart: of which keys the condition is true, of which false, and what it is of null; of
other keys it is null. AND, OR and NOT are those of Kleene.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery.plan.comparisons import MIRRORED
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, Members
from bamquery.storage.format.storable_types import is_string_like
from bamquery.storage.statistics.order_keys import Interval, KeyCondition, key_bits, order_key

MOST_INTERVALS: Final = 48
"""Of numbers that lie far apart: looking values up by their hashes takes less than comparing with more."""

_OTHER_FORM: Final = "its condition is more than comparisons of the column with constants"


@dataclass(frozen=True)
class _Truth:
    true: tuple[Interval, ...]
    false: tuple[Interval, ...]
    of_null: bool | None


class _UnsupportedError(Exception):
    """Says why a condition has no such form."""


def key_condition(condition: Expression, kind: pa.DataType) -> KeyCondition | str:
    """Which values of the one column of a condition pass, or why that cannot be told by keys.

    `kind` is the column's type, one of fixed width.
    """
    if pa.types.is_dictionary(kind) or is_string_like(kind):
        return f"values of type {kind} have no keys"
    try:
        found = _truth(condition, kind)
    except _UnsupportedError as error:
        return str(error)
    if len(found.true) > MOST_INTERVALS:
        return f"its condition names {len(found.true)} values, which are found by their hashes"
    return KeyCondition(found.true, found.of_null is True)


def _truth(condition: Expression, kind: pa.DataType) -> _Truth:
    every = ((0, _greatest_key(kind)),)
    match condition:
        case ColumnRef() if pa.types.is_boolean(kind):
            return _Truth(((1, 1),), ((0, 0),), None)
        case Literal(value=value) if pa.types.is_boolean(value.type):
            if not value.is_valid:
                return _Truth((), (), None)
            return _Truth(every, (), True) if value.as_py() else _Truth((), every, False)
        case Call(function="and", arguments=arguments):
            return _intersect_truths([_truth(argument, kind) for argument in arguments])
        case Call(function="or", arguments=arguments):
            return _negation(_intersect_truths([_negation(_truth(argument, kind)) for argument in arguments]))
        case Call(function="not", arguments=(argument,)):
            return _negation(_truth(argument, kind))
        case Call(function="is_null", arguments=(ColumnRef(),)):
            return _Truth((), every, True)
        case Call(function="is_not_null", arguments=(ColumnRef(),)):
            return _Truth(every, (), False)
        case Call(function="in", arguments=(ColumnRef(), Members(values=members))):
            return _among_values(members, kind, has_null=False)
        case Call(function="in", arguments=(ColumnRef(), *options)):
            return _membership(options, kind)
        case Call(function=function, arguments=(ColumnRef(), Literal(value=value))):
            return _comparison(function, value, kind)
        case Call(function=function, arguments=(Literal(value=value), ColumnRef())):
            return _comparison(MIRRORED.get(function, ""), value, kind)
        case _:
            raise _UnsupportedError(_OTHER_FORM)


def _comparison(function: str, value: pa.Scalar[Any], kind: pa.DataType) -> _Truth:
    if function not in MIRRORED or value.type != kind:
        raise _UnsupportedError(_OTHER_FORM)
    distinct = function in {"is_distinct_from", "is_not_distinct_from"}
    if not value.is_valid:
        if not distinct:
            return _Truth((), (), None)
        null = _Truth((), ((0, _greatest_key(kind)),), True)
        return _negation(null) if function == "is_distinct_from" else null
    key, last = order_key(value), _greatest_key(kind)
    match function:
        case "less" | "greater_equal":
            true = _merge_intervals([(0, key - 1)])
        case "greater" | "less_equal":
            true = _merge_intervals([(key + 1, last)])
        case _:
            true = ((key, key),)
    found = _Truth(true, _complement(true, last), False if distinct else None)
    inverted = function in {"greater_equal", "less_equal", "not_equal", "is_distinct_from"}
    return _negation(found) if inverted else found


def _membership(options: Sequence[Expression], kind: pa.DataType) -> _Truth:
    values = [option.value for option in options if isinstance(option, Literal)]
    if len(values) < len(options) or any(value.type != kind for value in values):
        raise _UnsupportedError(_OTHER_FORM)
    known = [value for value in values if value.is_valid]
    return _among_values(known, kind, has_null=len(known) < len(values))


def _among_values(values: Any, kind: pa.DataType, *, has_null: bool) -> _Truth:
    """Values of the column's type, none of them null."""
    if isinstance(values, pa.Array) and values.type != kind:
        raise _UnsupportedError(_OTHER_FORM)
    if len(values) > MOST_INTERVALS:
        raise _UnsupportedError(f"its condition names {len(values)} values, which are found by their hashes")
    true = _merge_intervals([(key, key) for key in map(order_key, values)])
    return _Truth(true, () if has_null else _complement(true, _greatest_key(kind)), None)


def _intersect_truths(truths: Sequence[_Truth]) -> _Truth:
    true, false = truths[0].true, list(truths[0].false)
    of_null: list[bool | None] = [truth.of_null for truth in truths]
    for truth in truths[1:]:
        true = _intersection(true, truth.true)
        false += truth.false
    unknown = None if None in of_null else True
    return _Truth(true, _merge_intervals(false), False if False in of_null else unknown)


def _negation(found: _Truth) -> _Truth:
    return _Truth(found.false, found.true, None if found.of_null is None else not found.of_null)


def _greatest_key(kind: pa.DataType) -> int:
    return 1 if pa.types.is_boolean(kind) else (1 << key_bits(kind)) - 1


def _merge_intervals(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Ascending and apart; empty ones are left out."""
    apart: list[Interval] = []
    for low, high in sorted(intervals):
        if low > high:
            continue
        if apart and low <= apart[-1][1] + 1:
            apart[-1] = apart[-1][0], max(apart[-1][1], high)
        else:
            apart.append((low, high))
    return tuple(apart)


def _complement(apart: Sequence[Interval], last: int) -> tuple[Interval, ...]:
    starts = [0, *(high + 1 for _, high in apart)]
    ends = [*(low - 1 for low, _ in apart), last]
    return _merge_intervals(zip(starts, ends, strict=True))


def _intersection(a: Sequence[Interval], b: Sequence[Interval]) -> tuple[Interval, ...]:
    both: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        both.append((max(a[i][0], b[j][0]), min(a[i][1], b[j][1])))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return _merge_intervals(both)
