"""Plans and expressions as text: for EXPLAIN, and for tests in a form that leaves nothing out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import is_interval
from bamquery.plan.assumptions import SpelledName
from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    Members,
    fact_of_expression,
)
from bamquery.plan.literals import interval_strings
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Recursion,
    Repeat,
    Sample,
    Scan,
    SingleRow,
    Sort,
    SortKey,
    Union,
    Values,
    Window,
)
from bamquery.plan.rewriting import children
from bamquery.plan.windows import Bound, WindowCall, WindowFrame
from bamquery.statement_context.cancellation import check_cancelled

_INFIX: Final[Mapping[str, str]] = MappingProxyType(
    {
        "add": "+",
        "subtract": "-",
        "multiply": "*",
        "divide": "/",
        "floor_divide": "//",
        "modulo": "%",
        "equal": "=",
        "not_equal": "<>",
        "less": "<",
        "less_equal": "<=",
        "greater": ">",
        "greater_equal": ">=",
        "is_distinct_from": "IS DISTINCT FROM",
        "is_not_distinct_from": "IS NOT DISTINCT FROM",
        "and": "AND",
        "or": "OR",
        "concat": "||",
        "like": "LIKE",
        "ilike": "ILIKE",
    }
)
_UNTYPED: Final = frozenset({pa.int32(), pa.bool_(), pa.large_string(), pa.null()})
"""Types whose literals say what they are."""


def format_plan(plan: Plan, *, exact: bool = False) -> str:
    """The plan as a tree of lines, parents first, two spaces a level.

    `exact` writes every column with its position and every literal with its type, so that two plans with
    one text are one plan.
    """
    return "\n".join(_lines(plan, 0, exact))


def format_expression(expression: Expression, *, exact: bool = False) -> str:
    """The expression in the manner of SQL; see `format_plan` for `exact`."""
    match expression:
        case ColumnRef(index=index, name=name):
            if isinstance(name, SpelledName):
                name.fix()
            return f"{name}#{index}" if exact else name
        case Literal():
            return _literal(expression, exact)
        case Members():
            return expression.text
        case Cast(argument=argument, type=kind, try_=try_):
            keyword = "TRY_CAST" if try_ else "CAST"
            return f"{keyword}({format_expression(argument, exact=exact)} AS {_type(kind, exact)})"
        case Call(function=function, arguments=arguments):
            check_cancelled()
            return _call(function, [format_expression(a, exact=exact) for a in arguments])


@fact_of_expression
def expression_text(expression: Expression) -> str:
    """As `format_expression`, of a plan that is made: profiles say the same of each of its runs."""
    return format_expression(expression)


def format_aggregate(call: AggregateCall, *, exact: bool = False) -> str:
    """The aggregate call in the manner of SQL; see `format_plan` for `exact`."""
    parameters = () if call.parameter is None else (call.parameter,)
    arguments = ", ".join(format_expression(a, exact=exact) for a in (*call.arguments, *parameters))
    if call.order:
        order = ", ".join(format_sort_key(key, exact=exact) for key in call.order)
        arguments += f" ORDER BY {order}"
    text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments})"
    if call.filter is not None:
        text += f" FILTER (WHERE {format_expression(call.filter, exact=exact)})"
    return text


def format_window_call(window: WindowCall, *, exact: bool = False) -> str:
    """The call with its frame, the default one left out; see `format_plan` for `exact`."""
    text = format_aggregate(window.call, exact=exact) + (" IGNORE NULLS" if window.ignore_nulls else "")
    frame = window.frame
    if frame == WindowFrame():
        return text
    bounds = " AND ".join(_format_bound(bound, exact) for bound in (frame.start, frame.end))
    exclude = "" if frame.exclude == "no others" else f" EXCLUDE {frame.exclude.upper()}"
    return f"{text} {frame.unit.upper()} BETWEEN {bounds}{exclude}"


def _format_bound(bound: Bound, exact: bool) -> str:
    if bound.offset is None:
        return bound.kind.upper()
    return f"{format_expression(bound.offset, exact=exact)} {bound.kind.upper()}"


def _lines(plan: Plan, depth: int, exact: bool) -> Iterator[str]:
    yield "  " * depth + _node(plan, exact)
    for child in children(plan):
        yield from _lines(child, depth + 1, exact)


def _node(plan: Plan, exact: bool) -> str:
    match plan:
        case Scan():
            return _scan(plan, exact)
        case SingleRow():
            return "SingleRow"
        case Values(batch=batch):
            names = ", ".join(batch.schema.names)
            return f"Values {names}: {batch.to_pylist() if exact else f'{batch.num_rows} rows'}"
        case Filter(predicate=predicate):
            return f"Filter {format_expression(predicate, exact=exact)}"
        case Project(expressions=expressions, names=names):
            columns = (
                _format_alias(format_expression(e, exact=exact), e, n)
                for e, n in zip(expressions, names, strict=True)
            )
            return f"Project {', '.join(columns)}"
        case Aggregate(keys=keys, aggregates=aggregates, sets=sets):
            terms = [format_expression(key, exact=exact) for key in keys]
            by = ", ".join(terms)
            if sets:
                listed = (f"({', '.join(terms[i] for i in members)})" for members in sets)
                by = f"GROUPING SETS ({', '.join(listed)})"
            values = ", ".join(format_aggregate(call, exact=exact) for call in aggregates)
            words = f"Aggregate {values}" if values else "Aggregate"
            return f"{words} BY {by}" if by else words
        case Sort(keys=keys, limit=limit, offset=offset):
            return (
                f"Sort {', '.join(format_sort_key(key, exact=exact) for key in keys)}{_rows(limit, offset)}"
            )
        case Window(partition=partition, order=order, calls=calls):
            values = ", ".join(format_window_call(call, exact=exact) for call in calls)
            parts = [
                (" PARTITION BY ", [format_expression(key, exact=exact) for key in partition]),
                (" ORDER BY ", [format_sort_key(key, exact=exact) for key in order]),
            ]
            return f"Window {values}{''.join(word + ', '.join(terms) for word, terms in parts if terms)}"
        case Limit(count=count, offset=offset):
            return f"Limit{_rows(count, offset)}"
        case Join(kind=kind, condition=condition):
            on = "" if condition is None else f" ON {format_expression(condition, exact=exact)}"
            return f"Join {kind}{on}"
        case Union():
            return "Union"
        case Recursion(table=table, distinct=distinct):
            return f"Recursion {table.name}{' distinct' * distinct}"
        case Repeat(count=repeats):
            return f"Repeat {format_expression(repeats, exact=exact)}"
        case Sample(count=count, percent=percent, seed=seed, by_run=by_run):
            size = f"{count} rows" if percent is None else f"{percent:g} %"
            return f"Sample {size}{' by run' * by_run}{'' if seed is None else f' seed {seed}'}"


def _scan(scan: Scan, exact: bool) -> str:
    schema = scan.source.schema
    columns = ", ".join(
        f"{schema.field(i).name}#{i}" if exact else schema.field(i).name for i in scan.columns
    )
    text = f"Scan {scan.source.name}: {columns or 'no columns'}"
    if scan.predicates:
        text += " WHERE " + " AND ".join(format_expression(p, exact=exact) for p in scan.predicates)
    return text


def _format_alias(text: str, expression: Expression, name: str) -> str:
    same = text == name or (isinstance(expression, ColumnRef) and expression.name == name)
    return text if same else f"{text} AS {name}"


def format_sort_key(key: SortKey, *, exact: bool = False) -> str:
    """The ORDER BY term in the manner of SQL; see `format_plan` for `exact`."""
    text = format_expression(key.expression, exact=exact)
    return text + (" DESC" if key.descending else "") + (" NULLS FIRST" if key.nulls_first else "")


def _rows(count: int | None, offset: int) -> str:
    return (f" limit {count}" if count is not None else "") + (f" offset {offset}" if offset else "")


def _type(kind: pa.DataType, exact: bool) -> str:
    return str(kind) if exact and pa.types.is_dictionary(kind) else type_name(kind)


def _literal(literal: Literal, exact: bool) -> str:
    kind = literal.type
    text = _value(literal.value)
    if not exact or (kind in _UNTYPED and (literal.value.is_valid or pa.types.is_null(kind))):
        return text
    return f"{text}::{type_name(kind)}"


def _value(value: pa.Scalar[Any]) -> str:
    if not value.is_valid:
        return "NULL"
    if pa.types.is_boolean(value.type):
        return "TRUE" if value.as_py() else "FALSE"
    if is_interval(value.type):
        parts = value.as_py()
        return f"'{interval_strings.write(parts.months, parts.days, parts.nanoseconds // 1000)}'"
    if pa.types.is_temporal(value.type) or pa.types.is_large_string(value.type):
        return "'" + _format_value(value).replace("'", "''") + "'"
    return str(value)


def _format_value(value: pa.Scalar[Any]) -> str:
    try:
        return str(value)
    except (OverflowError, ValueError):  # a date beyond Python's years
        return str(value.cast(pa.large_string()))


def _call(function: str, arguments: list[str]) -> str:
    symbol = _INFIX.get(function)
    if symbol is not None:
        return f"({f' {symbol} '.join(arguments)})"
    match function, arguments:
        case "not", [argument]:
            return f"(NOT {argument})"
        case "negate", [argument]:
            return f"(-{argument})"
        case "is_null", [argument]:
            return f"({argument} IS NULL)"
        case "is_not_null", [argument]:
            return f"({argument} IS NOT NULL)"
        case "in", [argument, *members]:
            return f"({argument} IN ({', '.join(members)}))"
        case "case", [*branches, otherwise]:
            pairs = zip(branches[::2], branches[1::2], strict=True)
            whens = "".join(f" WHEN {condition} THEN {value}" for condition, value in pairs)
            return f"CASE{whens} ELSE {otherwise} END"
        case _:
            return f"{function}({', '.join(arguments)})"
