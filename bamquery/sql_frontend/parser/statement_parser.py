"""Statements whose syntax sqlglot has loosely or not at all: each is read here word by word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.text.identifiers import suggestion

if TYPE_CHECKING:
    from bamquery.sql_frontend.parser.strict_parser import StrictParser


def check_source(parser: StrictParser, statement: exp.Expr | None) -> None:
    """Hold CREATE TABLE to AS, INSERT to INTO, both to a query: to sqlglot they are optional."""
    if not isinstance(statement, exp.Create | exp.Insert):  # and so once for all the queries of a statement
        return
    words = [token.text.upper() for token in parser._tokens[: parser._index]]
    if isinstance(statement, exp.Create) and statement.args.get("kind") == "VIEW":
        _keep_text(parser, statement)
    if isinstance(statement, exp.Create) and statement.args.get("kind") == "TABLE":
        _move_options(statement)
        query = statement.args.get("expression")
        if query is not None and "AS" not in words:
            parser.raise_error("Expecting AS", parser._first_token(query))
        if query is None and not isinstance(statement.this, exp.Schema):
            parser.raise_error("Expecting AS and a query")
    if isinstance(statement, exp.Insert) and not statement.args.get("overwrite"):
        if statement.args.get("with_") is not None:  # sqlglot has parsed, and checked, what follows by itself
            _move_with(parser, statement)
            return
        verb = words.index("INSERT")
        if "INTO" not in words[verb : verb + 4]:
            parser.raise_error("Expecting INTO", parser._first_token(statement.this))
        if statement.args.get("expression") is None and not statement.args.get("default"):
            parser.raise_error("Expecting VALUES or a query")


def _move_options(create: exp.Create) -> None:
    """WITH (name = value, ...) in words of its own; other properties stay, and are refused."""
    properties = create.args.get("properties")
    found = [] if properties is None else properties.expressions
    if not found or any(type(one) is not exp.Property for one in found):
        return
    options = []
    for one in found:
        name = exp.to_identifier(one.this.name)
        name.meta.update(one.this.meta)
        options.append(syntax.TableOption(this=name, expression=one.args["value"]))
    create.set("properties", None)
    create.set("options", options)


def _move_with(parser: StrictParser, insert: exp.Insert) -> None:
    """WITH before INSERT belongs to its query; where that has its own, what is within it comes first."""
    query, outer = insert.expression, insert.args["with_"]
    if not isinstance(query, exp.Query | exp.Values):
        parser.raise_error("Expecting a query after WITH and INSERT", parser._first_token(outer))
    insert.set("with_", None)
    if isinstance(query, exp.Values) or query.args.get("with_") is not None:
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query)))
        insert.set("expression", query)
    query.set("with_", outer)


def other_object(parser: StrictParser) -> exp.Expr | None:
    """CREATE or DROP of what is no table or view, after its first word; None: of a table or view."""
    verb, index = parser._prev.text.upper(), parser._index
    words = []
    while parser._curr is not None and (
        parser._match_texts(_ADJECTIVES) or parser._match(TokenType.TEMPORARY)
    ):
        words.append(parser._prev.text.upper())
    kind = parser._curr.text.upper() if parser._curr is not None else ""
    special = next((word for word in words if word in ("RECURSIVE", "SECURE")), "") if kind == "VIEW" else ""
    if kind in _OBJECTS or special:
        return foreign(parser, " ".join(word for word in (verb, special, kind) if word))
    if kind not in ("TABLE", "VIEW"):
        hint = suggestion(kind, ["TABLE", "VIEW"])
        parser.raise_error(f"Expecting TABLE or VIEW{'.' * bool(hint)}{hint}")
    parser._retreat(index)
    return None


_ADJECTIVES = (
    *("OR", "REPLACE", "TEMP", "TEMPORARY", "PERSISTENT", "UNLOGGED", "LOCAL", "GLOBAL", "EXTERNAL"),
    *("MATERIALIZED", "RECURSIVE", "SECURE", "UNIQUE"),
)
_OBJECTS = (
    *("DATABASE", "EXTENSION", "FUNCTION", "INDEX", "MACRO", "POLICY", "PROCEDURE", "ROLE", "SCHEMA"),
    *("SECRET", "SEQUENCE", "TRIGGER", "TYPE", "USER"),
)
"""What DuckDB and others make beside tables and views."""


def _keep_text(parser: StrictParser, view: exp.Create) -> None:
    """Note the text of a view's query: it is what the database keeps of it."""
    tokens = parser._tokens[: parser._index]
    start = next((i for i, token in enumerate(tokens) if token.token_type == TokenType.ALIAS), len(tokens))
    if view.args.get("expression") is None or start + 1 >= len(tokens):
        parser.raise_error("Expecting AS and a query")
    view.meta["query"] = parser.sql[tokens[start + 1].start : tokens[-1].end + 1]


