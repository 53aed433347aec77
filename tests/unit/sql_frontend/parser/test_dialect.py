"""The dialect against sqlglot's own of DuckDB, which would bring more than its words."""

from typing import Any

from sqlglot.dialects.duckdb import DuckDB

from bamquery.sql_frontend import statement_binder as statements
from bamquery.sql_frontend.parser.dialect import BamQueryDialect

# Of generating and annotating, and this package's own.
NOT_READ = {
    *("ESCAPED_SEQUENCES", "EXPRESSION_METADATA", "Generator", "generator_class"),
    *("INVERSE_TIME_MAPPING", "INVERSE_TIME_TRIE"),
}
OWN = {
    *("INDEX_OFFSET", "HEX_START", "HEX_END", "Parser", "parser_class", "Tokenizer", "tokenizer_class"),
    *("jsonpath_tokenizer_class", "to_json_path"),
}
# `NumberScanner` reads literals with escapes; what follows from the differences of words comes with them.
OWN_TOKENS = {
    *("COMMANDS", "HEX_STRINGS", "KEYWORDS", "_KEYWORD_TRIE", "_FORMAT_STRINGS", "_init_core"),
    *("DROP_UNKNOWN_ESCAPES", "NUMERIC_ESCAPES", "NUMERIC_ESCAPES_ARE_BYTES"),
}


def differences(one: Any, other: Any) -> set[str]:
    names = {name for cls in (one, other) for name in dir(cls) if not name.startswith("__")}
    return {
        name
        for name in names
        if getattr(one, name, None) != getattr(other, name, None)
        and not (hasattr(getattr(one, name, None), "__func__"))  # class methods, bound to either
    }


def test_settings_are_those_of_duckdb() -> None:
    assert differences(DuckDB, BamQueryDialect) == NOT_READ | OWN


def test_tokens_are_those_of_duckdb() -> None:
    theirs, ours = DuckDB.tokenizer_class, BamQueryDialect.tokenizer_class
    assert differences(theirs, ours) == OWN_TOKENS
    assert {word: kind for word, kind in theirs.KEYWORDS.items() if word not in ("?::", "DIV")} == (
        ours.KEYWORDS
    )


def test_binders_of_other_modules_are_where_they_are_said_to_be() -> None:
    for binder in statements._BINDERS.values():
        cells = dict(zip(binder.__code__.co_freevars, binder.__closure__ or (), strict=True))
        if "module" in cells:
            module = cells["module"].cell_contents
            name = cells["function"].cell_contents
            home = __import__(f"bamquery.sql_frontend.binder.{module}", fromlist=[name])
            assert callable(getattr(home, name))
