"""What of each kind of node the binder takes into account, and what changes nothing.

A test holds the binder to `READ`: what is listed is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from bamquery.sql_frontend.syntax import ast_nodes as syntax

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
        exp.Table: ("this", "db", "alias", "joins", "sample"),
        exp.TableSample: ("method", "percent", "size", "seed"),
        exp.TableAlias: ("this", "columns"),
        exp.Subquery: ("this", "alias", "joins", "sample", "with_", "order", "limit", "offset"),
        exp.Join: ("this", "kind", "side", "method", "on", "using"),
        exp.With: ("expressions", "recursive"),
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
        exp.Star: ("except_", "replace", "rename", "ilike"),
        exp.Alias: ("this", "alias"),
        # Expressions.
        exp.Identifier: ("this",),
        exp.Column: ("this", "table"),
        exp.Literal: ("this", "is_string"),
        exp.HexString: ("this",),
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
        syntax.Plus: ("this",),
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
        exp.Bracket: ("this", "expressions"),
        exp.Slice: _BINARY,
        exp.Anonymous: ("this", "expressions"),
        exp.Filter: _BINARY,
        exp.WithinGroup: _BINARY,
        exp.Array: ("expressions",),
        exp.Struct: ("expressions",),
        exp.PropertyEQ: _BINARY,
        # Statements.
        exp.Create: ("this", "kind", "replace", "exists", "expression", "options"),
        exp.Insert: (*_BINARY, "by_name", "default"),
        exp.ColumnDef: ("this", "kind", "constraints"),
        exp.ColumnConstraint: ("kind",),
        exp.NotNullColumnConstraint: ("allow_null",),
        exp.DefaultColumnConstraint: ("this",),
        exp.Schema: ("this", "expressions"),
        exp.Drop: ("tables", "kind", "exists"),
        exp.Describe: ("this",),
        syntax.ShowTables: ("this",),
        syntax.SchemaName: ("this", "catalog"),
        syntax.ShowNamed: ("this",),
        syntax.ShowSubject: ("this", "table"),
        syntax.SchemaStatement: ("this", "verb", "exists"),
        syntax.Explain: ("this", "analyze"),
        syntax.Optimize: ("this", "columns"),
        syntax.Vacuum: (),
        syntax.SetSetting: _BINARY,
        syntax.SetVariable: _BINARY,
        syntax.Reset: ("this",),
        syntax.Summarize: ("this",),
        syntax.AlterTable: ("this", "kind", "exists", "action"),
        syntax.AddColumn: ("this", "exists"),
        syntax.DropColumn: ("this", "exists"),
        syntax.RenameColumn: _BINARY,
        syntax.RenameTable: ("this",),
        syntax.SetOptions: ("expressions",),
        syntax.TableOption: _BINARY,
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
