"""Scalar functions of values of any type."""

from __future__ import annotations

from typing import Final

from bamquery.function_catalog.contract import NULLS_COUNT
from bamquery.function_catalog.entry import Entry, Section

SECTION: Final = Section(
    "Any type",
    "scalar",
    (
        Entry(
            "coalesce",
            "(x ANY, ...) -> ANY",
            "The first value that is not NULL.",
            NULLS_COUNT,
            example="coalesce(NULL, 2)",
        ),
        Entry("ifnull", "(x ANY, y ANY) -> ANY", "x, or y where x is NULL.", calls="coalesce"),
        Entry(
            "nullif",
            "(x ANY, y ANY) -> ANY",
            "NULL where both are equal, else x.",
            calls="case equal",
            example="nullif(0, 0)",
        ),
        Entry(
            "if",
            "(condition BOOLEAN, x ANY, y ANY) -> ANY",
            "x where the condition is true, else y.",
            calls="case",
        ),
        Entry(
            "greatest", "(x ANY, ...) -> ANY", "The greatest of the values; NULLs do not count.", NULLS_COUNT
        ),
        Entry("least", "(x ANY, ...) -> ANY", "The least of the values; NULLs do not count.", NULLS_COUNT),
        Entry(
            "constant_or_null",
            "(x ANY, y ANY, ...) -> ANY",
            "x, or NULL where another argument is NULL.",
            calls="case",
        ),
        Entry(
            "typeof", "(x ANY) -> VARCHAR", "The name of the value's type.", calls="", example="typeof(1.5)"
        ),
        Entry("pg_typeof", "(x ANY) -> VARCHAR", "The name of the value's type, in small letters.", calls=""),
    ),
)
