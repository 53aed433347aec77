"""What of the syntax tree the binder reads; everything else is refused, all at once, before any I/O.

`READ` lists, for each kind of node, the arguments that the binder takes into account. A node of another
kind, or another argument that is set, is something that the statement asks for and that would otherwise be
ignored in silence. A test holds the binder to the list: what is listed is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from bamquery.errors import Reason, UnsupportedError
from bamquery.sql import syntax
from bamquery.sql.aggregates import is_aggregate
from bamquery.sql.call_syntax import is_windowed
from bamquery.sql.positions import reason, start

_BINARY: Final = ("this", "expression")

READ: Final[Mapping[type[exp.Expr], tuple[str, ...]]] = MappingProxyType(
    {
        # Queries.
        exp.Select: (
            *("expressions", "distinct", "from_", "where", "group", "having", "order", "limit", "offset"),
            *("joins", "with_"),
            *("windows", "qualify", "sample"),
        ),
        exp.Window: ("this", "partition_by", "order", "spec", "alias"),
        exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side", "exclude"),
        exp.Qualify: ("this",),
        exp.IgnoreNulls: ("this",),
        exp.RespectNulls: ("this",),
        exp.From: ("this",),
        exp.Table: ("this", "alias", "joins", "sample"),
        exp.TableSample: ("method", "percent", "size", "seed"),
        exp.TableAlias: ("this", "columns"),
        exp.Subquery: ("this", "alias", "sample", "with_", "order", "limit", "offset"),
        exp.Join: ("this", "kind", "side", "method", "on", "using"),
        exp.With: ("expressions",),
        exp.CTE: ("this", "alias"),
        exp.Union: (*_BINARY, "distinct", "by_name", "order", "limit", "offset", "with_"),
        exp.Intersect: (*_BINARY, "distinct", "order", "limit", "offset", "with_"),
        exp.Except: (*_BINARY, "distinct", "order", "limit", "offset", "with_"),
        exp.Exists: ("this",),
        exp.Any: ("this",),
        exp.All: ("this",),
        exp.Values: ("expressions", "alias"),
        exp.Tuple: ("expressions",),
        exp.Where: ("this",),
        exp.Group: ("expressions", "all"),
        exp.Rollup: ("expressions",),
        exp.Cube: ("expressions",),
        exp.GroupingSets: ("expressions",),
        exp.Having: ("this",),
        exp.Order: ("this", "expressions"),
        exp.Ordered: ("this", "desc", "nulls_first"),
        exp.Limit: ("expression",),
        exp.Offset: ("expression",),
        exp.Distinct: ("expressions", "on"),
        exp.Star: ("except_",),
        exp.Alias: ("this", "alias"),
        # Expressions.
        exp.Identifier: ("this",),
        exp.Column: ("this", "table"),
        exp.Literal: ("this", "is_string"),
        exp.Boolean: ("this",),
        exp.Null: (),
        exp.Var: ("this",),
        exp.Paren: ("this",),
        exp.And: _BINARY,
        exp.Or: _BINARY,
        exp.Not: ("this",),
        exp.EQ: _BINARY,
        exp.NEQ: _BINARY,
        exp.LT: _BINARY,
        exp.LTE: _BINARY,
        exp.GT: _BINARY,
        exp.GTE: _BINARY,
        exp.NullSafeEQ: _BINARY,
        exp.NullSafeNEQ: _BINARY,
        exp.Is: _BINARY,
        exp.Between: ("this", "low", "high"),
        exp.In: ("this", "expressions", "query"),
        exp.Like: (*_BINARY, "negate"),
        exp.ILike: (*_BINARY, "negate"),
        exp.Add: _BINARY,
        exp.Sub: _BINARY,
        exp.Mul: _BINARY,
        exp.Div: _BINARY,
        exp.IntDiv: _BINARY,
        exp.Mod: _BINARY,
        exp.Pow: _BINARY,
        exp.DPipe: _BINARY,
        exp.Neg: ("this",),
        exp.Abs: ("this",),
        exp.BitwiseAnd: _BINARY,
        exp.BitwiseOr: _BINARY,
        exp.BitwiseNot: ("this",),
        exp.BitwiseLeftShift: _BINARY,
        exp.BitwiseRightShift: _BINARY,
        exp.Escape: _BINARY,
        exp.Glob: _BINARY,
        exp.SimilarTo: _BINARY,
        exp.RegexpLike: _BINARY,
        exp.StartsWith: _BINARY,
        exp.Interval: ("this", "unit"),
        exp.AtTimeZone: ("this", "zone"),
        exp.StrPosition: ("this", "substr"),
        exp.Overlay: ("this", "expression", "from_", "for_"),
        exp.CurrentDate: (),
        exp.CurrentTimestamp: (),
        exp.Localtime: (),
        exp.Localtimestamp: (),
        exp.Case: ("this", "ifs", "default"),
        exp.If: ("this", "true", "false"),
        exp.Cast: ("this", "to"),
        exp.TryCast: ("this", "to"),
        exp.DataType: ("this", "expressions", "kind"),
        exp.DataTypeParam: ("this",),
        exp.Extract: _BINARY,
        exp.Substring: ("this", "start", "length"),
        exp.Trim: ("this", "expression", "position"),
        exp.Anonymous: ("this", "expressions"),
        exp.Filter: _BINARY,
        exp.WithinGroup: _BINARY,
        exp.Array: ("expressions",),
        exp.Struct: ("expressions",),
        exp.PropertyEQ: _BINARY,
        # Statements.
        exp.Create: ("this", "kind", "replace", "exists", "expression"),
        exp.Insert: (*_BINARY, "by_name", "default"),
        exp.ColumnDef: ("this", "kind", "constraints"),
        exp.ColumnConstraint: ("kind",),
        exp.NotNullColumnConstraint: ("allow_null",),
        exp.DefaultColumnConstraint: ("this",),
        exp.Schema: ("this", "expressions"),
        exp.Drop: ("tables", "kind", "exists"),
        exp.Describe: ("this",),
        exp.Show: ("this",),
        syntax.Explain: ("this", "analyze"),
        syntax.Optimize: ("this", "columns"),
        syntax.Vacuum: (),
        syntax.SetSetting: _BINARY,
        syntax.Reset: ("this",),
        syntax.Summarize: ("this",),
        syntax.AlterTable: ("this", "kind", "exists", "action"),
        syntax.AddColumn: ("this", "exists"),
        syntax.DropColumn: ("this", "exists"),
        syntax.RenameColumn: _BINARY,
        syntax.RenameTable: ("this",),
        syntax.CopyTo: ("this", "columns", "path", "options"),
        syntax.CopyFrom: ("this", "columns", "path", "options"),
        syntax.Option: _BINARY,
    }
)

WITHOUT_MEANING: Final[frozenset[tuple[type[exp.Expr], str]]] = frozenset(
    {
        # Names compare without regard to case whether quoted or not.
        (exp.Identifier, "quoted"),
        # The word that stands before a window: OVER, the only one there is.
        (exp.Window, "over"),
        # sqlglot's notes on what DuckDB's operator means, the same wherever it stands.
        (exp.DPipe, "safe"),
        (exp.TryCast, "safe"),
        # A query is put wherever its name stands.
        (exp.CTE, "materialized"),
    }
)
"""Arguments that change nothing, so that nothing is lost where they are not read."""

_WORDS: Final[Mapping[type[exp.Expr], str]] = MappingProxyType(
    {
        exp.Lateral: "LATERAL",
        exp.Unnest: "UNNEST",
        exp.TableSample: "sampling",
        exp.Fetch: "FETCH FIRST (write LIMIT)",
        exp.Lock: "FOR UPDATE or FOR SHARE",
        exp.Into: "SELECT INTO (write CREATE TABLE AS)",
        exp.Collate: "COLLATE",
        exp.Struct: "a struct",
        exp.ToMap: "a map",
        exp.Map: "a map",
        exp.Bracket: "indexing or slicing with []",
        exp.Slice: "slicing with [:]",
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
        exp.ByteString: "an E'' string",
        exp.HexString: "a hexadecimal string",
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

_ARGUMENT_WORDS: Final[Mapping[tuple[type[exp.Expr], str], str]] = MappingProxyType(
    {
        (exp.Select, "kind"): "SELECT AS",
        (exp.Table, "db"): "a schema before a table's name",
        (exp.Table, "catalog"): "a database before a table's name",
        (exp.Table, "ordinality"): "WITH ORDINALITY",
        (exp.Column, "db"): "a schema before a column's table",
        (exp.Column, "catalog"): "a database before a column's table",
        (exp.With, "recursive"): "WITH RECURSIVE",
        (exp.Star, "replace"): "* REPLACE",
        (exp.Star, "rename"): "* RENAME",
        (exp.Group, "totals"): "WITH TOTALS",
        (exp.Limit, "limit_options"): "LIMIT with a percentage",
        (exp.Ordered, "with_fill"): "WITH FILL",
        (exp.Between, "symmetric"): "BETWEEN SYMMETRIC",
        (exp.In, "field"): "IN with anything but a list",
        (exp.In, "unnest"): "IN UNNEST",
        (exp.Cast, "format"): "CAST ... FORMAT",
        (exp.DataType, "nested"): "a nested type",
        (exp.Anonymous, "order"): "ORDER BY within a function call",
        (exp.Create, "properties"): "CREATE with options (TEMPORARY, WITH NO DATA and the like)",
        (syntax.DropColumn, "cascade"): "CASCADE",
        (exp.Create, "no_schema_binding"): "WITH NO SCHEMA BINDING",
        (exp.Insert, "alternative"): "INSERT OR REPLACE or OR IGNORE",
        (exp.Insert, "conflict"): "ON CONFLICT",
        (exp.Drop, "cascade"): "CASCADE",
        (exp.Drop, "restrict"): "RESTRICT",
        (exp.Show, "from_"): "SHOW ... FROM",
    }
)


def check(statement: exp.Expr, sql: str) -> None:
    """Refuse what the binder would not read.

    Raises:
        UnsupportedError: with every construct, in the order of the text.
    """
    reasons = sorted(set(_reasons(statement, sql)), key=lambda r: (r.line, r.column))
    if reasons:
        raise UnsupportedError(reasons, sql)


def _reasons(statement: exp.Expr, sql: str) -> Iterator[Reason]:
    pending = [(statement, False)]  # a list, not recursion: chains of operators get long
    while pending:
        node, inside_refused = pending.pop()
        kind = type(node)
        words = _refused(node)
        if words is not None and (not inside_refused or _has_own_name(kind)):
            yield _not_supported(words, sql, node)
        inside_refused = inside_refused or words is not None
        for name, value in node.args.items():
            if value is None or value is False or (kind, name) in WITHOUT_MEANING:
                continue
            values = value if isinstance(value, list) else [value]
            below = [child for child in values if isinstance(child, exp.Expr)]
            if values and _is_ignored(kind, name, below, inside_refused=inside_refused):
                yield _not_supported(_argument_words(kind, name), sql, below[0] if below else node)
                pending += [(part, True) for child in below for part in child.iter_expressions()]
            else:
                pending += [(child, inside_refused) for child in below]


def _is_ignored(kind: type[exp.Expr], name: str, below: list[exp.Expr], *, inside_refused: bool) -> bool:
    """Whether an argument is one that the binder does not read, and that does not say so itself."""
    if kind not in READ or name in READ[kind]:
        return False
    if (kind, name) in _ARGUMENT_WORDS:
        return True
    return not inside_refused and not (below and all(_has_own_name(type(child)) for child in below))


def _not_supported(words: str, sql: str, node: exp.Expr) -> Reason:
    place: exp.Expr | None = node
    while place is not None and start(place) is None:
        place = place.parent
    return reason(f"{words} is not supported", sql, place)


def _has_own_name(kind: type[exp.Expr]) -> bool:
    """Whether it is worth a reason of its own within something that is refused anyway."""
    return (kind in _WORDS or kind in _DESCRIBED) and kind not in _PARTS


def _refused(node: exp.Expr) -> str | None:
    """What the node is called if it cannot be there, or None."""
    kind = type(node)
    if kind not in READ:
        describe = _DESCRIBED.get(kind)
        return describe(node) if describe else _WORDS.get(kind, _spell(kind.__name__))
    place = _PLACES.get(kind)
    return place(node) if place else None


def _argument_words(kind: type[exp.Expr], name: str) -> str:
    return _ARGUMENT_WORDS.get((kind, name), f"{_spell(name)} of {_spell(kind.__name__)}")


def _spell(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).strip().upper()


def _pivot(node: exp.Expr) -> str:
    return "UNPIVOT" if node.args.get("unpivot") else "PIVOT"


def _command(node: exp.Expr) -> str:
    return f"the statement {str(node.this).upper()}"


def _foreign(node: exp.Expr) -> str:
    words = str(node.this)
    return f"the statement {words}" if words.isupper() else words


_DESCRIBED: Final[Mapping[type[exp.Expr], Callable[[exp.Expr], str]]] = MappingProxyType(
    {exp.Pivot: _pivot, exp.Command: _command, syntax.Foreign: _foreign}
)


def _join(node: exp.Expr) -> str | None:
    method, side, kind = (str(node.args.get(part) or "").upper() for part in ("method", "side", "kind"))
    if method == "ASOF" and kind in ("", "INNER", "OUTER") and side in ("", "LEFT"):
        return None
    known = method in ("", "NATURAL") and (
        (kind in ("", "INNER", "CROSS", "SEMI", "ANTI") and not side)
        or (kind in ("", "OUTER") and side in ("LEFT", "RIGHT", "FULL"))
    )
    return None if known else " ".join(word for word in (method, side, kind, "JOIN") if word)


def _query(node: exp.Expr) -> str | None:
    return "a list of a subquery's rows (ARRAY)" if isinstance(node.parent, exp.Anonymous) else None


def _quantified(node: exp.Expr) -> str | None:
    """ANY and ALL go with a comparison, on its right side, and take a query."""
    words = type(node).__name__.upper()
    comparison = node.parent
    known = isinstance(comparison, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE))
    if not known or comparison is None or comparison.args.get("expression") is not node:
        return f"{words} anywhere but after a comparison"
    query = node.this
    while isinstance(query, exp.Paren | exp.Subquery):
        query = query.this
    return None if isinstance(query, exp.Query | exp.Values) else f"{words} of a list"


def _tuple(node: exp.Expr) -> str | None:
    around = node.parent
    at_home = isinstance(
        around, (exp.Values, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Distinct, syntax.Option)
    )
    nothing = isinstance(around, exp.Group) and not node.expressions
    return None if at_home or nothing else "a row value"


def _array(node: exp.Expr) -> str | None:
    return None if _is_option(node) else "a list"


def _struct(node: exp.Expr) -> str | None:
    return None if _is_option(node) else "a struct"


def _named(node: exp.Expr) -> str | None:
    return None if _is_option(node) else "a named argument"


def _is_option(node: exp.Expr) -> bool:
    """Whether it is an argument of a table function, or part of one, or of an option of COPY."""
    parent = node.parent
    while isinstance(parent, (exp.EQ, exp.PropertyEQ, exp.Struct)):
        parent = parent.parent
    return isinstance(parent, syntax.Option) or (
        isinstance(parent, exp.Anonymous) and isinstance(parent.parent, exp.Table)
    )


def _is(node: exp.Expr) -> str | None:
    return (
        None
        if isinstance(node.expression, (exp.Null, exp.Boolean))
        else "IS with anything but NULL, TRUE or FALSE"
    )


def _order(node: exp.Expr) -> str | None:
    call = node.parent
    scalar = isinstance(call, exp.Anonymous) and not is_aggregate(call.name)
    return "ORDER BY within a call of what is no aggregate" if scalar else None


def _window(node: exp.Expr) -> str | None:
    word = str(node.args.get("over") or "OVER").upper()
    return None if word == "OVER" else f"{word} before a window"


def _nulls(node: exp.Expr) -> str | None:
    words = "IGNORE NULLS" if isinstance(node, exp.IgnoreNulls) else "RESPECT NULLS"
    call = node.parent
    if isinstance(call, exp.Order):
        call = call.parent
    if not isinstance(call, exp.Anonymous):
        return f"{words} after the parentheses (write it within)"
    return None if is_windowed(call) else f"{words} without OVER"


def _create(node: exp.Expr) -> str | None:
    if node.args.get("kind") not in ("TABLE", "VIEW"):
        return f"CREATE {node.args.get('kind')}"
    return None


def _drop(node: exp.Expr) -> str | None:
    if node.args.get("kind") not in ("TABLE", "VIEW"):
        return f"DROP {node.args.get('kind')}"
    return "DROP of several at once" if len(node.args["tables"]) > 1 else None


def _show(node: exp.Expr) -> str | None:
    return None if node.name.upper() == "TABLES" else f"SHOW {node.name.upper()}"


def _column_def(node: exp.Expr) -> str | None:
    at_home = isinstance(node.parent, syntax.AddColumn) or (
        isinstance(node.parent, exp.Schema) and isinstance(node.parent.parent, exp.Create)
    )
    return None if at_home else "a name with a type"


def _schema(node: exp.Expr) -> str | None:
    return None if isinstance(node.parent, (exp.Insert, exp.Create)) else "a list of columns"


_PLACES: Final[Mapping[type[exp.Expr], Callable[[exp.Expr], str | None]]] = MappingProxyType(
    {
        exp.Join: _join,
        exp.Select: _query,
        exp.Any: _quantified,
        exp.All: _quantified,
        exp.Tuple: _tuple,
        exp.Array: _array,
        exp.Struct: _struct,
        exp.PropertyEQ: _named,
        exp.Is: _is,
        exp.Order: _order,
        exp.Window: _window,
        exp.IgnoreNulls: _nulls,
        exp.RespectNulls: _nulls,
        exp.Create: _create,
        exp.Drop: _drop,
        exp.Show: _show,
        exp.Schema: _schema,
        exp.ColumnDef: _column_def,
    }
)
"""Nodes that are read in some places only."""
