"""Parameters: `?`, `$1` and `$name` in a text, and the Python values that take their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from sqlglot import exp

from bamquery.errors import SqlError
from bamquery.plan.assumptions import Assumptions
from bamquery.sql_frontend import parameter_values
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.parameter_values import ParameterValue
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.walking import walk
from bamquery.sql_frontend.text_constants import mark_given
from bamquery.text.identifiers import fold_case

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

_MARK: Final = "parameter"
_VARIABLE: Final = "variable"
_NAMED: Final = (exp.Table, exp.TableAlias, exp.Column, exp.Dot, exp.Schema, exp.Drop, exp.ColumnDef)
"""What has names only below it, and"""
_NAMES: Final = frozenset(
    {(exp.Alias, "alias"), (exp.Join, "using"), (exp.Anonymous, "this"), (exp.Star, "except_")}
)
"""what has a name there."""


def fill(
    trees: Sequence[exp.Expr],
    sql: str,
    parameters: Parameters | None,
    has_variable: Callable[[str], bool] = lambda name: False,
    assumptions: Assumptions | None = None,
) -> None:
    """Put values in the places of all parameters.

    A value is what the same constant in the text would be: an int the smallest INTEGER or BIGINT that holds
    it, a str a text that takes the type of what it meets. Of a name without a value that is a variable's, or
    that the text makes one, it is the call of getvariable() that asks for it.

    `assumptions` are where to note what is assumed of the values, by their places among all that are given.

    Raises:
        SqlError: values that are missing, too many, or of types that SQL has none for; all of them.
    """
    found = [node for tree in trees for node in walk(tree) if isinstance(node, exp.Placeholder)]
    found.sort(key=lambda node: int(node.meta["start"]))
    names = _names(found, sql)
    values = {} if parameters is None else values_by_name(parameters)
    numbers = {name: number for number, name in enumerate(values)}
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
            if known is None:
                value = call_of_variable(name)
            else:
                value = _literal(ParameterValue.from_python(values[known]))
                if assumptions is not None:
                    mark_given(value, assumptions, numbers[known])
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
    return exp.Paren(this=_literal(ParameterValue.from_python(value)))


def literal_text(value: Any) -> str:
    """A Python value as SQL: the constant that it is as a parameter.

    Raises:
        ValueError: no type of SQL holds it.
    """
    found = ParameterValue.from_python(value)
    match found.kind:
        case parameter_values.NULL | parameter_values.TRUE | parameter_values.FALSE:
            return found.kind
        case parameter_values.NUMBER:
            return found.words
        case parameter_values.NEGATIVE:
            return f"-{found.words}"
        case parameter_values.STRING:
            return _quote_string(found.words)
    return f"CAST({_quote_string(found.words)} AS {found.kind})"


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


def values_by_name(parameters: Parameters) -> dict[str, Any]:
    """Values by the names of their parameters, or by their numbers from 1 as text.

    Raises:
        TypeError: it is neither a list nor a dict.
    """
    require_parameters(parameters)
    if isinstance(parameters, Mapping):
        return {str(name): value for name, value in parameters.items()}
    return {str(number): value for number, value in enumerate(parameters, 1)}


def _placeholder(name: str) -> str:
    return f"${name}"


def _literal(value: ParameterValue) -> exp.Expr:
    """The value as a constant of the syntax tree."""
    match value.kind:
        case parameter_values.NULL:
            return exp.Null()
        case parameter_values.TRUE | parameter_values.FALSE:
            return exp.Boolean(this=value.kind == parameter_values.TRUE)
        case parameter_values.NUMBER:
            return exp.Literal.number(value.words)
        case parameter_values.NEGATIVE:
            return exp.Neg(this=exp.Literal.number(value.words))
        case parameter_values.STRING:
            return exp.Literal.string(value.words)
    return exp.Cast(this=exp.Literal.string(value.words), to=_type_syntax(value.kind).copy())


@lru_cache(64)
def _type_syntax(kind: str) -> exp.DataType:
    """The type's tree, to be copied: it is parsed."""
    return exp.DataType.build(kind, dialect="duckdb")