def parse_alter(parser: StrictParser) -> exp.Expr:
    """ALTER TABLE or VIEW, after its first word."""
    kind = "VIEW" if parser._match_text_seq("VIEW") else "TABLE"
    if kind == "TABLE" and not parser._match(TokenType.TABLE):
        return foreign(parser, "ALTER of anything but a table")
    exists = bool(parser._match_text_seq("IF", "EXISTS"))
    table = table_name(parser)
    action = _action(parser)
    if isinstance(action, syntax.Foreign):
        return action
    return syntax.AlterTable(this=table, kind=kind, exists=exists, action=action)


def _action(parser: StrictParser) -> exp.Expr:
    token = parser._curr
    if parser._match_text_seq("ADD"):
        return _add(parser, token)
    if parser._match_text_seq("DROP"):
        return _drop(parser, token)
    if parser._match_text_seq("RENAME"):
        return _rename(parser)
    if parser._match_text_seq("SET", "("):
        return _set_options(parser)
    if not parser._match_texts(("ALTER", "SET", "RESET", "OWNER")):
        parser.raise_error("Expecting ADD, DROP, RENAME or SET")
    return foreign(parser, f"ALTER TABLE {token.text.upper()}", token)


def _add(parser: StrictParser, token: Token | None) -> exp.Expr:
    if parser._match_texts(("CONSTRAINT", "PRIMARY KEY", "UNIQUE", "CHECK", "FOREIGN KEY")):
        return foreign(parser, "ALTER TABLE ADD CONSTRAINT", token)
    parser._match_text_seq("COLUMN")
    exists = bool(parser._match_text_seq("IF", "NOT", "EXISTS"))
    column = parser._parse_column_def(parser._parse_id_var())
    if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
        parser.raise_error("Expecting a name and a type")
    return syntax.AddColumn(this=column, exists=exists)


def _drop(parser: StrictParser, token: Token | None) -> exp.Expr:
    if parser._match_text_seq("CONSTRAINT"):
        return foreign(parser, "ALTER TABLE DROP CONSTRAINT", token)
    parser._match_text_seq("COLUMN")
    exists = bool(parser._match_text_seq("IF", "EXISTS"))
    name = parser._parse_name()
    cascade = bool(parser._match_text_seq("CASCADE"))
    if not cascade:
        parser._match_text_seq("RESTRICT")
    return syntax.DropColumn(this=name, exists=exists, cascade=cascade)


def _set_options(parser: StrictParser) -> exp.Expr:
    options = []
    while True:
        name = parser._parse_name()
        if not parser._match(TokenType.EQ):
            parser.raise_error("Expecting =")
        value = parser._parse_primary()
        if value is None:
            parser.raise_error("Expecting a value")
        options.append(syntax.TableOption(this=name, expression=value))
        if not parser._match(TokenType.COMMA):
            break
    parser._match_r_paren()
    return syntax.SetOptions(expressions=options)


def _rename(parser: StrictParser) -> exp.Expr:
    if parser._match_text_seq("TO"):
        return syntax.RenameTable(this=parser._parse_name())
    parser._match_text_seq("COLUMN")
    name = parser._parse_name()
    if not parser._match_text_seq("TO"):
        parser.raise_error("Expecting TO")
    return syntax.RenameColumn(this=name, expression=parser._parse_name())


