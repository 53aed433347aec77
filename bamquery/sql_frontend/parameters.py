"""Parameters: `?`, `$1` and `$name` in a text, and the Python values that take their places."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from sqlglot import exp

from bamquery.errors import SqlError
from bamquery.plan.literals import interval_strings
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.sql_text import require_whole
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.walking import walk
from bamquery.text.identifiers import fold_case

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

_MARK: Final = "parameter"
_TYPE: Final = "type"
_VARIABLE: Final = "variable"
_NAMED: Final = (exp.Table, exp.TableAlias, exp.Column, exp.Dot, exp.Schema, exp.Drop, exp.ColumnDef)
"""What has names only below it, and"""
_NAMES: Final = frozenset(
    {(exp.Alias, "alias"), (exp.Join, "using"), (exp.Anonymous, "this"), (exp.Star, "except_")}
)
"""what has a name there."""
_MOST_DIGITS: Final = 38
_NULLS: Final = ("NaTType", "NAType")  # of pandas, which need not be there


def fill(
    trees: Sequence[exp.Expr],
    sql: str,
    parameters: Parameters | None,
    has_variable: Callable[[str], bool] = lambda name: False,
) -> None:
    """Put values in the places of all parameters.

    A value is what the same constant in the text would be: an int the smallest INTEGER or BIGINT that holds
    it, a str a text that takes the type of what it meets. Of a name without a value that is a variable's, or
    that the text makes one, it is the call of getvariable() that asks for it.

    Raises:
        SqlError: values that are missing, too many, or of types that SQL has none for; all of them.
    """
    found = [node for tree in trees for node in walk(tree) if isinstance(node, exp.Placeholder)]
    found.sort(key=lambda node: int(node.meta["start"]))
    names = _names(found, sql)
    values = _values(() if parameters is None else parameters)
    by_folded = {fold_case(name): name for name in values}
    used = set(map(fold_case, names))
    set_here = {fold_case(tree.this.name) for tree in trees if isinstance(tree, syntax.SetVariable)}

    def call_of_variable(name: str) -> exp.Expr | None:
        if name.isdigit() or (fold_case(name) not in set_here and not has_variable(name)):
            return None
        call = exp.Anonymous(this="getvariable", expressions=[exp.Literal.string(name)])
        call.meta[_VARIABLE] = True
        return call

    def place(item: tuple[exp.Expr, str]) -> None:
        node, name = item
        with errors_at(sql, node):
            known = by_folded.get(fold_case(name))
            value = call_of_variable(name) if known is None else _literal(values[known])
            if value is None:
                given = ", ".join(map(_placeholder, values)) if values else "none"
                raise ValueError(f"there is no value for parameter {_placeholder(name)}: params has {given}")
        for part in value.walk():
            part.meta.update({key: node.meta[key] for key in ("start", "end") if key in node.meta})
        value.meta[_MARK] = _placeholder(name)
        # In parentheses: what it stands for is a value, also where a number would mean a column.
        node.replace(exp.Paren(this=value))

    apply_to_each(place, list(zip(found, names, strict=True)), sql)
    left = [name for name in values if fold_case(name) not in used]
    if left:
        listed = ", ".join(_placeholder(name) for name in left)
        raise SqlError(f"there is no parameter {listed} in the text, but a value for it", sql)


def parameter_names(sql: str) -> tuple[str, ...]:
    """Names of the parameters that a text has, or their numbers as text, in order; each once.

    Raises:
        SqlError: it cannot be parsed, or has names and numbers.
    """
    found = [node for tree in parse(sql) for node in walk(tree) if isinstance(node, exp.Placeholder)]
    found.sort(key=lambda node: int(node.meta["start"]))
    names = dict.fromkeys(_names(found, sql))
    return tuple(sorted(names, key=lambda name: int(name) if name.isdigit() else 0))


def mark(node: exp.Expr) -> str | None:
    """How the parameter was written that the value stands for; None for what is no parameter's value."""
    found: str | None = node.meta.get(_MARK)
    return found


def is_variable(node: exp.Expr) -> bool:
    """Whether a call stands for a variable that was written as a parameter: there has to be one."""
    return _VARIABLE in node.meta


def constant(value: Any) -> exp.Expr:
    """A Python value as what it is in a text, where a place takes constants of the text only.

    Raises:
        ValueError: no type of SQL holds it.
    """
    return exp.Paren(this=_literal(value))


def literal_text(value: Any) -> str:
    """A Python value as SQL: the constant that it is as a parameter.

    Raises:
        ValueError: no type of SQL holds it.
    """
    match _literal(value):
        case exp.Cast(this=text) as cast:
            return f"CAST({_quote_string(text.this)} AS {cast.meta[_TYPE]})"
        case exp.Neg(this=number):
            return f"-{number.this}"
        case exp.Literal(is_string=True) as text:
            return _quote_string(text.this)
        case exp.Literal() as number:
            return str(number.this)
        case exp.Boolean(this=truth):
            return "TRUE" if truth else "FALSE"
        case _:
            return "NULL"


def _quote_string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _names(found: Sequence[exp.Expr], sql: str) -> list[str]:
    """Of each parameter its name, or its number from 1 as text."""
    names: list[str] = []
    unnumbered = 0
    for node in found:
        with errors_at(sql, node):
            if (type(node.parent), node.arg_key) in _NAMES or isinstance(node.parent, _NAMED):
                raise ValueError("a parameter stands for a value, not for a name")
            own = str(node.args.get("this") or "").removeprefix('"').removesuffix('"')  # $"a name"
            unnumbered += not own
            names.append(own or str(unnumbered))
            if names[-1].isdigit() != names[0].isdigit():
                raise ValueError("parameters with and without names cannot be mixed")
    return names


