"""Words of the dialect, for highlighting and completion before the parser is imported."""

from __future__ import annotations

from typing import Final

TYPES: Final = frozenset(
    {
        *(
            "BIGINT",
            "BLOB",
            "BOOLEAN",
            "DATE",
            "DECIMAL",
            "DOUBLE",
            "FLOAT",
            "HUGEINT",
            "INTEGER",
            "INTERVAL",
        ),
        *("SMALLINT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TINYINT", "UBIGINT", "UINTEGER", "USMALLINT"),
        *("UTINYINT", "VARCHAR", "INT", "TEXT", "REAL", "NUMERIC", "BOOL", "TIMESTAMP_NS", "TIMESTAMP_MS"),
        *("TIMESTAMP_S", "STRING", "INT8", "INT4", "INT2", "FLOAT8", "FLOAT4", "CHAR"),
    }
)

CONSTANTS: Final = frozenset({"TRUE", "FALSE", "NULL"})

KEYWORDS: Final = frozenset(
    {
        *(
            "ADD",
            "ALL",
            "ALTER",
            "ANALYZE",
            "AND",
            "ANTI",
            "ANY",
            "AS",
            "ASC",
            "ASOF",
            "BETWEEN",
            "BY",
            "CASE",
        ),
        *("CAST", "CHECK", "CLUSTER", "COLUMN", "COPY", "CREATE", "CROSS", "CUBE", "CURRENT", "DEFAULT"),
        *("DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE", "END", "ESCAPE", "EXCEPT", "EXCLUDE", "EXISTS"),
        *("EXPLAIN", "EXTRACT", "FETCH", "FILTER", "FIRST", "FOLLOWING", "FORMAT", "FROM", "FULL", "GLOB"),
        *("GROUP", "GROUPING", "GROUPS", "HAVING", "IF", "ILIKE", "IN", "INNER", "INSERT", "INTERSECT"),
        *("INTO", "IS", "ISNULL", "JOIN", "LAST", "LATERAL", "LEFT", "LIKE", "LIMIT", "MATERIALIZED"),
        *("NATURAL", "NEXT", "NOT", "NOTNULL", "NULLS", "OFFSET", "ON", "ONLY", "OPTIMIZE", "OR", "ORDER"),
        *("OUTER", "OVER", "PARTITION", "POSITIONAL", "PRECEDING", "QUALIFY", "RANGE", "RECURSIVE", "RENAME"),
        *("REPEATABLE", "REPLACE", "RESET", "RIGHT", "ROLLUP", "ROW", "ROWS", "SAMPLE", "SELECT", "SEMI"),
        *("SET", "SETS", "SHOW", "SIMILAR", "SUMMARIZE", "TABLE", "TABLES", "TABLESAMPLE", "TEMP"),
        *("TEMPORARY", "THEN", "TIES", "TO", "TRY_CAST", "UNBOUNDED", "UNION", "UNPIVOT", "USING", "VACUUM"),
        *("VALUES", "VIEW", "WHEN", "WHERE", "WINDOW", "WITH", "WITHIN"),
    }
)

COMMON: Final = frozenset(
    {
        *(
            "SELECT",
            "FROM",
            "WHERE",
            "GROUP",
            "ORDER",
            "BY",
            "LIMIT",
            "JOIN",
            "LEFT",
            "ON",
            "AND",
            "OR",
            "NOT",
        ),
        *("AS", "IN", "IS", "HAVING", "DISTINCT", "UNION", "CASE", "WHEN", "THEN", "ELSE", "END", "NULL"),
        *("BETWEEN", "LIKE", "USING", "ALL", "DESC", "INNER", "CROSS", "WITH", "OVER", "PARTITION", "VALUES"),
    }
)
"""Those that are offered before functions that begin in the same way."""

BEGINNINGS: Final = (
    *("SELECT", "FROM", "WITH", "VALUES", "CREATE TABLE", "CREATE VIEW", "CREATE OR REPLACE TABLE"),
    *("CREATE OR REPLACE VIEW", "INSERT INTO", "DROP TABLE", "DROP VIEW", "DESCRIBE", "SHOW TABLES"),
    *("EXPLAIN", "EXPLAIN ANALYZE", "SET", "RESET", "OPTIMIZE", "VACUUM", "ALTER TABLE", "COPY", "SUMMARIZE"),
)
"""What statements begin with."""
