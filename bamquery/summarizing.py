"""SUMMARIZE: runs the aggregation and turns its one row into one for each column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from bamquery.cells import texts
from bamquery.plan.nodes import Plan
from bamquery.plan.statements import Summarize
from bamquery.session import Session
from bamquery.type_names import type_name

_TEXTS: Final = ("min", "max", "avg", "std", "q25", "q50", "q75")
_PERCENT: Final = pa.decimal128(9, 2)


def summarize(session: Session, statement: Summarize, plan: Plan) -> pa.RecordBatch:
    """One row a column, in DuckDB's columns; all figures are exact."""
    with session.run(plan) as result:
        found = result.table().combine_chunks()
    rows: int = found.column(0)[0].as_py()
    values = iter(found.columns[1:])
    summaries: list[dict[str, Any]] = []
    for column, names in zip(statement.columns, statement.figures, strict=True):
        figures: dict[str, Any] = {name: next(values) for name in names}
        present = figures["values"][0].as_py()
        summary: dict[str, Any] = {
            name: texts(figures[name].chunk(0))[0].as_py() if name in figures else None for name in _TEXTS
        }
        share = Decimal(100 * (rows - present)) / rows if rows else None
        summaries.append(
            {
                "column_name": column.name,
                "column_type": type_name(column.type),
                "approx_unique": figures["approx_unique"][0].as_py(),
                "count": rows,
                "null_percentage": None if share is None else share.quantize(Decimal("0.01")),
                **summary,
            }
        )
    text, count = pa.large_string(), pa.int64()
    kinds = {
        "column_name": text,
        "column_type": text,
        "min": text,
        "max": text,
        "approx_unique": count,
        **dict.fromkeys(("avg", "std", "q25", "q50", "q75"), text),
        "count": count,
        "null_percentage": _PERCENT,
    }
    columns = [pa.array([summary[name] for summary in summaries], kind) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(columns, list(kinds))
