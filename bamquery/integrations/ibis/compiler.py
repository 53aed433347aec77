"""Ibis's expressions as SQL: DuckDB's, without what BamQuery lacks."""

from __future__ import annotations

from typing import Any, ClassVar

import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler
from ibis.common.exceptions import UnsupportedOperationError
from ibis.expr.operations.core import Value

_FAMILIES = ("Array", "Map", "Struct", "Geo", "JSON", "ToJSON", "UnwrapJSON")
"""Begins of the names of operations on types that BamQuery has not."""


def _of_missing_types() -> list[type[Value]]:
    found = [getattr(ops, name) for name in dir(ops) if name.startswith(_FAMILIES)]
    return [kind for kind in found if isinstance(kind, type) and issubclass(kind, Value)]


class BamQueryCompiler(DuckDBCompiler):
    """Refuses, when it compiles, what BamQuery would refuse when it binds."""

    __slots__ = ()

    UNSUPPORTED_OPS: ClassVar[Any] = tuple(_of_missing_types())


compiler = BamQueryCompiler()
