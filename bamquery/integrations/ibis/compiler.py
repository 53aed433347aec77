"""Ibis's expressions as SQL: DuckDB's, without what BamQuery lacks."""

from __future__ import annotations

from typing import Any, ClassVar

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler
from ibis.backends.sql.datatypes import DuckDBType
from ibis.common.exceptions import UnsupportedBackendType
from ibis.expr.operations.core import Value
from ibis.expr.rewrites import lower_stringslice

_FAMILIES = ("Array", "Map", "Struct", "Geo", "JSON", "ToJSON", "UnwrapJSON")
"""Begins of the names of operations on types that BamQuery has not."""
_MOST_DIGITS = 38


def _refuse_missing_types() -> list[type[Value]]:
    found = [getattr(ops, name) for name in dir(ops) if name.startswith(_FAMILIES)]
    return [kind for kind in found if isinstance(kind, type) and issubclass(kind, Value)]


class BamQueryType(DuckDBType):
    """DuckDB's types, of which BamQuery has not all."""

    @classmethod
    def from_ibis(cls, dtype: dt.DataType) -> sge.DataType:
        """The type as SQL spells it.

        Raises:
            UnsupportedBackendType: there is none.
        """
        missing = dtype.is_nested() or dtype.is_uuid() or dtype.is_json() or dtype.is_geospatial()
        if missing or (dtype.is_decimal() and (dtype.precision or 0) > _MOST_DIGITS):
            raise UnsupportedBackendType(f"BamQuery has no type for {dtype}")
        found: sge.DataType = super().from_ibis(dtype)
        return found

    @classmethod
    def from_string(cls, text: str, nullable: bool = True) -> dt.DataType:
        """The type that SQL spells so."""
        if text == "TIME_NS":
            return dt.Time(nullable=nullable)
        found: dt.DataType = super().from_string(text, nullable=nullable)
        return found


class BamQueryCompiler(DuckDBCompiler):
    """Refuses, when it compiles, what BamQuery would refuse when it binds."""

    __slots__ = ()

    type_mapper = BamQueryType
    LOWERED_OPS: ClassVar[Any] = {ops.StringSlice: lower_stringslice}
    UNSUPPORTED_OPS: ClassVar[Any] = (
        *_refuse_missing_types(),
        # Their answers are lists, or rows of lists.
        *(ops.Unnest, ops.TableUnnest, ops.IntegerRange, ops.TimestampRange, ops.StringSplit, ops.RegexSplit),
        *(ops.MultiQuantile, ops.ApproxMultiQuantile, ops.CountDistinctStar),
        # Their answers differ from run to run.
        *(ops.RandomScalar, ops.RandomUUID),
        *(ops.Hash, ops.HashBytes),
    )

    def visit_NonNullLiteral(self, op: Any, *, value: Any, dtype: dt.DataType) -> Any:  # noqa: N802
        """A constant; an instant is written as a text with its offset."""
        if dtype.is_timestamp() and dtype.timezone is not None:
            return self.cast(value.isoformat(), dtype)
        return super().visit_NonNullLiteral(op, value=value, dtype=dtype)

    def visit_ApproxQuantile(self, op: Any, *, arg: Any, quantile: Any, where: Any) -> Any:  # noqa: N802
        """The exact one, of which there is one way to compute it."""
        return self.visit_Quantile(op, arg=arg, quantile=quantile, where=where)

    def visit_ApproxMedian(self, op: Any, *, arg: Any, where: Any) -> Any:  # noqa: N802
        """The exact one."""
        return self.visit_Median(op, arg=arg, where=where)

    def visit_FindInSet(self, op: Any, *, needle: Any, values: Any) -> Any:  # noqa: N802
        """The place of the first equal value, from 1; 0 where there is none."""
        if not values:
            return sge.convert(0)
        cases = [
            sge.If(this=needle.eq(value), true=sge.convert(place)) for place, value in enumerate(values, 1)
        ]
        found = sge.Case(ifs=cases, default=sge.convert(0))
        return self.if_(needle.is_(sge.Null()), sge.Null(), found)


compiler = BamQueryCompiler()
