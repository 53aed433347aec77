"""Queries timed on BamQuery and DuckDB in turns, and their answers compared."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from bamquery.connection.connection import Connection, connect
from bamquery.errors import BamQueryError, UnsupportedError
from bamquery.queries.measuring.kernels import finish_compiling
from bamquery.queries.speed.data import Data, open_duckdb
from bamquery.queries.speed.suites import SpeedQuery

_RUNS_BEFORE: Final = 3
"""After which a GPU has the columns in its memory that it keeps there."""
_CLOSE: Final = 1e-9
"""Floating-point numbers are added up in other orders."""


@dataclass(frozen=True)
class Timing:
    """What one query took.

    Attributes:
        query: which.
        ours: BamQuery's seconds, one for each repetition.
        theirs: DuckDB's.
        rows: of the answer.
        problem: what is wrong with BamQuery's answer, or why there is none; empty where all is well.
        refused: whether BamQuery says by name that it does not do this.
    """

    query: SpeedQuery
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    rows: int
    problem: str = ""
    refused: bool = False

    @property
    def factor(self) -> float | None:
        """Fastest against fastest; None where there is nothing to compare."""
        return min(self.ours) / min(self.theirs) if self.ours and self.theirs else None


def geometric_mean(factors: Sequence[float]) -> float:
    """Of factors, one at least."""
    return math.exp(statistics.fmean(map(math.log, factors)))


def measure(
    data: Data,
    queries: Sequence[SpeedQuery],
    heard: Callable[[Timing], None],
    *,
    device: str,
    threads: int,
    repeat: int,
    gpu_cache: bool = True,
) -> list[Timing]:
    """Each query `repeat` times on both, in turns, after one run each that is not timed but compared.

    `device` is BamQuery's; DuckDB has the processor's `threads` in any case. Without `gpu_cache`, every run
    reads its columns from files; with it, runs before those that are timed let columns come in.
    """
    timings = []
    duckdb = open_duckdb(data.theirs, threads)
    try:
        limit = None if gpu_cache else 0
        with connect(data.ours, device=device, threads=threads, gpu_cache_limit=limit) as bamquery:
            for query in queries if gpu_cache and bamquery.gpu_cache is not None else ():
                for _ in range(_RUNS_BEFORE):
                    with suppress(BamQueryError):  # which is told of below
                        _ask_bamquery(bamquery, query.sql)
            for query in queries:
                timing = _time_query(bamquery, duckdb, query, repeat)
                heard(timing)
                timings.append(timing)
    finally:
        duckdb.close()
    return timings


def _time_query(bamquery: Connection, duckdb: Any, query: SpeedQuery, repeat: int) -> Timing:
    right = _ask_duckdb(duckdb, query.sql)
    try:
        answer = _ask_bamquery(bamquery, query.sql)
    except UnsupportedError as error:
        return Timing(query, (), (), right.num_rows, str(error), refused=True)
    except BamQueryError as error:
        return Timing(query, (), (), right.num_rows, str(error))
    problem = difference(answer, right)
    finish_compiling(lambda: _ask_bamquery(bamquery, query.sql))
    ours, theirs = [], []
    for _ in range(repeat):
        ours.append(_seconds(lambda: _ask_bamquery(bamquery, query.sql)))
        theirs.append(_seconds(lambda: _ask_duckdb(duckdb, query.sql)))
    return Timing(query, tuple(ours), tuple(theirs), right.num_rows, problem)


def _ask_bamquery(connection: Connection, sql: str) -> pa.Table:
    return connection.sql(sql).to_arrow()


def _ask_duckdb(connection: Any, sql: str) -> pa.Table:
    table: pa.Table = connection.sql(sql).to_arrow_table()
    return table


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def difference(answer: pa.Table, right: pa.Table) -> str:
    """What differs between two answers, row by row in their order; empty where nothing does."""
    if [name.lower() for name in answer.column_names] != [name.lower() for name in right.column_names]:
        return f"columns {answer.column_names}, not {right.column_names}"
    if answer.num_rows != right.num_rows:
        return f"{answer.num_rows:,} rows, not {right.num_rows:,}"
    columns = [(answer.column(i).to_pylist(), right.column(i).to_pylist()) for i in range(right.num_columns)]
    for name, (mine, other) in zip(right.column_names, columns, strict=True):
        for row, (value, wanted) in enumerate(zip(mine, other, strict=True)):
            if not _same_value(value, wanted):
                return f"row {row + 1}, {name}: {value!r}, not {wanted!r}"
    return ""


def _same_value(value: object, wanted: object) -> bool:
    if isinstance(value, float) and isinstance(wanted, float):
        both_nan = math.isnan(value) and math.isnan(wanted)
        return both_nan or math.isclose(value, wanted, rel_tol=_CLOSE, abs_tol=_CLOSE)
    if isinstance(value, Decimal) and isinstance(wanted, Decimal | int):
        return value == wanted
    return value == wanted
