"""Text to syntax trees: sqlglot's DuckDB dialect, made stricter and with a place for every construct.

Function calls stay as they were written (sqlglot would give `mean` and `avg` one name); clauses, joins and
statements carry the position of their first token; syntax errors say what was met and where.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from bamquery.errors import Reason, SqlError
from bamquery.naming import suggestion
from bamquery.sql import syntax
from bamquery.sql.positions import line_and_column

STATEMENT_KEYWORDS = (
    *("SELECT", "FROM", "VALUES", "CREATE", "INSERT", "DROP", "DESCRIBE", "SHOW", "EXPLAIN", "SET"),
    *("OPTIMIZE", "VACUUM"),
)
"""What statements that BamQuery runs begin with."""

_FOREIGN_STATEMENTS = (
    *("CALL", "CHECKPOINT", "DEALLOCATE", "EXECUTE", "EXPORT", "FORCE", "IMPORT", "INSTALL", "LOAD"),
    *("PREPARE", "RESET", "SUMMARIZE", "USE"),
)
"""Statements of DuckDB that sqlglot knows poorly or not at all."""

_FUNCTIONS_WITH_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY")
_CLAUSE_ORDER = ("where", "group", "having", "windows", "qualify", "order", "limit", "offset", "sample")


class _PlacedError(ParseError):
    """A syntax error with the token it was met at (None at the end of the text)."""

    token: Token | None = None


def _placed_clause(parse: Callable[[Any], tuple[str, Any]]) -> Callable[[Any], tuple[str, Any]]:
    """The clause parser, its result placed at the clause's keyword."""

    def placed(parser: Any) -> tuple[str, Any]:
        token = parser._curr
        key, clause = parse(parser)
        for node in clause if isinstance(clause, list) else [clause]:
            if isinstance(node, exp.Expr):
                node.update_positions(token)
        return key, clause

    return placed


