"""Text to syntax trees: sqlglot's DuckDB dialect, and its errors in words."""

from __future__ import annotations

import sqlglot.parser
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from bamquery.errors import BamQueryError, Reason, SqlError, too_deep
from bamquery.sql_frontend.parser.dialect import BamQueryDialect
from bamquery.sql_frontend.parser.literal_scanner import LiteralError
from bamquery.sql_frontend.parser.positioned_parser import PlacedError
from bamquery.sql_frontend.parser.strict_parser import StrictParser
from bamquery.sql_frontend.syntax.dismantling import dismantle_unfinished
from bamquery.sql_frontend.syntax.positions import line_and_column
from bamquery.statement_context.deep_recursion import with_deep_recursion
from bamquery.text.statement_text import StatementText


def parse(sql: str) -> list[exp.Expr]:
    """The statements of a text, without the empty ones between semicolons.

    Raises:
        SqlError: the text is not SQL; with line and column.
        BamQueryError: sqlglot is there in a form that cannot be extended.
    """
    if _is_compiled(sqlglot.parser.__file__):
        raise BamQueryError(
            "sqlglot is compiled here, and BamQuery's parser cannot extend it so: pip uninstall sqlglotc"
        )
    try:
        trees = with_deep_recursion(lambda: _trees(sql))
        # A comment after the last semicolon comes as a tree of its own.
        return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    except TokenError as error:
        if isinstance(error.__cause__, BamQueryError):  # it was cancelled
            stopped, error.__cause__ = error.__cause__, None  # or each would keep the other
            raise stopped from None
        if isinstance(error.__cause__, LiteralError):
            place = line_and_column(sql, error.__cause__.offset)
            raise SqlError(Reason(f"syntax error: {error.__cause__}", *place), sql) from error
        place = line_and_column(sql, len(sql.rstrip()))
        raise SqlError(Reason("syntax error: a quote or comment is not closed", *place), sql) from error
    except PlacedError as error:
        raise SqlError(_reason(error, sql), sql) from error
    except (ParseError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # sqlglot stumbles over some texts that are not SQL.
        raise SqlError("syntax error: this cannot be made sense of", sql) from error
    except RecursionError:
        raise too_deep(sql) from None


def _trees(sql: str) -> list[exp.Expr | None]:
    dialect = BamQueryDialect()
    tokens = dialect.tokenize(sql)
    try:
        return StrictParser(dialect=dialect).parse(tokens, sql)
    except BaseException as error:
        dismantle_unfinished(error)
        raise


def strip_trailing_semicolons(sql: str) -> str:
    """A statement that was parsed before, without the semicolons behind it and what stands behind them."""
    tokens = BamQueryDialect().tokenize(sql)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return sql[: tokens[-1].end + 1] if tokens else sql


def _is_compiled(file: str | None) -> bool:
    return file is not None and not file.endswith(".py")


def _reason(error: PlacedError, sql: str) -> Reason:
    hint = str(error)
    # sqlglot's other messages speak of its own classes.
    ours = hint.startswith(("Expecting", "Found", "no statement"))
    hint = f": {hint[0].lower()}{hint[1:]}" if ours else ""
    if error.token is None:
        return Reason(f"syntax error at the end{hint}", *line_and_column(sql, len(sql.rstrip())))
    line, _ = line_and_column(sql, error.token.start)
    if isinstance(sql, StatementText) and not sql.is_written_by_user(line):
        return Reason("syntax error at the end", line)
    text = sql[error.token.start : error.token.end + 1]
    return Reason(f"syntax error at {text}{hint}", *line_and_column(sql, error.token.start))
