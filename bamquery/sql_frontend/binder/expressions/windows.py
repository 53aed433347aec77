"""OVER: calls over windows taken out of expressions, and the plan nodes that compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, cast

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    walk,
)
from bamquery.plan.nodes import Plan, Window
from bamquery.plan.windows import Bound, BoundKind, Exclusion, Unit, WindowCall, WindowFrame, map_call
from bamquery.sql_frontend.binder.expressions.aggregates import WINDOW_PLACE, bind_aggregate, sort_key
from bamquery.sql_frontend.fault_collection import FaultCollector, apply_to_each, errors_at
from bamquery.sql_frontend.functions import aggregates, operators
from bamquery.sql_frontend.functions import window_functions as windows
from bamquery.sql_frontend.functions.coercion import (
    coerce,
    comparison_type,
    decode,
    is_null,
    is_string_literal,
)
from bamquery.sql_frontend.spelling.expressions import inner_name
from bamquery.sql_frontend.syntax.calls import CallSyntax, function_of, read_call
from bamquery.sql_frontend.syntax.windows import WindowSyntax, read_window, windows_around
from bamquery.text.identifiers import suggestion

Bind = Callable[[exp.Expr], Expression]
_Specification = tuple[tuple[Expression, ...], tuple[SortKey, ...]]


class WindowCollector:
    """Gathers a query's calls over windows while its expressions are bound.

    Within those expressions the call number `k` stands as column `WINDOW_PLACE + k`.
    `compute` makes the nodes that compute them, over which `rewrite_over_windows` puts the expressions.
    """

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._specifications: list[_Specification] = []
        self._calls: list[WindowCall] = []
        self._names: list[str] = []
        self._positions: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def bind(self, node: exp.Window, bind: Bind) -> Expression:
        """What stands for a call; `bind` is for all expressions within."""
        function = function_of(node.this)
        with errors_at(self._sql, node):
            if function is None:
                raise ValueError("OVER belongs to a window function or an aggregate")
            syntax = read_window(node, windows_around(node))
        faults = FaultCollector(self._sql)
        partition: Sequence[Expression] = ()
        order: Sequence[SortKey] = ()
        call: tuple[AggregateCall, bool] | None = None
        with faults.collect():
            partition = [decode(key) for key in apply_to_each(bind, syntax.partition, self._sql)]
        with faults.collect():
            order = apply_to_each(lambda term: sort_key(term, node, self._sql, bind), syntax.order, self._sql)
        with faults.collect():
            call = self._call(node.this, bind)
        faults.check()
        assert call is not None
        inner, ignore_nulls = call
        frame = self._frame(node, syntax, order, bind)
        specification = (tuple(partition), tuple(order))
        column = self._place(
            specification, WindowCall(inner, frame, ignore_nulls), inner_name(node, self._sql)
        )
        return aggregates.finish_aggregate(function.name, column)

    def move(
        self, rewrite: Callable[[Expression], Expression], rewrite_call: Callable[[Expression], Expression]
    ) -> None:
        """Put everything that is read over other columns: terms of windows, and what stands within calls."""
        self._calls = [map_call(call, rewrite_call) for call in self._calls]
        self._specifications = [
            (
                tuple(map(rewrite, partition)),
                tuple(replace(key, expression=rewrite(key.expression)) for key in order),
            )
            for partition, order in self._specifications
        ]

    def compute(self, plan: Plan) -> Plan:
        """The nodes that add the calls' values to the plan's columns: one for each order of rows."""
        self._positions = [0] * len(self._calls)
        # Not before: a constant that is a key of grouping sets has come to be a column by now.
        specifications = [
            _drop_constants(*given, call.frame)
            for given, call in zip(self._specifications, self._calls, strict=True)
        ]
        for specification in dict.fromkeys(specifications):
            own = [i for i, given in enumerate(specifications) if given == specification]
            for count, call in enumerate(own):
                self._positions[call] = len(plan.fields) + count
            partition, order = specification
            calls, names = tuple(self._calls[i] for i in own), tuple(self._names[i] for i in own)
            plan = Window(plan, partition, order, calls, names)
        return plan

    def rewrite_over_windows(self, expression: Expression) -> Expression:
        """The expression over the output of `compute`."""
        match expression:
            case ColumnRef(index=index) if index >= WINDOW_PLACE:
                return replace(expression, index=self._positions[index - WINDOW_PLACE])
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(map(self.rewrite_over_windows, arguments)))
            case Cast(argument=argument):
                return replace(expression, argument=self.rewrite_over_windows(argument))
            case _:
                return expression

    def _place(self, specification: _Specification, call: WindowCall, name: str) -> ColumnRef:
        pair = (specification, call)
        known = list(zip(self._specifications, self._calls, strict=True))
        if pair not in known:
            known.append(pair)
            self._specifications.append(specification)
            self._calls.append(call)
            self._names.append(name)
        return ColumnRef(WINDOW_PLACE + known.index(pair), name, call.type)

    def _call(self, node: exp.Expr, bind: Bind) -> tuple[AggregateCall, bool]:
        """The function with its arguments, and whether nulls are left out."""
        with errors_at(self._sql, node):
            syntax = read_call(node)
            name = syntax.name
            if isinstance(node, exp.WithinGroup) or node.find(exp.WithinGroup):
                raise ValueError("WITHIN GROUP with OVER is not supported")
            function = windows.WINDOW_FUNCTIONS.get(name)
            if function is None and not aggregates.is_aggregate(name):
                hint = suggestion(name, [*windows.WINDOW_FUNCTIONS, *aggregates.AGGREGATES])
                raise ValueError(f"{name}() is neither a window function nor an aggregate.{hint}")
            if function is None and (syntax.ignore_nulls or syntax.respect_nulls):
                words = "IGNORE NULLS" if syntax.ignore_nulls else "RESPECT NULLS"
                raise ValueError(f"{name}() does not take {words} over a window")
            if function is not None:
                _check_plain(syntax, nulls=function.entry.name in windows.TAKES_NULLS)
        if function is None:
            return bind_aggregate(node, self._sql, bind), False
        arguments = apply_to_each(bind, syntax.arguments, self._sql)
        with errors_at(self._sql, syntax.node):
            return windows.call(name, arguments), syntax.ignore_nulls

    def _frame(
        self, node: exp.Window, syntax: WindowSyntax, order: Sequence[SortKey], bind: Bind
    ) -> WindowFrame:
        spec = syntax.frame
        if spec is None:
            return WindowFrame()
        unit = cast(Unit, str(spec.args["kind"]).lower())
        start_kind = _kind(spec, "start")
        end_kind = _kind(spec, "end") if spec.args.get("end") is not None else "current row"
        with errors_at(self._sql, node):
            _check_kinds(start_kind, end_kind)
        start = self._bind_frame_bound(node, unit, start_kind, spec.args.get("start"), order=order, bind=bind)
        end = self._bind_frame_bound(node, unit, end_kind, spec.args.get("end"), order=order, bind=bind)
        exclude = spec.args.get("exclude")
        words = "no others" if exclude is None else str(exclude.name).lower()
        return WindowFrame(unit, start, end, cast(Exclusion, words))

    def _bind_frame_bound(
        self,
        node: exp.Window,
        unit: Unit,
        kind: BoundKind,
        value: exp.Expr | str | None,
        *,
        order: Sequence[SortKey],
        bind: Bind,
    ) -> Bound:
        if kind not in ("preceding", "following"):
            return Bound(kind)
        assert isinstance(value, exp.Expr)
        offset = decode(bind(value))
        with errors_at(self._sql, value):
            if any(isinstance(node, ColumnRef) and node.index >= WINDOW_PLACE for node in walk(offset)):
                raise ValueError("calls over windows cannot be nested")
            if is_null(offset) and unit != "groups":
                raise ValueError(f"{unit.upper()} {kind.upper()} needs a number, not NULL")
            if unit == "range":
                return _range_bound(kind, offset, order)
            if not (types.is_numeric(offset.type) or is_string_literal(offset) or is_null(offset)):
                raise ValueError(
                    f"{unit.upper()} {kind.upper()} needs a number, not {type_name(offset.type)}"
                )
            return Bound(kind, coerce(offset, pa.int64()))


def _range_bound(kind: BoundKind, offset: Expression, order: Sequence[SortKey]) -> Bound:
    if len(order) != 1:
        raise ValueError("RANGE with an offset needs one term in ORDER BY")
    (key,) = order
    away = operators.add if (kind == "following") != key.descending else operators.subtract
    target = away(key.expression, offset)
    common = comparison_type(key.expression, target)
    return Bound(kind, coerce(target, common), coerce(key.expression, common))


def _kind(spec: exp.WindowSpec, side: str) -> BoundKind:
    value, direction = spec.args.get(side), spec.args.get(f"{side}_side")
    if value == "CURRENT ROW":
        return "current row"
    words = f"unbounded {direction}" if value == "UNBOUNDED" else str(direction)
    return cast(BoundKind, words.lower())


_ORDER: Final[tuple[BoundKind, ...]] = (
    *("unbounded preceding", "preceding", "current row", "following", "unbounded following"),
)


def _check_kinds(start: BoundKind, end: BoundKind) -> None:
    """Raise `ValueError` where a frame cannot have any row."""
    if start == "unbounded following":
        raise ValueError("a frame cannot start with UNBOUNDED FOLLOWING")
    if end == "unbounded preceding":
        raise ValueError("a frame cannot end with UNBOUNDED PRECEDING")
    if _ORDER.index(start) > _ORDER.index(end):
        raise ValueError(f"a frame that starts with {start.upper()} cannot end with {end.upper()}")


def _check_plain(syntax: CallSyntax, *, nulls: bool) -> None:
    """Raise `ValueError` where a window function has what only aggregates take."""
    for words, there in (
        ("DISTINCT", syntax.distinct),
        ("FILTER", syntax.where is not None),
        ("ORDER BY within its parentheses", bool(syntax.order)),
        ("IGNORE NULLS", syntax.ignore_nulls and not nulls),
    ):
        if there:
            raise ValueError(f"{syntax.name}() does not take {words}")


def _drop_constants(
    partition: Sequence[Expression], order: Sequence[SortKey], frame: WindowFrame
) -> _Specification:
    is_compared = any(bound.key is not None for bound in (frame.start, frame.end))  # with the one term
    return (
        tuple(dict.fromkeys(key for key in partition if not isinstance(key, Literal))),
        tuple(key for key in order if is_compared or not isinstance(key.expression, Literal)),
    )
