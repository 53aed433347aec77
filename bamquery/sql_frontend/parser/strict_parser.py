"""The parser, stricter than sqlglot where that would pass over what it does not expect.

Function calls stay as they were written: sqlglot would give `mean` and `avg` one name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from bamquery.sql_frontend.parser import catalog_statements as catalog_parser
from bamquery.sql_frontend.parser import statement_parser
from bamquery.sql_frontend.parser.duckdb_syntax import ForeignSyntaxParser
from bamquery.sql_frontend.parser.function_syntax import FUNCTIONS_WITH_SYNTAX
from bamquery.sql_frontend.parser.reserved_words import FOREIGN_STATEMENTS, RESERVED, STATEMENT_KEYWORDS
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.positions import start
from bamquery.text.identifiers import suggestion

_QUERY_STARTS = ("SELECT", "FROM", "VALUES", "WITH", "TABLE", "(")
_ARRANGING = (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)
_CLAUSE_ORDER = ("where", "group", "having", "windows", "qualify", "sample", "order", "limit", "offset")


def _parse_not(parser: StrictParser) -> Any:
    """NOT; sqlglot reads `!` as the same."""
    if parser._prev.text == "!":
        parser.raise_error("", parser._prev)
    return parser.expression(exp.Not(this=parser._parse_equality()))


def _remove_parser(parsers: Mapping[Any, Any], token_type: Any) -> dict[Any, Any]:
    return {kind: parser for kind, parser in parsers.items() if kind != token_type}


class StrictParser(ForeignSyntaxParser):
    """Takes what DuckDB's own parser takes, as nearly as can be had, and BamQuery's statements."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {
        **DuckDBParser.NO_PAREN_FUNCTIONS,
        # A column of that name comes first.
        TokenType.CURRENT_USER: lambda: exp.column("current_user"),
        TokenType.SESSION_USER: lambda: exp.column("session_user"),
        TokenType.CURRENT_CATALOG: lambda: exp.column("current_catalog"),
    }
    PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **DuckDBParser.PRIMARY_PARSERS,
        # $$...$$ and $tag$...$tag$
        TokenType.HEREDOC_STRING: lambda parser, token: parser.expression(
            exp.Literal(this=token.text, is_string=True), token
        ),
    }
    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **DuckDBParser.UNARY_PARSERS,
        TokenType.NOT: _parse_not,
        # sqlglot drops it, as if +x were x whatever that is.
        TokenType.PLUS: lambda parser: parser.expression(syntax.Plus(this=parser._parse_unary())),
        # ~ is weaker than + in DuckDB, as is any operator that is no arithmetic.
        TokenType.TILDE: lambda parser: parser.expression(exp.BitwiseNot(this=parser._parse_term())),
    }
    # text[:i] has a column in it, no parameter.
    PLACEHOLDER_PARSERS: ClassVar[dict[Any, Any]] = _remove_parser(
        DuckDBParser.PLACEHOLDER_PARSERS, TokenType.COLON
    )
    EQUALITY: ClassVar[dict[Any, Any]] = _remove_parser(DuckDBParser.EQUALITY, TokenType.NULLSAFE_EQ)  # <=>
    SIGNED_TO_UNSIGNED_TYPE_TOKEN: ClassVar[dict[Any, Any]] = {
        token_type: token_type for token_type in DuckDBParser.SIGNED_TO_UNSIGNED_TYPE_TOKEN
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = dict(FUNCTIONS_WITH_SYNTAX)

    def _parse_function(self, *args: Any, **kwargs: Any) -> Any:
        if self._curr.token_type == TokenType.MAP and self._next.token_type not in (
            TokenType.L_BRACE,
            TokenType.L_PAREN,
        ):
            return None  # a column of that name
        return super()._parse_function(*args, **kwargs)

    def _parse_wrapped_select(self, table: bool = False) -> Any:
        # sqlglot takes (VALUES ...) with an alias and joins behind it for a table whose name is the rows.
        wrapped = super()._parse_wrapped_select(table)
        if isinstance(wrapped, exp.Table) and isinstance(wrapped.this, exp.Values):
            return self.expression(exp.Subquery(**wrapped.args))
        return wrapped

    def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> Any:
        # What begins with (VALUES is a query where something comes before the parenthesis that closes.
        if allow_value_synonym:  # of INSERT, which goes by position unless it says BY NAME
            self._match_text_seq("BY", "POSITION")
        index = self._index
        if self._match_pair(TokenType.L_PAREN, TokenType.VALUES):
            rows = self._parse_csv(self._parse_value)
            if not self._match(TokenType.R_PAREN):
                self._retreat(index)
                return None
            values: exp.Values | None = self.expression(
                exp.Values(expressions=rows, alias=self._parse_table_alias())
            )
        else:
            values = super()._parse_derived_table_values(allow_value_synonym)
        if allow_value_synonym and values is not None:  # of INSERT
            return self._parse_query_modifiers(self._parse_set_operations(values))
        return values

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        join = super()._parse_join(*args, **kwargs)
        if isinstance(join, exp.Join):
            method, kind = (str(join.args.get(part) or "").upper() for part in ("method", "kind"))
            if "NATURAL" in method and kind == "CROSS":
                self.raise_error("", token)
            if kind == "CROSS" or "NATURAL" in method:
                condition = join.args.get("on") or next(iter(join.args.get("using") or ()), None)
                if condition is not None or self._curr.token_type in (TokenType.ON, TokenType.USING):
                    word = "CROSS" if kind == "CROSS" else "NATURAL"
                    place = None if condition is None else self._first_token(condition)
                    self.raise_error(f"Expecting no condition for {word} JOIN", place)
        return join

    def _parse_using_identifiers(self) -> list[Any]:
        if self._curr.token_type != TokenType.L_PAREN:
            self.raise_error("Expecting (")
        start = self._index
        names = list(super()._parse_using_identifiers())
        for token in self._tokens[start : self._index]:
            if token.token_type == TokenType.DOT:
                self.raise_error("Expecting names of columns", token)
        return names

    def _parse_group(self, skip_group_by_token: bool = False) -> Any:
        if self._curr.token_type == TokenType.GROUP_BY and self._next.token_type == TokenType.DISTINCT:
            self.raise_error("", self._next)
        group = super()._parse_group(skip_group_by_token)
        if group is not None and not any(group.args.values()):
            self.raise_error("Expecting what to group by")
        return group

    def _parse_ordered(self, parse_method: Any = None) -> Any:
        start = self._index
        ordered = super()._parse_ordered(parse_method)
        for before, after in pairwise(self._tokens[start : self._index]):
            if (before.token_type, after.token_type) == (TokenType.ASC, TokenType.DESC):
                self.raise_error("", after)
        return ordered

    def parse_set_operation(self, this: Any, *args: Any, **kwargs: Any) -> Any:
        """UNION, INTERSECT or EXCEPT of what stands in parentheses where it has an order or a limit."""
        token = self._curr
        operation = super().parse_set_operation(this, *args, **kwargs)
        for operand in (this, this.args.get("expression")) if operation is not None else ():
            arranged = isinstance(operand, exp.Query) and not isinstance(operand, exp.Subquery)
            if arranged and any(operand.args.get(clause) for clause in ("order", "limit", "offset")):
                self.raise_error("Expecting parentheses around what ORDER BY or LIMIT is for", token)
        return operation

    def _parse_schema(self, this: Any = None) -> Any:
        if self._match_pair(TokenType.L_PAREN, TokenType.VALUES, advance=False):
            return this  # no list of columns
        return super()._parse_schema(this)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> Any:
        # sqlglot knows EXISTS of SELECT and WITH only.
        token = self._curr
        if token.token_type != TokenType.EXISTS or self._next.token_type != TokenType.L_PAREN:
            return super()._parse_function_call(*args, **kwargs)
        self._advance(2)
        query = self._parse_wrapped_select()
        if not isinstance(query, (exp.Query, exp.Values)):
            self.raise_error("Expecting a query")
        self._match_r_paren()
        exists = self.expression(exp.Exists(this=query))
        exists.update_positions(token)
        return exists

    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> list[Any]:
        # A comma may end a list, but two in a row do not stand for less.
        item = parse_method()
        items = []
        while self._match(sep, advance=False):
            if item is None:
                self.raise_error("")
            self._advance()
            items.append(item)
            item = parse_method()
        return items if item is None else [*items, item]

    def _parse_alias(self, this: Any, explicit: bool = False) -> Any:
        token = self._curr
        if this is not None and token.token_type == TokenType.VAR and token.text.upper() == "EXPORT_STATE":
            self.raise_error("Expecting AS before a name that is a keyword behind calls", token)
        aliased = super()._parse_alias(this, explicit)
        if aliased is not this:
            self._check_name(token)
        elif self._prev is token and token.token_type == TokenType.ALIAS:
            self.raise_error("Expecting a name")
        return aliased

    def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
        token = self._curr
        alias = super()._parse_table_alias(alias_tokens)
        if alias is not None and token.token_type == TokenType.STRING and self._curr.text != ":":
            self.raise_error("Expecting AS before it", token)
        if alias is not None:
            self._check_name(token)
        if (alias is None and self._prev is token) or (alias is not None and alias.this is None):
            self.raise_error("Expecting a name")
        return alias

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
        table = super()._parse_table_parts(*args, **kwargs)
        if self._curr.token_type == TokenType.STAR:  # PostgreSQL's table *
            self.raise_error("")
        return table

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        if self._curr.token_type == TokenType.SELECT and self._next.token_type == TokenType.ALIAS:
            self.raise_error("", self._next)
        word = self._curr
        select = super()._parse_select(*args, **kwargs)
        if isinstance(select, exp.Select) and not select.expressions:
            self.raise_error("Expecting what to select", word)
        return select

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
        # In DATE '...'::VARCHAR the date is what is cast; sqlglot would cast the text.
        index = self._index
        if self._curr.token_type in self.TYPE_TOKENS:
            kind = self._parse_types(check_func=True, allow_identifiers=False)
            if (
                isinstance(kind, exp.DataType)
                and kind.this != exp.DType.INTERVAL
                and self._curr.token_type == TokenType.STRING
            ):
                text = self._parse_primary()
                return self._parse_column_ops(self.expression(exp.Cast(this=text, to=kind)))
            self._retreat(index)
        return super()._parse_type(parse_interval, fallback_to_identifier)

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        if token and token.token_type == TokenType.INTERVAL:
            # sqlglot takes a word that follows for a unit; in DuckDB it is a name.
            self._advance()
            kind = exp.DataType(this=exp.DType.INTERVAL)
            kind.update_positions(token)
            return kind
        if (
            token
            and token.token_type in self.NESTED_TYPE_TOKENS - {TokenType.ARRAY}  # a reserved word
            and self._next.token_type == TokenType.LT
        ):
            return None  # in DuckDB, `row < 3` compares a column: no type is written with <
        if kwargs.get("check_func") and token and token.text.upper() == "ROW" and self._is_called():
            return None  # nor is row(1, 2) < row(3, 4) about a type
        kind = super()._parse_types(*args, **kwargs)
        if kind is not None and self._prev is not token and self._prev.text.upper() == "UNSIGNED":
            self._retreat(self._index - 1)  # MySQL's; in DuckDB it is a name behind the type
        return kind

    def _is_called(self) -> bool:
        return bool(self._next and self._next.token_type == TokenType.L_PAREN)

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Interval | None:
        # sqlglot makes strings of numbers, and sums of intervals that stand side by side.
        token, following = self._curr, self._next
        if token.token_type != TokenType.INTERVAL or following is None:
            return None
        if following.token_type not in (TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN):
            return None
        self._advance()
        amount = self._parse_primary()
        unit = None
        if self._curr and self._curr.text.lower() in syntax.INTERVAL_UNITS:
            unit = exp.Var(this=self._curr.text.upper())
            self._advance()
        elif following.token_type != TokenType.STRING:
            self.raise_error("Expecting a unit such as DAY or HOURS")
        interval = exp.Interval(this=amount, unit=unit)
        interval.update_positions(token)
        return interval

    def _check_name(self, token: Token) -> None:
        if token.token_type != TokenType.IDENTIFIER and token.text.upper() in RESERVED - {"AS"}:
            self.raise_error("", token)

    def _parse_case(self) -> exp.Expr | None:
        subject = self._parse_disjunction()
        branches = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            self._require(TokenType.THEN, "THEN")
            branches.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        if not branches:
            self.raise_error("Expecting WHEN")
        otherwise = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        self._require(TokenType.END, "END")
        return self.expression(exp.Case(this=subject, ifs=branches, default=otherwise))

    def _require(self, token_type: TokenType, word: str) -> None:
        if not self._match(token_type):
            self.raise_error(f"Expecting {word}")

    def _parse_query_modifiers(self, this: Any) -> Any:
        if isinstance(this, exp.Values) and self._curr and self._curr.token_type in _ARRANGING:
            this = self.expression(exp.Subquery(this=this))
        this = super()._parse_query_modifiers(this)
        if isinstance(this, exp.Query):
            self._take_fetch(this)
            offset = this.args.get("offset")
            if offset is not None and "start" not in offset.meta:
                self.raise_error("Expecting OFFSET after LIMIT, not a comma", self._first_token(offset))
            written = [this.args.get(name) or () for name in _CLAUSE_ORDER]
            clauses = [next(iter(clause), None) if isinstance(clause, list) else clause for clause in written]
            found: list[exp.Expr] = [clause for clause in clauses if isinstance(clause, exp.Expr)]
            placed = [clause for clause in found if "start" in clause.meta]
            for before, after in pairwise(placed):
                if {before.key, after.key} != {"limit", "offset"} and (
                    after.meta["start"] < before.meta["start"]
                ):
                    self.raise_error("", self._token_at(before.meta["start"]))
        return this

    def _take_fetch(self, query: exp.Query) -> None:
        """FETCH FIRST [n] ROWS ONLY as LIMIT, which it is another word for; LIMIT ALL is none."""
        fetch = query.args.get("limit")
        if (
            isinstance(fetch, exp.Limit)
            and isinstance(fetch.expression, exp.Var)
            and fetch.expression.name.upper() == "ALL"
        ):
            query.set("limit", None)
        if not isinstance(fetch, exp.Fetch):
            return
        options = fetch.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            self.raise_error("Expecting ROWS ONLY", self._prev)
        limit = exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1))
        limit.meta.update(fetch.meta)
        query.set("limit", limit)

    def _token_at(self, offset: int) -> Token | None:
        return next((token for token in self._tokens if token.start == offset), None)

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        # sqlglot takes the AND as optional.
        symmetric = self._match_text_seq("SYMMETRIC")
        self._match_text_seq("ASYMMETRIC")
        low = self._parse_bitwise()
        self._require(TokenType.AND, "AND")
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
        elif keyword in FOREIGN_STATEMENTS:
            self._advance(self._tokens_size - self._index)
            statement = syntax.Foreign(this=FOREIGN_STATEMENTS[keyword])
        elif keyword in ("CREATE", "DROP"):
            self._advance()
            if self._match_text_seq("SCHEMA"):
                statement = catalog_parser.parse_schema_statement(self, keyword)
            else:
                statement = statement_parser.other_object(self)
            if statement is None:
                self._retreat(self._index - 1)
                statement = super()._parse_statement()
        elif keyword in _QUERY_STARTS or token.token_type in self.STATEMENT_PARSERS:
            statement = super()._parse_statement()
            if keyword in _QUERY_STARTS and not isinstance(statement, (exp.Query, exp.Values, exp.DML)):
                self.raise_error("", token)
        else:
            self.raise_error(f"no statement begins so.{suggestion(keyword, STATEMENT_KEYWORDS)}", token)
        if isinstance(statement, exp.Values) and self._tokens[0] is not token:  # it may be behind WITH
            select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=statement)))
            statement = self.expression(select)
        statement_parser.check_source(self, statement)
        if statement is not None and "start" not in statement.meta:
            statement.update_positions(token)
        return statement

    def _first_token(self, node: exp.Expr) -> Token | None:
        offset = start(node)
        return None if offset is None else self._token_at(offset)

    def _parse_name(self) -> exp.Identifier:
        name = self._parse_id_var()
        if not isinstance(name, exp.Identifier):
            self.raise_error("Expecting a name")
        return name


_STATEMENTS: dict[str, Callable[[Any], exp.Expr]] = {
    "EXPLAIN": statement_parser.parse_explain,
    "OPTIMIZE": statement_parser.parse_optimize,
    "VACUUM": statement_parser.parse_vacuum,
    "SET": statement_parser.parse_setting,
    "ALTER": statement_parser.parse_alter,
    "COPY": statement_parser.parse_copy,
    "PRAGMA": catalog_parser.parse_pragma,
    "RESET": statement_parser.parse_reset,
    "SHOW": catalog_parser.parse_show,
    "USE": catalog_parser.parse_use,
    "SUMMARIZE": statement_parser.parse_summarize,
}
