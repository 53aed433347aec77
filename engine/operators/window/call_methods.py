"""How a call over a window is computed where a partition goes through memory in portions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from bamquery.engine.device import Device
from bamquery.engine.operators.aggregate.distinct_aggregate import drop_needless_distinct
from bamquery.function_catalog.plan_functions import WINDOW_FUNCTIONS
from bamquery.plan.expressions import AggregateCall, Call, Cast, Expression, Literal
from bamquery.plan.functions import HOLDS_VALUES
from bamquery.plan.windows import Bound, WindowCall, WindowFrame

_RANKS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
_OF_ALL_ROWS: Final = ("percent_rank", "cume_dist", "ntile")
_NEIGHBOURS: Final = ("lag", "lead")
_MOVES: Final = frozenset({"add", "subtract", "add_days", "add_interval", "subtract_interval"})
"""Functions that keep the order of the values to which they add one and the same."""
_AS_AGGREGATES: Final = {"first_value": "first", "last_value": "last"}


@dataclass(frozen=True, slots=True)
class CallMethod:
    """What a call needs beside the rows of a portion, to have the values that the whole partition gives.

    Attributes:
        call: what is computed; where a frame reaches beyond the portion, as an aggregate whose state is kept.
        back: rows before those of the portion that must be there.
        ahead: rows behind them.
        reaches_back: frames of which all rows before the portion must be there, for its last row and those
            behind: they end with the row's peers.
        reaches_ahead: frames of which all rows behind the portion must be there, that begin with the peers.
        before: whether frames begin with the partition, so that the state of all rows before is needed.
        after: whether they end with it.
        whole: whether all rows of the partition have the same frame, and so one value.
        grouped: whether peers have the same frame, and so one value where they are a portion of their own.
        all_rows: whether it must be known how many rows the partition has.
        peers: whether it matters which rows are peers.
        undivided: whether no group of peers may be in several portions.
    """

    call: WindowCall
    lookback: int = 0
    lookahead: int = 0
    reaches_back: tuple[WindowFrame, ...] = ()
    reaches_ahead: tuple[WindowFrame, ...] = ()
    needs_state_before: bool = False
    needs_state_after: bool = False
    is_one_frame: bool = False
    is_one_frame_a_group: bool = False
    all_rows: bool = False
    peers: bool = False
    undivided: bool = False

    @property
    def looks_around(self) -> bool:
        """Whether it looks at rows around those of the portion."""
        return self.lookback > 0 or self.lookahead > 0 or bool(self.reaches_back or self.reaches_ahead)

    @property
    def looks_ahead(self) -> bool:
        """Whether it needs something of all rows behind the portion."""
        return self.needs_state_after or self.is_one_frame or self.all_rows

    @property
    def needs_file(self) -> bool:
        """Whether a partition's rows may have to go through a file."""
        return self.looks_ahead or self.needs_groups

    @property
    def needs_groups(self) -> bool:
        """Whether it needs to know where a group of peers ends."""
        return self.is_one_frame_a_group or self.call.call.function == "cume_dist"


def choose_method(call: WindowCall, device: Device[Any]) -> CallMethod | None:
    """How to compute a call in portions; None where a partition must be in memory for it."""
    name = call.call.function
    if name in _RANKS:
        ordered = name not in ("row_number", "ntile")
        return CallMethod(call, all_rows=name in _OF_ALL_ROWS, peers=ordered)
    if name in _NEIGHBOURS:
        return _neighbour_method(call, device)
    return _frame_method(call, device)


def _neighbour_method(call: WindowCall, device: Device[Any]) -> CallMethod | None:
    value, offset, default = call.call.arguments
    away = _constant(offset)
    if away is None:
        return None
    away = away if call.call.function == "lead" else -away
    if not call.ignore_nulls:
        return CallMethod(call, lookback=max(-away, 0), lookahead=max(away, 0))
    if abs(away) != 1 or not (isinstance(default, Literal) and not default.value.is_valid):
        return None
    # The last value that is not null of all rows before, or the first of all rows behind: an aggregate.
    one = Literal(pa.scalar(1, pa.int64()))
    before = WindowFrame("rows", Bound("unbounded preceding"), Bound("preceding", one))
    behind = WindowFrame("rows", Bound("following", one), Bound("unbounded following"))
    name, frame = ("last_value", before) if away < 0 else ("first_value", behind)
    known = AggregateCall(name, (value,), call.type)
    return _frame_method(WindowCall(known, frame, ignore_nulls=True), device)


