"""SUMMARIZE: runs the aggregation and turns its one row into one for each column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from bamquery.catalog.views import inline_views
from bamquery.data_types.names import type_name
from bamquery.output.cells import cell_strings
from bamquery.plan.bound_statements import ColumnFigures, Summarize
from bamquery.plan.nodes import Plan
from bamquery.session.session import Session

_TEXTS: Final = ("min", "max", "avg", "std", "q25", "q50", "q75")
_QUARTILES: Final = (("q25", 1), ("q50", 2), ("q75", 3))
_PERCENT: Final = pa.decimal128(9, 2)


def summarize(session: Session, statement: Summarize) -> pa.RecordBatch:
    """One row a column, in DuckDB's columns; all figures are exact."""
    summaries = [summary for few in statement.figures for summary in _summaries(session, few)]
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


def _summaries(session: Session, few: ColumnFigures) -> list[dict[str, Any]]:
    with session.run(inline_views(few.plan)) as result:
        found = result.table().combine_chunks()
    ordered = dict(few.ordered)
    rows: int = found.column(0)[0].as_py()
    values = iter(found.columns[1:])
    summaries: list[dict[str, Any]] = []
    for column, names in zip(few.columns, few.figures, strict=True):
        figures: dict[str, Any] = {name: next(values) for name in names}
        present = figures["values"][0].as_py()
        summary: dict[str, Any] = {
            name: cell_strings(figures[name].chunk(0))[0].as_py() if name in figures else None
            for name in _TEXTS
        }
        if column.name in ordered and present:
            summary.update(_quartiles(session, inline_views(ordered[column.name]), present))
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
    return summaries


def _quartiles(session: Session, plan: Plan, count: int) -> dict[str, str]:
    """The values up to which a quarter, half and three quarters of all are; the plan has them in order."""
    places = {name: -(-count * quarter // 4) - 1 for name, quarter in _QUARTILES}
    found: dict[str, str] = {}
    first = 0
    with session.run(plan) as result:
        for batch in result:
            column: Any = batch.column(0)
            for name, place in places.items():
                if first <= place < first + batch.num_rows:
                    found[name] = cell_strings(column.slice(place - first, 1))[0].as_py()
            first += batch.num_rows
            if len(found) == len(places):
                break
    return found
