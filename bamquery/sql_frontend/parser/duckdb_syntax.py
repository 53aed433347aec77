"""Syntax that DuckDB has and sqlglot has not: put in other words, or kept to be refused by name."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

from bamquery.sql_frontend.parser.positioned_parser import PositionedParser
from bamquery.sql_frontend.syntax import ast_nodes as syntax


def _matches_any_case(parser: ForeignSyntaxParser, this: exp.Expr | None) -> exp.Expr:
    """`text ~* pattern`, after the operator."""
    pattern, options = parser._parse_bitwise(), exp.Literal.string("i")
    return exp.Anonymous(this="regexp_matches", expressions=[this, pattern, options])


class ForeignSyntaxParser(PositionedParser):
    """Reads what would be a syntax error to sqlglot, or a name."""

    RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
        **{
            token_type: parser
            for token_type, parser in DuckDBParser.RANGE_PARSERS.items()
            if token_type != TokenType.RLIKE  # REGEXP is MySQL's
        },
        TokenType.IRLIKE: _matches_any_case,
    }

    def _parse_escape(self, this: Any) -> Any:
        if not self._match(TokenType.ESCAPE):
            return this
        token = self._curr
        character = self._parse_string() or self._parse_null()
        if character is None:
            self._parse_bitwise()
            return self._refuse("ESCAPE with anything but a text in quotes", token)
        return self.expression(exp.Escape(this=this, expression=character))

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        window = super()._parse_window(this, alias)
        token = self._curr
        if not alias and token.token_type == TokenType.VAR and self._match_text_seq("EXPORT_STATE"):
            return super()._parse_window(self._refuse("EXPORT_STATE", token))
        return window

    def _parse_alias(self, this: Any, explicit: bool = False) -> Any:
        # Behind AS any word is a name.
        token, following = self._curr, self._next
        reserved = (
            following is not None
            and following.text.isidentifier()
            and following.token_type not in (*self.ID_VAR_TOKENS, TokenType.STRING, TokenType.IDENTIFIER)
        )
        if token.token_type == TokenType.ALIAS and following and following.token_type == TokenType.NUMBER:
            self.raise_error("Expecting a name", following)
        if token.token_type == TokenType.ALIAS and reserved and this is not None:
            self._advance(2)
            name = exp.to_identifier(following.text, quoted=True)
            name.update_positions(following)
            return self.expression(exp.Alias(this=this, alias=name))
        return super()._parse_alias(this, explicit)

    def _parse_bracket(self, this: Any = None) -> Any:
        typed = self._prev.token_type not in (TokenType.R_PAREN, TokenType.STRING) if self._prev else False
        if isinstance(this, exp.Cast) and typed and self._curr.token_type == TokenType.L_BRACKET:
            self.raise_error("Expecting parentheses around the cast")
        return super()._parse_bracket(this)

    def _parse_expression(self) -> Any:
        if self._curr.token_type == TokenType.STRING and self._next and self._next.text == ":":
            self.raise_error("", self._next)  # a name before a colon stands in double quotes, if any
        return super()._parse_expression()

    def _parse_wrapped_id_vars(self, *args: Any, **kwargs: Any) -> list[Any]:
        if self._prev.text.upper() == "KEY":  # USING KEY, which takes aggregates, too
            return list(self._parse_wrapped_csv(self._parse_disjunction))
        return list(super()._parse_wrapped_id_vars(*args, **kwargs))

    def _parse_column_def(self, this: Any, computed_column: bool = True) -> Any:
        if self._curr.text.upper() == "GENERATED" and self._next and self._next.text.upper() == "ALWAYS":
            constraint = self._parse_column_constraint()  # of a column without a type
            return self.expression(exp.ColumnDef(this=this, constraints=[constraint]))
        return super()._parse_column_def(this, computed_column)

    def _parse_column_constraint(self) -> Any:
        token = self._curr
        if self._match_text_seq("USING", "COMPRESSION"):
            self._parse_id_var()
            return self.expression(exp.ColumnConstraint(kind=self._refuse("COMPRESSION of a column", token)))
        return super()._parse_column_constraint()

    def _parse_generated_as_identity(self) -> Any:
        constraint = super()._parse_generated_as_identity()
        self._match_texts(("STORED", "VIRTUAL"))
        return constraint

    def _refuse(self, words: str, token: Any) -> syntax.Refused:
        node = syntax.Refused(this=words)
        node.update_positions(token)
        return node