def require_parameters(parameters: object) -> None:
    """See that the values of parameters are a list or a dict, or that there are none.

    Raises:
        TypeError: they are something else.
    """
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, (Iterable, type(None))):
        raise TypeError(f"params is a list of values or a dict by name, not {type(parameters).__name__}")


def _values(parameters: Parameters) -> dict[str, Any]:
    require_parameters(parameters)
    if isinstance(parameters, Mapping):
        return {str(name): value for name, value in parameters.items()}
    return {str(number): value for number, value in enumerate(parameters, 1)}


def _placeholder(name: str) -> str:
    return f"${name}"


def _literal(value: Any) -> exp.Expr:
    """The value as a constant of the syntax tree.

    Raises:
        ValueError: no type of SQL holds it.
    """
    if value is None or type(value).__name__ in _NULLS:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if hasattr(value, "as_py"):  # a pyarrow scalar
        return _literal(value.as_py())
    for kind, convert in _CONVERT.items():
        if isinstance(value, kind):
            return convert(value)
    if type(value).__module__.split(".")[0] == "numpy" and getattr(value, "shape", None) == ():
        return _from_numpy(value)
    raise _unknown(value)


def _unknown(value: Any, way_out: str = "") -> ValueError:
    return ValueError(f"a parameter cannot be of Python's type {type(value).__name__}{way_out}")


def _from_numpy(value: Any) -> exp.Expr:
    """The Python value of a scalar of numpy's, whose units may be finer, or longer, than Python's."""
    found, kind = value.item(), value.dtype.kind
    if isinstance(found, type(value)):
        raise _unknown(value)
    if kind == "M" and isinstance(found, int):
        if value.dtype.name != "datetime64[ns]":
            raise ValueError(
                f"a parameter cannot be a {value.dtype.name} that Python's datetime does not hold"
            )
        return _typed_literal(str(value).replace("T", " "), "TIMESTAMP_NS")
    if kind == "m" and isinstance(found, int):
        raise ValueError(
            f"a parameter cannot be a {value.dtype.name}: astype('timedelta64[us]') makes one that can"
        )
    return _literal(found)


def _integer(value: int) -> exp.Expr:
    if len(str(abs(value))) > _MOST_DIGITS:
        raise ValueError(f"a parameter's number cannot have more than {_MOST_DIGITS} digits")
    number = exp.Literal.number(str(abs(value)))
    return exp.Neg(this=number) if value < 0 else number


def _float(value: float) -> exp.Expr:
    text = "nan" if math.isnan(value) else repr(float(value))  # numpy's are floats that show their type
    return _typed_literal(text, "DOUBLE")


def _decimal(value: Decimal) -> exp.Expr:
    if not value.is_finite():
        raise ValueError(f"a parameter cannot be the Decimal {value}")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    width = len(digits) + max(exponent, 0)
    width = width if width >= scale else scale + 1
    if width > _MOST_DIGITS:
        raise ValueError(f"a parameter's number cannot have more than {_MOST_DIGITS} digits")
    return _typed_literal(format(value, "f"), f"DECIMAL({width}, {scale})")


def _datetime(value: datetime.datetime) -> exp.Expr:
    if value.tzinfo is None:
        return _typed_literal(value.isoformat(" "), "TIMESTAMP")
    return _typed_literal(value.astimezone(datetime.UTC).isoformat(" "), "TIMESTAMPTZ")


def _time(value: datetime.time) -> exp.Expr:
    if value.tzinfo is not None:
        raise ValueError("a parameter cannot be a time with a zone")
    return _typed_literal(value.isoformat(), "TIME")


def _timedelta(value: datetime.timedelta) -> exp.Expr:
    if getattr(value, "nanoseconds", 0):
        raise ValueError("a parameter cannot be a Timedelta with nanoseconds: round('us') makes one that can")
    micros = value.seconds * 10**6 + value.microseconds
    return _typed_literal(interval_strings.write(0, value.days, micros), "INTERVAL")


def _bytes(value: bytes | bytearray | memoryview) -> exp.Expr:
    return _typed_literal("".join(f"\\x{byte:02X}" for byte in bytes(value)), "BLOB")


def _uuid(value: uuid.UUID) -> exp.Expr:
    raise _unknown(value, ", there is no type for it: pass str() of it")


def _text(value: str) -> exp.Expr:
    require_whole(value)
    return exp.Literal.string(value)


def _typed_literal(text: str, kind: str) -> exp.Expr:
    node = exp.Cast(this=exp.Literal.string(text), to=_type_syntax(kind).copy())
    node.meta[_TYPE] = kind
    return node


@lru_cache(64)
def _type_syntax(kind: str) -> exp.DataType:
    """The type's tree, to be copied: it is parsed."""
    return exp.DataType.build(kind, dialect="duckdb")


_CONVERT: Final[Mapping[type[Any], Callable[[Any], exp.Expr]]] = MappingProxyType(
    {
        int: _integer,
        float: _float,
        str: _text,
        Decimal: _decimal,
        datetime.datetime: _datetime,  # before date, of which it is a kind
        datetime.date: lambda value: _typed_literal(value.isoformat(), "DATE"),
        datetime.time: _time,
        datetime.timedelta: _timedelta,
        bytes: _bytes,
        bytearray: _bytes,
        memoryview: _bytes,
        uuid.UUID: _uuid,
    }
)
