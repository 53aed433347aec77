"""How a call over a window is computed where a partition goes through memory in portions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from bamquery.engine.device import Device
from bamquery.plan.expressions import AggregateCall, Call, Expression, Literal
from bamquery.plan.functions import HOLDS_VALUES, WINDOW_FUNCTIONS
from bamquery.plan.windows import Bound, WindowCall

_RANKS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
_OF_ALL_ROWS: Final = ("percent_rank", "cume_dist", "ntile")
_NEIGHBOURS: Final = ("lag", "lead")
_AS_AGGREGATES: Final = {"first_value": "first", "last_value": "last"}


@dataclass(frozen=True, slots=True)
class Method:
    """What a call needs beside the rows of a portion, to have the values that the whole partition gives.

    Attributes:
        call: what is computed; where a frame reaches beyond the portion, as an aggregate whose state is kept.
        back: rows before those of the portion that must be there.
        ahead: rows behind them.
        before: whether frames begin with the partition, so that the state of all rows before is needed.
        after: whether they end with it.
        whole: whether all rows of the partition have the same frame, and so one value.
        grouped: whether peers have the same frame, and so one value where they are a portion of their own.
        all_rows: whether it must be known how many rows the partition has.
        peers: whether it matters which rows are peers.
        undivided: whether no group of peers may be in several portions.
    """

    call: WindowCall
    back: int = 0
    ahead: int = 0
    before: bool = False
    after: bool = False
    whole: bool = False
    grouped: bool = False
    all_rows: bool = False
    peers: bool = False
    undivided: bool = False

    @property
    def near(self) -> bool:
        """Whether it looks at rows around those of the portion."""
        return self.back > 0 or self.ahead > 0

    @property
    def looks_ahead(self) -> bool:
        """Whether it needs something of all rows behind the portion."""
        return self.after or self.whole or self.all_rows

    @property
    def by_file(self) -> bool:
        """Whether a partition's rows may have to go through a file."""
        return self.looks_ahead or self.of_groups

    @property
    def of_groups(self) -> bool:
        """Whether it needs to know where a group of peers ends."""
        return self.grouped or self.call.call.function == "cume_dist"


def method_of(call: WindowCall, device: Device[Any]) -> Method | None:
    """How to compute a call in portions; None where a partition must be in memory for it."""
    name = call.call.function
    if name in _RANKS:
        ordered = name not in ("row_number", "ntile")
        return Method(call, all_rows=name in _OF_ALL_ROWS, peers=ordered)
    if name in _NEIGHBOURS:
        return _of_neighbour(call)
    return _of_frame(call, device)


def _of_neighbour(call: WindowCall) -> Method | None:
    away = _constant(call.call.arguments[1])
    if call.ignore_nulls or away is None:
        return None
    away = away if call.call.function == "lead" else -away
    return Method(call, back=max(-away, 0), ahead=max(away, 0))


def _of_frame(call: WindowCall, device: Device[Any]) -> Method | None:
    frame = call.frame
    distances = []
    for bound in (frame.start, frame.end):
        away = _distance(bound) if frame.unit == "rows" or bound.offset is None else None
        if away is None:
            return None
        distances.append(away)
    before = frame.start.kind == "unbounded preceding"
    after = frame.end.kind == "unbounded following"
    edges = "current row" in (frame.start.kind, frame.end.kind) and frame.unit != "rows"
    plain, by_groups = frame.exclude == "no others", frame.exclude in ("group", "ties")
    method = Method(
        call,
        back=max(0, *(-away for away in distances)),
        ahead=max(0, *distances),
        before=before,
        after=after,
        whole=before and after and plain,
        grouped=edges and plain,
        peers=edges or by_groups,
        undivided=by_groups or (edges and not plain),
    )
    if not (before or after or edges):
        return replace(method, peers=False, undivided=False)
    kept = with_a_state(call)
    if kept is None or device.aggregate_refusals(kept.call):
        return None
    return replace(method, call=kept)


def with_a_state(call: WindowCall) -> WindowCall | None:
    """The same as an aggregate that keeps little of any number of rows; None where there is none."""
    given = call.call
    name = given.function
    if name in _AS_AGGREGATES:
        value = given.arguments[0]
        known = Call("is_not_null", (value,), pa.bool_()) if call.ignore_nulls else None
        aggregate = AggregateCall(_AS_AGGREGATES[name], (value,), given.type, filter=known)
        return replace(call, call=aggregate, ignore_nulls=False)
    if name in WINDOW_FUNCTIONS or name in HOLDS_VALUES or given.distinct:
        return None
    if given.order and name not in ("first", "last", "any_value"):
        return None
    return call


def _distance(bound: Bound) -> int | None:
    """Rows from the row to the bound, ahead above zero; 0 for bounds without a number."""
    if bound.offset is None:
        return 0
    away = _constant(bound.offset)
    if away is None or away < 0:
        return None
    return away if bound.kind == "following" else -away


def _constant(value: Expression) -> int | None:
    if isinstance(value, Literal) and value.value.is_valid:
        found: int = value.value.as_py()
        return found
    return None


def names_of(calls: Sequence[WindowCall]) -> str:
    """The functions, each once."""
    return ", ".join(dict.fromkeys(f"{call.call.function}()" for call in calls))