def parse_copy(parser: StrictParser) -> exp.Expr:
    """COPY, after its first word."""
    columns = None
    if parser._match_text_seq("FROM", "DATABASE"):
        return foreign(parser, "COPY FROM DATABASE")
    if parser._match(TokenType.L_PAREN):
        source: exp.Expr | None = parser._parse_statement()
        parser._match_r_paren()
    else:
        source = table_name(parser)
        if parser._match(TokenType.L_PAREN):
            columns = parser._parse_csv(parser._parse_name)
            parser._match_r_paren()
    into = isinstance(source, exp.Table) and parser._match(TokenType.FROM)
    if not into and not parser._match_text_seq("TO"):
        parser.raise_error("Expecting TO" if not isinstance(source, exp.Table) else "Expecting TO or FROM")
    if parser._match_texts(("STDIN", "STDOUT")):
        return foreign(parser, f"COPY with {parser._prev.text.upper()}", parser._prev)
    path = parser._parse_primary() or parser._parse_placeholder()
    if not isinstance(path, (exp.Literal, exp.Placeholder)) or (
        isinstance(path, exp.Literal) and not path.args["is_string"]
    ):
        parser.raise_error("Expecting a path in quotes")
    parser._match(TokenType.WITH)
    options = _options(parser) if parser._match(TokenType.L_PAREN) else _plain_options(parser)
    node = syntax.CopyFrom if into else syntax.CopyTo
    return node(this=source, columns=columns, path=path, options=options)


def _options(parser: StrictParser) -> list[exp.Expr]:
    options: list[exp.Expr] = []
    while True:
        token = parser._curr
        name = parser._parse_var(any_token=True)
        if name is None:
            parser.raise_error("Expecting the name of an option")
        value = None
        if parser._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN):
            parser._match(TokenType.EQ)
            value = parser._parse_unary() or parser._parse_var(any_token=True)
        option = syntax.Option(this=exp.Identifier(this=name.name), expression=value)
        option.update_positions(token)
        options.append(option)
        if not parser._match(TokenType.COMMA):
            break
    parser._match_r_paren()
    return options


_WITH_VALUE = {
    **{word: word.lower() for word in ("DELIMITER", "NULL", "QUOTE", "ESCAPE", "ENCODING")},
    "DELIMITERS": "delimiter",
}
"""Options of COPY that have a value, as they are written without parentheses, and within."""


def _plain_options(parser: StrictParser) -> list[exp.Expr] | None:
    """PostgreSQL's older way to write options: a word each, and some with a value."""
    options: list[exp.Expr] = []
    ends = (TokenType.SEMICOLON, TokenType.R_PAREN)
    while parser._curr and parser._curr.token_type not in ends:
        token = parser._curr
        name, value = token.text.upper(), None
        parser._advance()
        if name in _WITH_VALUE:
            parser._match(TokenType.ALIAS)
            name, value = _WITH_VALUE[name], parser._parse_primary()
            if value is None:
                parser.raise_error("Expecting a value")
        elif name == "CSV":
            name, value = "format", exp.Literal.string("csv")
        elif name in ("FORCE", "PARTITION BY"):
            words = f"FORCE {parser._curr.text.upper()}" if name == "FORCE" else name
            return [foreign(parser, f"{words} of COPY without parentheses", token)]
        elif name != "HEADER":
            parser.raise_error("", token)
        option = syntax.Option(this=exp.Identifier(this=name.lower()), expression=value)
        option.update_positions(token)
        options.append(option)
    return options or None


def parse_summarize(parser: StrictParser) -> exp.Expr:
    """SUMMARIZE, after its first word."""
    word = parser._curr.text.upper() if parser._curr else ""
    parser._match(TokenType.TABLE)
    is_query = word in ("SELECT", "FROM", "VALUES", "WITH", "(")
    return syntax.Summarize(this=parser._parse_statement() if is_query else table_name(parser))


def parse_reset(parser: StrictParser) -> exp.Expr:
    """RESET, after its first word."""
    if _variable(parser):
        return syntax.SetVariable(this=_variable_name(parser))
    _scope(parser)
    return syntax.Reset(this=parser._parse_name())


def parse_setting(parser: StrictParser) -> exp.Expr:
    """SET, after its first word."""
    if _variable(parser):
        return _set_variable(parser)
    if parser._match_text_seq("TIME", "ZONE"):
        return foreign(parser, "SET TIME ZONE")
    _scope(parser)
    name = parser._parse_name()
    if not (parser._match(TokenType.EQ) or parser._match_text_seq("TO")):
        parser.raise_error("Expecting = or TO")
    value = parser._parse_unary()
    if value is None:
        value = parser._parse_var(any_token=True)
    if value is None:
        parser.raise_error("Expecting a value")
    return syntax.SetSetting(this=name, expression=value)


def _variable(parser: StrictParser) -> bool:
    """Whether VARIABLE comes, and a name: without one it is the name of a setting itself."""
    following = parser._next
    if not following or following.token_type == TokenType.EQ or following.text.upper() == "TO":
        return False
    return bool(parser._match_text_seq("VARIABLE"))


