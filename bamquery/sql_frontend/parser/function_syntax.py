"""Functions whose arguments are not a list: CAST(x AS t), EXTRACT(part FROM x), POSITION(a IN b)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

from bamquery.sql_frontend.parser.reserved_words import PARTS

if TYPE_CHECKING:
    from bamquery.sql_frontend.parser.strict_parser import StrictParser

_FROM_SQLGLOT = ("CAST", "TRY_CAST", "SUBSTRING", "TRIM", "OVERLAY")


def _require_closing(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function parser, with a closing parenthesis that sqlglot takes as optional."""

    def parse_closed(parser: StrictParser) -> Any:
        node = parse(parser)
        if not parser._match(TokenType.R_PAREN, advance=False):
            parser.raise_error("Expecting )")
        return node

    return parse_closed


def _position(parser: StrictParser) -> Any:
    """What follows `position(`: a IN b, but for the name in quotes, which is a function like any other."""
    if parser._tokens[parser._index - 2].token_type == TokenType.IDENTIFIER:
        arguments = parser._parse_csv(parser._parse_disjunction)
        return parser.expression(exp.Anonymous(this="position", expressions=arguments))
    part = parser._parse_bitwise()
    if part is None or not parser._match(TokenType.IN):
        parser.raise_error("Expecting POSITION(part IN text)")
    return parser.expression(exp.StrPosition(this=parser._parse_bitwise(), substr=part))


def _extract(parser: StrictParser) -> Any:
    """What follows `extract(`: a part's name, FROM and what it is a part of."""
    token = parser._curr
    named = parser._parse_string() or parser._parse_id_var()
    if named is None or not parser._match(TokenType.FROM):
        parser.raise_error("Expecting EXTRACT(part FROM value)")
    plain = token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
    part = exp.var(PARTS.get(named.name.lower(), named.name) if plain else named.name)
    part.update_positions(token)
    return parser.expression(exp.Extract(this=part, expression=parser._parse_bitwise()))


def _date(parser: StrictParser) -> Any:
    """What follows `date(`: DuckDB's other way to write a cast."""
    value = parser._parse_disjunction()
    return parser.expression(exp.Cast(this=value, to=exp.DataType(this=exp.DType.DATE)))


FUNCTIONS_WITH_SYNTAX: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        **{name: _require_closing(DuckDBParser.FUNCTION_PARSERS[name]) for name in _FROM_SQLGLOT},
        "DATE": _require_closing(_date),
        "EXTRACT": _require_closing(_extract),
        "POSITION": _require_closing(_position),
    }
)
"""What reads the arguments of each, up to the closing parenthesis."""