class _Parser(DuckDBParser):
    """sqlglot's parser with the differences this module's description lists."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser
        for name, parser in DuckDBParser.FUNCTION_PARSERS.items()
        if name in _FUNCTIONS_WITH_SYNTAX
    }
    QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
        token_type: _placed_clause(parser)
        for token_type, parser in DuckDBParser.QUERY_MODIFIER_PARSERS.items()
    }

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Stop with the token in hand; the first error is the one that counts."""
        error = _PlacedError(message, [{}])  # sqlglot adds to the first where it tries other ways
        error.token = token or self._curr or None
        raise error

    def _warn_unsupported(self) -> None:
        """Nothing: what sqlglot only half knows is refused with a reason, not logged."""

    def _placed(self, parse: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        node = parse(*args, **kwargs)
        if isinstance(node, exp.Expr) and "start" not in node.meta:
            node.update_positions(token)
        return node

    def _parse_query_modifiers(self, this: Any) -> Any:
        this = super()._parse_query_modifiers(this)
        if isinstance(this, exp.Query):
            clauses = [this.args[name] for name in _CLAUSE_ORDER if isinstance(this.args.get(name), exp.Expr)]
            placed = [clause for clause in clauses if "start" in clause.meta]
            for before, after in pairwise(placed):
                if {before.key, after.key} != {"limit", "offset"} and (
                    after.meta["start"] < before.meta["start"]
                ):
                    self.raise_error("", self._token_at(before.meta["start"]))
        return this

    def _token_at(self, offset: int) -> Token:
        return next(token for token in self._tokens if token.start == offset)

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super()._parse_select, *args, **kwargs)

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super()._parse_join, *args, **kwargs)

    def _parse_with(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super()._parse_with, *args, **kwargs)

    def _parse_lateral(self) -> Any:
        return self._placed(super()._parse_lateral)

    def _parse_table_sample(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super()._parse_table_sample, *args, **kwargs)

    def _parse_pivot(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super()._parse_pivot, *args, **kwargs)

    def _parse_primary(self) -> Any:
        return self._placed(super()._parse_primary)

    def _parse_unary(self) -> Any:
        return self._placed(super()._parse_unary)

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super()._parse_types, *args, **kwargs)

    def _parse_function(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super()._parse_function, *args, **kwargs)

    def parse_set_operation(self, *args: Any, **kwargs: Any) -> Any:
        return self._placed(super().parse_set_operation, *args, **kwargs)

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        # sqlglot takes the AND as optional.
        symmetric = self._match_text_seq("SYMMETRIC")
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            self.raise_error("Expecting AND")
        high = self._parse_bitwise()
        return self.expression(exp.Between(this=this, low=low, high=high, symmetric=symmetric))

    def _parse_statement(self) -> exp.Expr | None:
        token = self._curr
        if not token:
            return None
        keyword = "" if token.token_type == TokenType.IDENTIFIER else token.text.upper()
        if keyword in _STATEMENTS:
            self._advance()
            statement: exp.Expr | None = _STATEMENTS[keyword](self)
        elif keyword in _FOREIGN_STATEMENTS:
            self._advance(self._tokens_size - self._index)
            statement = syntax.Foreign(this=keyword)
        else:
            known = token.token_type in self.STATEMENT_PARSERS
            statement = super()._parse_statement()
            if not known and not isinstance(statement, (exp.Query, exp.Values, exp.DML)):
                self.raise_error(f"no statement begins so.{suggestion(keyword, STATEMENT_KEYWORDS)}", token)
        if statement is not None and "start" not in statement.meta:
            statement.update_positions(token)
        return statement

    def _parse_explain(self) -> syntax.Explain:
        analyze = self._match_text_seq("ANALYZE")
        this = self._parse_statement()
        if this is None:
            self.raise_error("Expecting a statement")
        return syntax.Explain(this=this, analyze=analyze)

    def _parse_optimize(self) -> syntax.Optimize:
        self._match(TokenType.TABLE)
        this = self._parse_name()
        columns = None
        if self._match(TokenType.CLUSTER_BY):
            wrapped = self._match(TokenType.L_PAREN)
            columns = self._parse_csv(self._parse_name)
            if wrapped:
                self._match_r_paren()
        return syntax.Optimize(this=this, columns=columns)

    def _parse_vacuum(self) -> syntax.Vacuum:
        return syntax.Vacuum()

    def _parse_setting(self) -> syntax.SetSetting:
        name = self._parse_name()
        if not (self._match(TokenType.EQ) or self._match_text_seq("TO")):
            self.raise_error("Expecting = or TO")
        value = self._parse_unary()
        if value is None:
            value = self._parse_var(any_token=True)
        if value is None:
            self.raise_error("Expecting a value")
        return syntax.SetSetting(this=name, expression=value)

    def _parse_name(self) -> exp.Identifier:
        name = self._parse_id_var()
        if not isinstance(name, exp.Identifier):
            self.raise_error("Expecting a name")
        return name


_STATEMENTS: dict[str, Callable[[_Parser], exp.Expr]] = {
    "EXPLAIN": _Parser._parse_explain,
    "OPTIMIZE": _Parser._parse_optimize,
    "VACUUM": _Parser._parse_vacuum,
    "SET": _Parser._parse_setting,
}


class _Dialect(DuckDB):
    """DuckDB, but no statement is taken as a mere string."""

    class Tokenizer(DuckDB.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = _Parser


def parse(sql: str) -> list[exp.Expr]:
    """The statements of a text, without the empty ones between semicolons.

    Raises:
        SqlError: the text is not SQL; with line and column.
    """
    dialect = _Dialect()
    try:
        tokens = dialect.tokenize(sql)
        return [tree for tree in _Parser(dialect=dialect).parse(tokens, sql) if tree is not None]
    except TokenError as error:
        place = line_and_column(sql, len(sql.rstrip()))
        raise SqlError(Reason("syntax error: a quote or comment is not closed", *place), sql) from error
    except _PlacedError as error:
        raise SqlError(_reason(error, sql), sql) from error
    except RecursionError:
        raise SqlError("The statement is nested too deeply.", sql) from None


def _reason(error: _PlacedError, sql: str) -> Reason:
    hint = str(error)
    # sqlglot's other messages speak of its own classes.
    ours = hint.startswith(("Expecting", "Found", "no statement"))
    hint = f": {hint[0].lower()}{hint[1:]}" if ours else ""
    if error.token is None:
        return Reason(f"syntax error at the end{hint}", *line_and_column(sql, len(sql.rstrip())))
    text = sql[error.token.start : error.token.end + 1]
    return Reason(f"syntax error at {text}{hint}", *line_and_column(sql, error.token.start))