def _variable_name(parser: StrictParser) -> exp.Identifier:
    token = parser._curr
    name: exp.Identifier = parser._parse_name()
    parser._check_name(token)
    if token.token_type in (TokenType.STRING, TokenType.NUMBER) or not name.name:
        parser.raise_error("Expecting a name", token)
    return name


_WORDS = (exp.CurrentDate, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)
"""Functions without parentheses that sqlglot does not take for names."""


def _set_variable(parser: StrictParser) -> exp.Expr:
    """SET VARIABLE, after these words."""
    name = _variable_name(parser)
    if parser._curr.text == "==" or not (parser._match(TokenType.EQ) or parser._match_text_seq("TO")):
        parser.raise_error("Expecting = or TO")
    token = parser._curr
    if parser._match(TokenType.DEFAULT):
        return syntax.SetVariable(this=name)
    value = parser._parse_disjunction()
    if value is None:
        parser.raise_error("Expecting a value")
    if parser._match(TokenType.COMMA, advance=False):
        parser.raise_error("Expecting one value")
    is_name = isinstance(value, exp.Column) and not isinstance(value.this, exp.Star)
    if is_name or (isinstance(value, _WORDS) and parser._prev is token):
        # As of a setting, a word is its text.
        value = exp.Literal.string(value.name if is_name else token.text)
        value.update_positions(token)
    query = exp.Select(expressions=[value])
    query.update_positions(token)
    return syntax.SetVariable(this=name, expression=query)


def _scope(parser: StrictParser) -> None:
    """GLOBAL or SESSION before a setting's name: a connection has but one of each."""
    following = parser._next
    if following and following.token_type != TokenType.EQ and following.text.upper() != "TO":
        parser._match_texts(("GLOBAL", "SESSION"))


def parse_explain(parser: StrictParser) -> exp.Expr:
    """EXPLAIN, after its first word."""
    analyze = bool(parser._match_texts(("ANALYZE", "ANALYSE")))
    if _is_option_list(parser):
        parser._advance()
        analyze = False
        while not parser._match(TokenType.R_PAREN):
            token = parser._curr
            if parser._match_texts(("ANALYZE", "ANALYSE")):
                analyze = True
            elif not (parser._match(TokenType.FORMAT) and parser._match_text_seq("TEXT")):
                word = token.text.upper() if token else ""
                named = f"{word} {parser._curr.text}".upper() if word == "FORMAT" and parser._curr else word
                return foreign(parser, f"EXPLAIN ({named})", token)
            parser._match(TokenType.COMMA)
    this = parser._parse_statement()
    if this is None:
        parser.raise_error("Expecting a statement")
    return syntax.Explain(this=this, analyze=analyze)


def _is_option_list(parser: StrictParser) -> bool:
    """Whether a parenthesis comes that is no query's."""
    if not parser._next or parser._curr.token_type != TokenType.L_PAREN:
        return False
    return parser._next.text.upper() in ("ANALYZE", "ANALYSE", "FORMAT")


def parse_optimize(parser: StrictParser) -> syntax.Optimize:
    """OPTIMIZE, after its first word."""
    parser._match(TokenType.TABLE)
    this = table_name(parser)
    columns = None
    if parser._match(TokenType.CLUSTER_BY):
        wrapped = parser._match(TokenType.L_PAREN)
        columns = parser._parse_csv(parser._parse_name)
        if wrapped:
            parser._match_r_paren()
    return syntax.Optimize(this=this, columns=columns)


def parse_vacuum(parser: StrictParser) -> exp.Expr:
    """VACUUM, after its first word."""
    if parser._curr and parser._curr.token_type != TokenType.SEMICOLON:
        return foreign(parser, "VACUUM of one table, or with ANALYZE", parser._curr)
    return syntax.Vacuum()


def foreign(parser: StrictParser, words: str, token: Token | None = None) -> syntax.Foreign:
    """A statement that is refused as a whole, whatever else it says."""
    node = syntax.Foreign(this=words)
    if token is not None:
        node.update_positions(token)
    while parser._curr and parser._curr.token_type != TokenType.SEMICOLON:
        parser._advance()
    return node


def table_name(parser: StrictParser) -> exp.Table:
    """A table's name; what is before it, and refused, included."""
    names = [parser._parse_name()]
    while parser._match(TokenType.DOT):
        names.append(parser._parse_name())
    name, db, catalog = [*reversed(names), None, None][:3]
    return exp.Table(this=name, db=db, catalog=catalog)
