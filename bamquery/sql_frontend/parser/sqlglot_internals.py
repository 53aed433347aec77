"""sqlglot's private names that are relied on here, and why: read this first when sqlglot is updated.

A test holds both lists to what the classes here override and use, and to what the installed sqlglot has.
Tables in capitals, such as `RANGE_PARSERS`, are not listed: sqlglot documents them as the way to extend it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

OVERRIDDEN: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "_Tokenizer": {
            "_init_core": "makes the scanner of characters, which is to be NumberScanner",
        },
        "NumberScanner": {
            "_add": "each token asks whether the statement goes on",
            "_scan_number": "1e3+2 is a sum; an exponent without digits and too many digits are errors",
            "_scan_string": "x'' is checked, E'' unescaped as in DuckDB, and $1,$ is no dollar quote",
        },
        "PositionedParser": {
            "_parse_disjunction": "a constant in a list is read at once, not through a dozen calls",
            "_parse_function_call": "places the call at its name",
            "_parse_join": "places the join at its first word",
            "_parse_lateral": "places LATERAL",
            "_parse_pivot": "places PIVOT, to refuse it",
            "_parse_placeholder": "places a parameter",
            "_parse_primary": "places literals, stars and parentheses",
            "_parse_select": "places a query, and counts how deep queries are nested",
            "_parse_select_or_expression": "a constant in a list of arguments is read at once",
            "_parse_table_sample": "places TABLESAMPLE",
            "_parse_types": "places a type at its name",
            "_parse_unary": "places operands, counts how deep they are nested, and reads the factorial 5!",
            "_parse_with": "places WITH",
            "_warn_unsupported": "what sqlglot half knows is refused with a reason, not logged",
        },
        "ForeignSyntaxParser": {
            "_parse_alias": "behind AS any word is a name",
            "_parse_bracket": "x::INTEGER[1] is an error where sqlglot takes an element of the cast",
            "_parse_column_constraint": "USING COMPRESSION of a column, to refuse it",
            "_parse_column_def": "GENERATED ALWAYS of a column without a type",
            "_parse_escape": "ESCAPE with anything but a text is refused by name",
            "_parse_expression": "'name': value is no alias before its expression",
            "_parse_generated_as_identity": "STORED and VIRTUAL behind a generated column",
            "_parse_window": "EXPORT_STATE, to refuse it",
            "_parse_wrapped_id_vars": "USING KEY takes aggregates beside names",
        },
        "StrictParser": {
            "_parse_alias": "a reserved word is no alias, and AS needs a name",
            "_parse_between": "sqlglot takes BETWEEN without its AND",
            "_parse_case": "sqlglot takes CASE without WHEN, THEN or END",
            "_parse_csv": "sqlglot takes two commas in a row for one",
            "_parse_derived_table_values": "(VALUES ... ORDER BY 1) is a query; INSERT BY POSITION",
            "_parse_function": "map without parentheses is a column",
            "_parse_function_call": "EXISTS takes every query, not SELECT and WITH only",
            "_parse_group": "GROUP BY with nothing behind it is an error, and so is GROUP BY DISTINCT",
            "_parse_interval": "sqlglot makes strings of numbers, and sums of intervals side by side",
            "_parse_join": "CROSS and NATURAL joins have no condition",
            "_parse_ordered": "ASC DESC is an error",
            "_parse_query_modifiers": "the order of clauses is DuckDB's, FETCH is LIMIT, LIMIT 1, 2 an error",
            "_parse_schema": "a table's (VALUES ...) is no list of columns",
            "_parse_select": "SELECT AS and SELECT of nothing are errors",
            "_parse_statement": "BamQuery's own statements; what begins like none is an error with a hint",
            "_parse_table_alias": "a reserved word is no alias, and AS needs a name",
            "_parse_table_parts": "PostgreSQL's `table *` is an error",
            "_parse_type": "in DATE '...'::VARCHAR the date is cast, not the text",
            "_parse_types": "INTERVAL without a unit, row < 3 and UNSIGNED as in DuckDB",
            "_parse_using_identifiers": "USING takes names in parentheses, without a table's",
            "_parse_wrapped_select": "(VALUES ...) in FROM is a query, not a table named by its rows",
        },
        "Plus": {
            "_sql_names": "what is written for the sign",
        },
    }
)
"""Private methods and attributes of sqlglot's classes, by the class here that has its own instead."""

USED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "Parser": {
            "_advance": "goes past tokens",
            "_curr": "the token in hand",
            "_index": "its number, to come back to",
            "_match": "goes past a token of a kind",
            "_match_pair": "goes past two tokens",
            "_match_r_paren": "goes past ), which has to come",
            "_match_text_seq": "goes past words in this order",
            "_match_texts": "goes past one of some words",
            "_next": "the token behind the one in hand",
            "_parse_bitwise": "an operand of BETWEEN, LIKE, ESCAPE and POSITION",
            "_parse_column_constraint": "of GENERATED columns",
            "_parse_column_def": "of ALTER TABLE ADD COLUMN",
            "_parse_column_ops": "what stands behind DATE '...', such as ::VARCHAR",
            "_parse_csv": "lists of names, rows and arguments",
            "_parse_disjunction": "an expression without alias",
            "_parse_equality": "the operand of NOT",
            "_parse_id_var": "a name",
            "_parse_null": "NULL behind ESCAPE",
            "_parse_placeholder": "a parameter for COPY's path",
            "_parse_primary": "a literal",
            "_parse_query_modifiers": "ORDER BY and LIMIT behind VALUES of INSERT",
            "_parse_set_operations": "UNION and the like behind VALUES of INSERT",
            "_parse_statement": "the statement within EXPLAIN, COPY and SUMMARIZE",
            "_parse_string": "a text in quotes",
            "_parse_table_alias": "of (VALUES ...) in FROM",
            "_parse_term": "the operand of ~, which binds as weakly as +",
            "_parse_types": "the type of a typed literal",
            "_parse_unary": "the operand of a sign, and values of settings and options",
            "_parse_value": "a row of VALUES",
            "_parse_var": "a word that is the name or the value of an option",
            "_parse_wrapped_csv": "the list of USING KEY",
            "_parse_wrapped_select": "the query of EXISTS",
            "_prev": "the token before the one in hand",
            "_retreat": "goes back to a token",
            "_tokens": "all tokens of the statement, to look back at",
            "_tokens_size": "how many they are",
        },
        "TokenizerCore": {
            "_add": "puts a token behind the others",
            "_advance": "goes past characters",
            "_current": "where the scanner stands",
            "_start": "where the token begins",
        },
    }
)
"""Private methods and attributes that are called or read here, by the class of sqlglot that has them.

Calls of `super()` are left out: these methods are in `OVERRIDDEN`.
"""
