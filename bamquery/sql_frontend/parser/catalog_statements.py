"""SHOW, PRAGMA, USE and statements about schemas, after their first word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from bamquery.sql_frontend.parser.statement_parser import foreign, parse_setting, table_name
from bamquery.sql_frontend.syntax import ast_nodes as syntax

if TYPE_CHECKING:
    from bamquery.sql_frontend.parser.strict_parser import StrictParser

_SHOWN: Final = ("DATABASES", "FUNCTIONS", "SCHEMAS", "SETTINGS", "VIEWS")
_PRAGMAS: Final = {
    "DATABASE_LIST": "database_list",
    "FUNCTIONS": "functions",
    "SHOW_DATABASES": "databases",
    "SHOW_TABLES_EXPANDED": "all_tables",
    "VERSION": "version",
}


def parse_show(parser: StrictParser) -> exp.Expr:
    """SHOW: TABLES and the like, how something was made, a setting, or what DESCRIBE shows."""
    token = parser._prev
    if not parser._curr or parser._curr.token_type == TokenType.SEMICOLON:
        return syntax.ShowSubject(this="all_tables")
    if _word(parser, "TABLES"):
        schema = _schema(parser) if parser._match(TokenType.FROM) else None
        return syntax.ShowTables(this=schema)
    if _word(parser, "ALL"):
        _word(parser, "TABLES")
        return syntax.ShowSubject(this="all_tables")
    if _word(parser, "CREATE"):
        if not _word(parser, "TABLE", "VIEW"):
            parser.raise_error("Expecting TABLE or VIEW")
        return syntax.ShowSubject(this="definition", table=table_name(parser))
    if parser._curr.text.upper() in ("SELECT", "FROM", "VALUES", "WITH", "("):
        return exp.Describe(this=parser._parse_statement())
    if parser._match_text_seq("COLUMNS") and not parser._match(TokenType.FROM):
        parser.raise_error("Expecting FROM")
    for word in _SHOWN:
        if _word(parser, word):
            return syntax.ShowSubject(this=word.lower())
    if _word(parser, "VARIABLES"):
        return foreign(parser, "SHOW VARIABLES (write SHOW SETTINGS)", token)
    if parser._match(TokenType.STRING):
        name = exp.to_identifier(parser._prev.text, quoted=True)
        name.update_positions(parser._prev)
        return syntax.ShowNamed(this=exp.Table(this=name))
    return syntax.ShowNamed(this=table_name(parser))


def parse_pragma(parser: StrictParser) -> exp.Expr:
    """PRAGMA: a setting, or something of the catalogue."""
    token = parser._prev
    if parser._next and parser._next.token_type == TokenType.EQ:
        return parse_setting(parser)  # PRAGMA threads = 4
    if _word(parser, "SHOW_TABLES"):
        return syntax.ShowTables()
    for word, subject in _PRAGMAS.items():
        if _word(parser, word):
            return syntax.ShowSubject(this=subject)
    if _word(parser, "TABLE_INFO"):
        if not parser._match(TokenType.L_PAREN):
            parser.raise_error("Expecting (")
        if parser._match(TokenType.STRING):
            table: exp.Expr = exp.to_identifier(parser._prev.text, quoted=True)
            table.update_positions(parser._prev)
        else:
            table = table_name(parser)
        parser._match_r_paren()
        return syntax.ShowSubject(this="table_info", table=table)
    return foreign(parser, f"PRAGMA {parser._curr.text}" if parser._curr else "PRAGMA", token)


def parse_use(parser: StrictParser) -> exp.Expr:
    """USE: the schema, the database, or both."""
    return syntax.SchemaStatement(this=_schema(parser), verb="USE")


def parse_schema_statement(parser: StrictParser, verb: str) -> exp.Expr:
    """CREATE or DROP, after SCHEMA."""
    exists = bool(parser._match_text_seq("IF", *(["NOT"] if verb == "CREATE" else []), "EXISTS"))
    statement = syntax.SchemaStatement(this=_schema(parser), verb=verb, exists=exists)
    if verb == "DROP":
        parser._match_texts(("CASCADE", "RESTRICT"))
    return statement


def _schema(parser: StrictParser) -> syntax.SchemaName:
    name, catalog = parser._parse_name(), None
    if parser._match(TokenType.DOT):
        name, catalog = parser._parse_name(), name
    return syntax.SchemaName(this=name, catalog=catalog)


def _word(parser: StrictParser, *words: str) -> bool:
    """Whether one of the words comes next, and is no name in quotes; it is passed then."""
    token = parser._curr
    found = bool(token) and token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
    return found and bool(parser._match_texts(words))
