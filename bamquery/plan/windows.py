"""Calls over windows: which rows each row's call looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from bamquery.plan.expressions import AggregateCall, Expression

BoundKind: TypeAlias = Literal[
    "unbounded preceding", "preceding", "current row", "following", "unbounded following"
]
Unit: TypeAlias = Literal["rows", "range", "groups"]
Exclusion: TypeAlias = Literal["no others", "current row", "group", "ties"]


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a frame begins or ends.

    `offset` is set for `preceding` and `following`: a number of rows or groups (int64), or, with the unit
    `range`, the value at which the frame begins or ends, which `key` is compared with; both of one type.
    """

    kind: BoundKind
    offset: Expression | None = None
    key: Expression | None = None

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """Every expression that it reads."""
        return tuple(e for e in (self.offset, self.key) if e is not None)


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The rows around a row, of its partition in order; the default reaches to its last peer."""

    unit: Unit = "range"
    start: Bound = Bound("unbounded preceding")
    end: Bound = Bound("current row")
    exclude: Exclusion = "no others"


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function of `function_catalog.plan_functions`, or an aggregate over the rows of a frame."""

    call: AggregateCall
    frame: WindowFrame = WindowFrame()
    ignore_nulls: bool = False

    @property
    def type(self) -> pa.DataType:
        """The result's."""
        return self.call.type

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """Every expression that it reads."""
        return (*self.call.inputs, *self.frame.start.inputs, *self.frame.end.inputs)


def map_call(call: WindowCall, rewrite: Callable[[Expression], Expression]) -> WindowCall:
    """The call with `rewrite` applied to all that it reads."""

    def rewrite_bound(old: Bound) -> Bound:
        offset = None if old.offset is None else rewrite(old.offset)
        return replace(old, offset=offset, key=None if old.key is None else rewrite(old.key))

    given = call.call
    if not any(rewrite(read) is not read for read in call.inputs):
        return call
    inner = replace(
        given,
        arguments=tuple(map(rewrite, given.arguments)),
        filter=None if given.filter is None else rewrite(given.filter),
        order=tuple(replace(key, expression=rewrite(key.expression)) for key in given.order),
    )
    frame = replace(call.frame, start=rewrite_bound(call.frame.start), end=rewrite_bound(call.frame.end))
    return replace(call, call=inner, frame=frame)
