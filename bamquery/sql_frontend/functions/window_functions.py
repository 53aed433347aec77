"""Window functions by their DuckDB names: argument counts, the casts of arguments, the result's type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.plan.expressions import AggregateCall, Expression
from bamquery.sql_frontend.functions import aggregate_arguments as take
from bamquery.sql_frontend.functions.coercion import coerce, decode, is_null
from bamquery.sql_frontend.functions.operators import explicit_cast, literal
from bamquery.sql_frontend.functions.scalar_functions import check_count

_NUMBER: Final = pa.int64()


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """How calls of a name are bound; `nulls` says whether IGNORE NULLS means something."""

    build: Callable[[str, Sequence[Expression]], AggregateCall]
    least: int
    most: int
    nulls: bool = False


def is_window_function(name: str) -> bool:
    """Whether a function of that name (any case) exists only over windows."""
    return name.lower() in WINDOW_FUNCTIONS and name.lower() not in ("first", "last")


def call(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    """The call of the window function of that name (any case), one of `WINDOW_FUNCTIONS`.

    Raises:
        ValueError: a number or type of arguments that it does not take.
    """
    function = WINDOW_FUNCTIONS[name.lower()]
    check_count(name, len(arguments), function.least, function.most)
    return function.build(name.lower(), [decode(argument) for argument in arguments])


def _rank(kind: pa.DataType) -> Callable[[str, Sequence[Expression]], AggregateCall]:
    return lambda name, arguments: AggregateCall(name, (), kind)


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


def _in_frame(function: str) -> Callable[[str, Sequence[Expression]], AggregateCall]:
    def build(name: str, arguments: Sequence[Expression]) -> AggregateCall:
        value, kind = take.any_value(name, arguments[0])
        return AggregateCall(function, (value, *(_count(name, a) for a in arguments[1:])), kind)

    return build


def _count(name: str, value: Expression) -> Expression:
    """A number of rows."""
    if is_null(value) or (types.is_integral(value.type) and value.type != types.HUGEINT):
        return coerce(value, _NUMBER)
    raise ValueError(f"{name}() needs an integer for a number of rows, not {type_name(value.type)}")


WINDOW_FUNCTIONS: Final[Mapping[str, WindowFunction]] = MappingProxyType(
    {
        "row_number": WindowFunction(_rank(_NUMBER), 0, 0),
        "rank": WindowFunction(_rank(_NUMBER), 0, 0),
        "dense_rank": WindowFunction(_rank(_NUMBER), 0, 0),
        "rank_dense": WindowFunction(lambda n, a: AggregateCall("dense_rank", (), _NUMBER), 0, 0),
        "percent_rank": WindowFunction(_rank(pa.float64()), 0, 0),
        "cume_dist": WindowFunction(_rank(pa.float64()), 0, 0),
        "ntile": WindowFunction(_tiles, 1, 1),
        "lag": WindowFunction(_neighbour, 1, 3, nulls=True),
        "lead": WindowFunction(_neighbour, 1, 3, nulls=True),
        "first_value": WindowFunction(_in_frame("first_value"), 1, 1, nulls=True),
        "first": WindowFunction(_in_frame("first_value"), 1, 1, nulls=True),
        "last_value": WindowFunction(_in_frame("last_value"), 1, 1, nulls=True),
        "last": WindowFunction(_in_frame("last_value"), 1, 1, nulls=True),
        "nth_value": WindowFunction(_in_frame("nth_value"), 2, 2, nulls=True),
    }
)
