"""duckdb_functions() and duckdb_keywords(): what the language has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bamquery.catalog.system_tables.facts import CatalogFacts
from bamquery.catalog.system_tables.rows import (
    BIGINT,
    BOOLEAN,
    NO_TAGS,
    VARCHAR,
    SystemTable,
    columns,
    list_text,
    string_columns,
)
from bamquery.function_catalog.function_reference import (
    FunctionRecord,
    functions,
)
from bamquery.function_catalog.signature import Parameter, Signature
from bamquery.sql_frontend.parser.keywords import keywords
from bamquery.sql_frontend.system_names import MAIN


def _functions(facts: CatalogFacts) -> Iterator[tuple[Any, ...]]:
    oids: dict[tuple[str, str], int] = {}
    for record in functions():
        oid = oids.setdefault((record.kind, record.alias_of or record.name), len(oids) + 1)
        for signature in record.signatures:
            for given in _call_forms(signature):
                yield (facts.database, "1", MAIN, *_row(record, signature, given, oid))


def _call_forms(signature: Signature) -> Iterator[tuple[Parameter, ...]]:
    """The parameters of each call: a row for each number of those that may be left out."""
    for count in range(signature.least, len(signature.parameters) + 1):
        yield signature.parameters[:count]


def _row(
    record: FunctionRecord, signature: Signature, given: tuple[Parameter, ...], oid: int
) -> tuple[Any, ...]:
    is_table = record.kind == "table"
    changing = "now" in record.entry.plan_functions or record.name.startswith("current_")
    return (
        *(record.name, record.alias_of, record.kind, record.entry.description, None, NO_TAGS),
        None if is_table else signature.return_type,
        list_text(parameter.name for parameter in given),
        list_text(parameter.type for parameter in given),
        given[-1].type if signature.repeated else None,
        *(None, None if is_table else False, True, None, oid),
        list_text([record.entry.example] if record.entry.example else []),
        None if is_table else "CONSISTENT_WITHIN_QUERY" if changing else "CONSISTENT",
        list_text([record.section.title]),
    )


def _keywords(facts: CatalogFacts) -> Iterator[tuple[Any, ...]]:
    yield from keywords().items()


FUNCTIONS: Final = SystemTable(
    columns(
        database_name=VARCHAR,
        database_oid=VARCHAR,
        schema_name=VARCHAR,
        function_name=VARCHAR,
        alias_of=VARCHAR,
        function_type=VARCHAR,
        description=VARCHAR,
        comment=VARCHAR,
        tags=VARCHAR,
        return_type=VARCHAR,
        parameters=VARCHAR,
        parameter_types=VARCHAR,
        varargs=VARCHAR,
        macro_definition=VARCHAR,
        has_side_effects=BOOLEAN,
        internal=BOOLEAN,
        extension_name=VARCHAR,
        function_oid=BIGINT,
        examples=VARCHAR,
        stability=VARCHAR,
        categories=VARCHAR,
    ),
    _functions,
)
KEYWORDS: Final = SystemTable(string_columns("keyword_name keyword_category"), _keywords)
