"""Window functions by their DuckDB names: the casts of arguments, the result's type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.function_catalog.windows import SECTION
from bamquery.plan.expressions import AggregateCall, Expression
from bamquery.sql_frontend.functions import aggregate_arguments as take
from bamquery.sql_frontend.functions.bindings import Builder, bindings
from bamquery.sql_frontend.functions.coercion import coerce, is_null
from bamquery.sql_frontend.functions.operators import explicit_cast, literal

_NUMBER: Final = pa.int64()


def is_window_function(name: str) -> bool:
    """Whether a function of that name (any case) exists only over windows."""
    return name.lower() in WINDOW_FUNCTIONS and name.lower() not in ("first", "last")


def call(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    """The call of the window function of that name (any case), one of `WINDOW_FUNCTIONS`.

    Raises:
        ValueError: a number or type of arguments that it does not take.
    """
    return WINDOW_FUNCTIONS[name.lower()].bind(name.lower(), arguments)


def _rank(function: str, kind: pa.DataType) -> Builder[AggregateCall]:
    return lambda name, arguments: AggregateCall(function, (), kind)


def _tiles(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    return AggregateCall("ntile", (_count(name, arguments[0]),), _NUMBER)


def _neighbour(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    value, kind = take.any_value(name, arguments[0])
    offset = _count(name, arguments[1]) if len(arguments) > 1 else literal(1, _NUMBER)
    default = _default(arguments[2], kind) if len(arguments) > 2 else literal(None, kind)
    return AggregateCall(name, (value, offset, default), kind)


def _default(value: Expression, kind: pa.DataType) -> Expression:
    try:
        return coerce(value, kind)
    except ValueError:  # a constant that does not fit fails where there are rows, as in DuckDB
        return explicit_cast(value, kind)


def _frame_function(function: str) -> Builder[AggregateCall]:
    def build(name: str, arguments: Sequence[Expression]) -> AggregateCall:
        value, kind = take.any_value(name, arguments[0])
        return AggregateCall(function, (value, *(_count(name, a) for a in arguments[1:])), kind)

    return build


def _count(name: str, value: Expression) -> Expression:
    """A number of rows."""
    if is_null(value) or (types.is_integral(value.type) and value.type != types.HUGEINT):
        return coerce(value, _NUMBER)
    raise ValueError(f"{name}() needs an integer for a number of rows, not {type_name(value.type)}")


_BUILDERS: Final[Mapping[str, Builder[AggregateCall]]] = MappingProxyType(
    {
        **{name: _rank(name, _NUMBER) for name in ("row_number", "rank", "dense_rank")},
        **{name: _rank(name, pa.float64()) for name in ("percent_rank", "cume_dist")},
        "ntile": _tiles,
        **dict.fromkeys(("lag", "lead"), _neighbour),
        **{name: _frame_function(name) for name in ("first_value", "last_value", "nth_value")},
    }
)

WINDOW_FUNCTIONS: Final = bindings(SECTION.entries, lambda entry: _BUILDERS[entry.name])
TAKES_NULLS: Final = frozenset({"lag", "lead", "first_value", "last_value", "nth_value"})
"""Functions of which IGNORE NULLS means something, by the first of their names."""
