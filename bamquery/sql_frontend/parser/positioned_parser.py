"""sqlglot's DuckDB parser with a place in the text for every construct, and errors that know their token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from bamquery.errors import Reason, SqlError
from bamquery.sql_frontend.syntax.positions import line_and_column
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.statement_context.limits import depth_message, statement_limits

_CONSTANTS: Final = frozenset({TokenType.NUMBER, TokenType.STRING})
_ENDS: Final = frozenset({TokenType.COMMA, TokenType.R_PAREN})


class PlacedError(ParseError):
    """A syntax error with the token it was met at (None at the end of the text)."""

    def __init__(self, message: str, token: Token | None) -> None:
        super().__init__(message, [{}])  # sqlglot adds to the first where it tries other ways
        self.token = token


def _place_clause(parse: Callable[[Any], tuple[str, Any]]) -> Callable[[Any], tuple[str, Any]]:
    """The clause parser, its result placed at the clause's keyword."""

    def parse_and_place(parser: PositionedParser) -> tuple[str, Any]:
        token = parser._curr
        key, clause = parse(parser)
        for node in clause if isinstance(clause, list) else [clause]:
            if isinstance(node, exp.Expr):
                node.update_positions(token)
        return key, clause

    return parse_and_place


def _place_at(node: Any, token: Token) -> Any:
    """The node, placed at the token unless it has a place."""
    if isinstance(node, exp.Expr) and "start" not in node.meta:
        node.update_positions(token)
    return node


class PositionedParser(DuckDBParser):
    """Places what sqlglot does not: clauses, joins and other constructs at their first token."""

    QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
        token_type: _place_clause(parser)
        for token_type, parser in DuckDBParser.QUERY_MODIFIER_PARSERS.items()
    }

    _level = 0  # expressions and queries that are being parsed, one within the other

    def _begin_level(self, token: Token) -> None:
        check_cancelled()
        self._level += 1
        most = statement_limits().max_expression_depth
        if self._level > most:
            place = line_and_column(self.sql, token.start if token else len(self.sql.rstrip()))
            raise SqlError(Reason(depth_message(most), *place), self.sql)

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Stop with the token in hand; the first error is the one that counts."""
        raise PlacedError(message, token or self._curr or None)

    def _warn_unsupported(self) -> None:
        """Nothing: what sqlglot only half knows is refused with a reason, not logged."""

    # Each method below is one frame a level of nesting; Python allows a thousand.

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        if token.token_type != TokenType.L_PAREN:  # a query within one stands in parentheses
            return _place_at(super()._parse_select(*args, **kwargs), token)
        self._begin_level(token)
        try:
            return _place_at(super()._parse_select(*args, **kwargs), token)
        finally:
            self._level -= 1

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        return _place_at(super()._parse_join(*args, **kwargs), token)

    def _parse_with(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        return _place_at(super()._parse_with(*args, **kwargs), token)

    def _parse_lateral(self) -> Any:
        token = self._curr
        return _place_at(super()._parse_lateral(), token)

    def _parse_table_sample(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        return _place_at(super()._parse_table_sample(*args, **kwargs), token)

    def _parse_pivot(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        return _place_at(super()._parse_pivot(*args, **kwargs), token)

    def _parse_placeholder(self) -> Any:
        token = self._curr
        return _place_at(super()._parse_placeholder(), token)

    def _parse_primary(self) -> Any:
        token = self._curr
        return _place_at(super()._parse_primary(), token)

    def _parse_select_or_expression(self, alias: bool = False) -> Any:
        constant = self._parse_constant()
        return super()._parse_select_or_expression(alias) if constant is None else constant

    def _parse_disjunction(self) -> Any:
        constant = self._parse_constant()
        return super()._parse_disjunction() if constant is None else constant

    def _parse_constant(self) -> Any:
        # Of a long list most items are this; the way down to a constant takes a dozen calls.
        token = self._curr
        if token.token_type not in _CONSTANTS or self._next.token_type not in _ENDS:
            return None
        check_cancelled()
        self._advance()
        parse: Callable[..., Any] = self.PRIMARY_PARSERS[token.token_type]
        return _place_at(parse(self, token), token)

    def _parse_unary(self) -> Any:
        token = self._curr
        self._begin_level(token)
        try:
            operand = _place_at(super()._parse_unary(), token)
        finally:
            self._level -= 1
        while self._curr.text == "!" and self._curr.token_type == TokenType.NOT:
            if operand is None or (self._next and self._next.text.startswith("~")):  # !~
                break
            self._advance()
            operand = _place_at(exp.Anonymous(this="factorial", expressions=[operand]), token)
        return operand

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        return _place_at(super()._parse_types(*args, **kwargs), token)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        return _place_at(super()._parse_function_call(*args, **kwargs), token)

    def parse_set_operation(self, *args: Any, **kwargs: Any) -> Any:
        """UNION, INTERSECT or EXCEPT, placed at that word."""
        token = self._curr
        return _place_at(super().parse_set_operation(*args, **kwargs), token)
