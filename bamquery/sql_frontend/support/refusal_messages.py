"""What is refused, in the words that users know it by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from bamquery.sql_frontend.syntax import ast_nodes as syntax

_WORDS: Final[Mapping[type[exp.Expr], str]] = MappingProxyType(
    {
        exp.Lateral: "LATERAL",
        exp.Unnest: "UNNEST",
        exp.TableSample: "sampling",
        exp.Lock: "FOR UPDATE or FOR SHARE",
        exp.Into: "SELECT INTO (write CREATE TABLE AS)",
        exp.Collate: "COLLATE",
        exp.Struct: "a struct",
        exp.ToMap: "a map",
        exp.Map: "a map",
        exp.Lambda: "a lambda function",
        exp.Comprehension: "a list comprehension",
        exp.Dot: "a qualified function or a struct's field",
        exp.Placeholder: "a parameter",
        exp.PositionalColumn: "a column by position (#)",
        exp.BitwiseXor: "the operator xor",
        exp.Factorial: "the operator !",
        exp.Coalesce: "the operator ?? (write coalesce())",
        exp.JSONExtract: "the operator ->",
        exp.JSONExtractScalar: "the operator ->>",
        exp.Concat: "a string next to a string (write ||)",
        exp.Kwarg: "a named argument",
        exp.PropertyEQ: "a named argument",
        exp.CurrentTime: "current_time",
        exp.HistoricalData: "AT (VERSION or TIMESTAMP)",
        exp.PrimaryKey: "PRIMARY KEY",
        exp.PrimaryKeyColumnConstraint: "PRIMARY KEY",
        exp.UniqueColumnConstraint: "UNIQUE",
        exp.CheckColumnConstraint: "CHECK",
        exp.ForeignKey: "FOREIGN KEY",
        exp.Reference: "REFERENCES",
        exp.ComputedColumnConstraint: "a generated column",
        exp.GeneratedAsIdentityColumnConstraint: "a generated column",
        exp.CollateColumnConstraint: "COLLATE",
        exp.CompressColumnConstraint: "COMPRESSION of a column",
        exp.Returning: "RETURNING",
        exp.OnConflict: "ON CONFLICT",
        exp.Update: "UPDATE",
        exp.Delete: "DELETE",
        exp.Merge: "MERGE",
        exp.TruncateTable: "TRUNCATE",
        exp.Attach: "ATTACH",
        exp.Detach: "DETACH",
        exp.Pragma: "PRAGMA",
        exp.Transaction: "BEGIN",
        exp.Commit: "COMMIT",
        exp.Rollback: "ROLLBACK",
        exp.Summarize: "SUMMARIZE",
        exp.Analyze: "ANALYZE",
        exp.Comment: "COMMENT",
    }
)

_PARTS: Final[frozenset[type[exp.Expr]]] = frozenset({exp.PropertyEQ, exp.Slice})
"""Named for the places where they stand alone; elsewhere they belong to what is around them."""

ARGUMENT_WORDS: Final[Mapping[tuple[type[exp.Expr], str], str]] = MappingProxyType(
    {
        (exp.Select, "kind"): "SELECT AS",
        (exp.Table, "ordinality"): "WITH ORDINALITY",
        (exp.Column, "db"): "a schema before a column's table",
        (exp.Column, "catalog"): "a database before a column's table",
        (exp.CTE, "key_expressions"): "USING KEY",
        (exp.Group, "totals"): "WITH TOTALS",
        (exp.Limit, "limit_options"): "LIMIT with a percentage",
        (exp.Ordered, "with_fill"): "WITH FILL",
        (exp.Between, "symmetric"): "BETWEEN SYMMETRIC",
        (exp.In, "field"): "IN with anything but a list",
        (exp.In, "unnest"): "IN UNNEST",
        (exp.Cast, "format"): "CAST ... FORMAT",
        (exp.Slice, "step"): "a step within []",
        (exp.DataType, "nested"): "a nested type",
        (exp.Anonymous, "order"): "ORDER BY within a function call",
        (exp.Create, "properties"): "CREATE with options (TEMPORARY, WITH NO DATA and the like)",
        (syntax.DropColumn, "cascade"): "CASCADE",
        (exp.Create, "no_schema_binding"): "WITH NO SCHEMA BINDING",
        (exp.Insert, "alternative"): "INSERT OR REPLACE or OR IGNORE",
        (exp.Insert, "conflict"): "ON CONFLICT",
        (exp.Drop, "cascade"): "CASCADE",
        (exp.Drop, "restrict"): "RESTRICT",
    }
)


def words_of(node: exp.Expr) -> str:
    """What a node of a kind that is never read is called."""
    kind = type(node)
    describe = _DESCRIBED.get(kind)
    return describe(node) if describe else _WORDS.get(kind, _spell(kind.__name__))


def argument_words(kind: type[exp.Expr], name: str) -> str:
    """What an argument that is not read is called."""
    return ARGUMENT_WORDS.get((kind, name), f"{_spell(name)} of {_spell(kind.__name__)}")


def has_own_name(kind: type[exp.Expr]) -> bool:
    """Whether it is worth a reason of its own within something that is refused anyway."""
    return (kind in _WORDS or kind in _DESCRIBED) and kind not in _PARTS


def _spell(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).strip().upper()


def _pivot(node: exp.Expr) -> str:
    return "UNPIVOT" if node.args.get("unpivot") else "PIVOT"


def _command(node: exp.Expr) -> str:
    return f"the statement {str(node.this).upper()}"


def _foreign(node: exp.Expr) -> str:
    words = str(node.this)
    return f"the statement {words}" if words.isupper() and " " not in words else words


_DESCRIBED: Final[Mapping[type[exp.Expr], Callable[[exp.Expr], str]]] = MappingProxyType(
    {
        exp.Pivot: _pivot,
        exp.Command: _command,
        syntax.Foreign: _foreign,
        syntax.Refused: lambda node: str(node.this),
    }
)