def _frame_method(call: WindowCall, device: Device[Any]) -> CallMethod | None:
    frame = call.frame
    bounds = [bound for bound in (frame.start, frame.end) if bound.offset is not None]
    if not all(_is_constant(frame, bound) for bound in bounds):
        return None
    before, after = frame.start.kind == "unbounded preceding", frame.end.kind == "unbounded following"
    by_rows = frame.unit == "rows"
    to_peers = "current row" in (frame.start.kind, frame.end.kind)
    plain, by_groups = frame.exclude == "no others", frame.exclude in ("group", "ties")
    apart = not (by_rows or bounds)  # nothing is asked of rows but who is a peer
    method = CallMethod(
        call,
        needs_state_before=before,
        needs_state_after=after,
        is_one_frame=before and after and plain,
        is_one_frame_a_group=to_peers and plain and apart,
        peers=not by_rows or by_groups,
        undivided=by_groups or not (plain or by_rows) or not (apart or by_rows),
    )
    if by_rows:
        away = [(_constant(b.offset) or 0) * (1 if b.kind == "following" else -1) for b in bounds]
        method = replace(method, lookback=max([0, *(-n for n in away)]), lookahead=max([0, *away]))
        if not (before or after):
            return replace(method, peers=False, undivided=False)
    else:
        here = Bound("current row")
        back = [WindowFrame(frame.unit, b, here) for b in bounds if b.kind == "preceding"]
        ahead = [WindowFrame(frame.unit, here, b) for b in bounds if b.kind == "following"]
        method = replace(method, reaches_back=tuple(back), reaches_ahead=tuple(ahead))
        if bounds and not (before or after):
            return method
    kept = as_small_state(call)
    if kept is None or device.capabilities.aggregate_refusals(kept.call):
        return None
    return replace(method, call=kept)


def as_small_state(call: WindowCall) -> WindowCall | None:
    """The same as an aggregate that keeps little of any number of rows; None where there is none."""
    (given,) = drop_needless_distinct([call.call])
    name = given.function
    if name in _AS_AGGREGATES:
        (value,) = given.arguments
        known = Call("is_not_null", (value,), pa.bool_()) if call.ignore_nulls else None
        aggregate = AggregateCall(_AS_AGGREGATES[name], (value,), given.type, filter=known)
        return replace(call, call=aggregate, ignore_nulls=False)
    if name in WINDOW_FUNCTIONS or name in HOLDS_VALUES or given.distinct:
        return None
    if given.order and name not in ("first", "last", "any_value"):
        return None
    return replace(call, call=given)


def _is_constant(frame: WindowFrame, bound: Bound) -> bool:
    """Whether a bound with a number has the same for all rows, so that those of later rows are later."""
    assert bound.offset is not None
    if frame.unit != "range":
        away = _constant(bound.offset)
        return away is not None and away >= 0
    moved = _strip_casts(bound.offset)
    if not (isinstance(moved, Call) and moved.function in _MOVES):
        return False
    value, by = map(_strip_casts, moved.arguments)
    assert bound.key is not None
    return value == _strip_casts(bound.key) and isinstance(by, Literal)


def _constant(value: Expression | None) -> int | None:
    if isinstance(value, Literal) and value.value.is_valid:
        found: int = value.value.as_py()
        return found
    return None


def _strip_casts(value: Expression) -> Expression:
    while isinstance(value, Cast):
        value = value.argument
    return value


def function_names(calls: Sequence[WindowCall]) -> str:
    """The functions, each once."""
    return ", ".join(dict.fromkeys(f"{call.call.function}()" for call in calls))
