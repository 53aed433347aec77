"""The dialect for sqlglot: DuckDB's words and rules, and this package's parser and tokens.

sqlglot's own class for DuckDB would do, but for what comes with it: a generator of DuckDB's SQL, which parses
two dozen templates when it is imported and writes nothing here. A test compares the two.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy, UsingColumnOrder
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer

from bamquery.sql_frontend.parser.literal_scanner import number_scanner
from bamquery.sql_frontend.parser.strict_parser import StrictParser

_WORDS = {
    TokenType.ATTACH: ("ATTACH",),
    TokenType.BIGINT: ("INT8",),
    TokenType.BIT: ("BITSTRING",),
    TokenType.BOOLEAN: ("LOGICAL",),
    TokenType.COMMAND: ("RESET",),
    TokenType.CONNECT: ("CONNECT",),
    TokenType.DETACH: ("DETACH",),
    TokenType.DISCONNECT: ("DISCONNECT",),
    TokenType.FORCE: ("FORCE",),
    TokenType.FUNCTION: ("MACRO",),
    TokenType.INSTALL: ("INSTALL",),
    TokenType.INT: ("SIGNED",),
    TokenType.ONLY: ("ONLY",),
    TokenType.PIVOT: ("PIVOT_WIDER",),
    TokenType.POSITIONAL: ("POSITIONAL",),
    TokenType.STRUCT: ("ROW",),
    TokenType.SUMMARIZE: ("SUMMARIZE",),
    TokenType.TEXT: ("BPCHAR", "CHAR", "STRING", "VARCHAR"),
    TokenType.TIMESTAMP: ("TIMESTAMP_US",),
    TokenType.TIMESTAMPNTZ: ("DATETIME", "TIMESTAMP"),
    TokenType.TIMESTAMP_MS: ("TIMESTAMP_MS",),
    TokenType.TIMESTAMP_NS: ("TIMESTAMP_NS",),
    TokenType.TIMESTAMP_S: ("TIMESTAMP_S",),
    TokenType.UBIGINT: ("UBIGINT",),
    TokenType.UINT: ("UINTEGER",),
    TokenType.USMALLINT: ("USMALLINT",),
    TokenType.UTINYINT: ("UTINYINT",),
    TokenType.VARBINARY: ("BINARY",),
    TokenType.AT_GT: ("@>",),
    TokenType.CARET_AT: ("^@",),
    TokenType.DIV: ("//",),
    TokenType.DSTAR: ("**",),
    TokenType.LT_AT: ("<@",),
}
"""What DuckDB reads otherwise than sqlglot's base: docs of DuckDB 1.4, "Keywords and Identifiers"."""

_FOREIGN = frozenset({"/*+", "SORT BY", "?::", "DIV"})
"""Of sqlglot's base; in `?::INTEGER` a parameter is cast, and DIV is MySQL's."""


class _Tokenizer(Tokenizer):
    BYTE_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("e'", "'"), ("E'", "'")]
    BYTE_STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
    HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = ["$"]
    HEREDOC_TAG_IS_IDENTIFIER = True
    HEREDOC_STRING_ALTERNATIVE = TokenType.PARAMETER
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        **{word: kind for word, kind in Tokenizer.KEYWORDS.items() if word not in _FOREIGN},
        **{word: kind for kind, words in _WORDS.items() for word in words},
    }
    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {**Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}
    VAR_SINGLE_TOKENS: ClassVar[set[str]] = {"$"}
    COMMANDS: ClassVar[set[TokenType]] = set()  # no statement is taken as a mere string

    def _init_core(self) -> Any:
        return number_scanner(super()._init_core())


class BamQueryDialect(Dialect):
    """DuckDB's rules, as far as a parser asks for them."""

    NULL_ORDERING = "nulls_are_last"
    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_INSENSITIVE
    ASCII_ONLY_NORMALIZATION = True
    SUPPORTS_USER_DEFINED_TYPES = True
    SUPPORTS_FIXED_SIZE_ARRAYS = True
    SUPPORTS_ORDER_BY_ALL = True
    SUPPORTS_LIMIT_ALL = True
    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True
    TABLES_REFERENCEABLE_AS_COLUMNS = True
    QUERY_RESULTS_ARE_STRUCTS = True
    UUID_IS_STRING_TYPE = False
    CONCAT_COALESCE = True
    CONCAT_WS_COALESCE = True
    STRICT_JSON_PATH_SYNTAX = False
    PREFER_COLUMNS_TO_ALIASES_IN_HAVING_AND_QUALIFY = True
    HAVING_ALIASES_SHADOW_UNGROUPED_COLUMNS = True
    REGEXP_EXTRACT_NO_MATCH_RETURNS_NULL = False
    REGEXP_EXTRACT_MISSING_GROUP_RETURNS_EMPTY = True
    USING_COLUMN_ORDER = UsingColumnOrder.IN_PLACE
    UNESCAPED_SEQUENCES: dict[str, str] = {"\\a": "a", "\\v": "v"}  # noqa: RUF012 (so declared by sqlglot)
    DATE_PART_MAPPING: dict[str, str] = {  # noqa: RUF012
        **{part: name for part, name in Dialect.DATE_PART_MAPPING.items() if part != "WEEKDAY"},
        "DAYOFWEEKISO": "ISODOW",
    }
    # INDEX_OFFSET stays 0, unlike DuckDB's: what stands in brackets stays as it was written.

    Tokenizer = _Tokenizer
    Parser = StrictParser

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """As it is written: nothing here reads such paths."""
        return path
