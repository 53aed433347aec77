"""One question asked of BamQuery and of another engine, and how their answers differ.

with Pair() as pair:
    for found in pair.differences("SELECT abs(x) FROM t"):   # [] where types, rows and errors are alike
        print(found.row, found.ours, found.theirs)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa

import bamquery
from bamquery.connection.connection import Connection
from bamquery.data_types.names import type_name
from bamquery.errors import BamQueryError, ExecutionError, UnsupportedError
from bamquery.plan.literals import interval_strings
from tests.oracle import connect
from tests.values import plain

Answer = pa.Table | Exception
"""What a statement gave."""

ERROR: Final = "an error"
REFUSED: Final = "refused"
FOREIGN: Final = "a foreign exception"
NULL: Final = "NULL"


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two answers are not one.

    Attributes:
        row: of the answer, from 0; -1 for one of types, of how many rows, or of errors.
        column: of the answer.
        ours, theirs: values, or in words what was given in place of them.
    """

    row: int
    column: int
    ours: Any
    theirs: Any


class Pair:
    """A database in memory in BamQuery, and one in DuckDB; with a GPU, one in BamQuery on the CPU."""

    def __init__(self, device: str = "cpu", threads: int = 1) -> None:
        self.ours: Connection = bamquery.connect(threads=threads, device=device)
        self._theirs: duckdb.DuckDBPyConnection | Connection
        self._theirs = connect() if device == "cpu" else bamquery.connect(threads=threads)

    @property
    def is_duckdb(self) -> bool:
        """Whether the other one is DuckDB."""
        return isinstance(self._theirs, duckdb.DuckDBPyConnection)

    def load(self, name: str, columns: Mapping[str, tuple[str, pa.Array[Any]]]) -> None:
        """A table in both, of columns given as a type of `extremes.TYPES` and an array of that type.

        With columns of INTERVAL, which tables do not hold, it is a view over their texts; a name is one or
        the other.
        """
        intervals = [column for column, (kind, _) in columns.items() if kind == "INTERVAL"]
        stored = f"{name}_texts" if intervals else name
        arrays = {
            column: texts_of(array) if column in intervals else array
            for column, (_, array) in columns.items()
        }
        if intervals:
            for side in (self.ours, self._theirs):
                side.sql(f"DROP VIEW IF EXISTS {name}")
        table = pa.table(arrays)
        self.ours.load(stored, table, if_exists="replace")
        if isinstance(self._theirs, duckdb.DuckDBPyConnection):
            self._theirs.register("given", table)
            # HUGEINT is a decimal in Arrow.
            wanted = ", ".join(
                column if column in intervals else f"CAST({column} AS {kind}) AS {column}"
                for column, (kind, _) in columns.items()
            )
            self._theirs.execute(f"CREATE OR REPLACE TABLE {stored} AS SELECT {wanted} FROM given")
            self._theirs.unregister("given")
        else:
            self._theirs.load(stored, table, if_exists="replace")
        if intervals:
            casts = ", ".join(f"CAST({column} AS INTERVAL) AS {column}" for column in intervals)
            for side in (self.ours, self._theirs):
                side.sql(f"CREATE VIEW {name} AS SELECT * REPLACE ({casts}) FROM {stored}")

    def our_answer(self, sql: str) -> Answer:
        """BamQuery's."""
        return _answer(lambda: self.ours.sql(sql).to_arrow())

    def their_answer(self, sql: str) -> Answer:
        """The other's."""
        theirs = self._theirs
        if isinstance(theirs, duckdb.DuckDBPyConnection):
            return _answer(lambda: theirs.sql(sql).to_arrow_table())
        return _answer(lambda: theirs.sql(sql).to_arrow())

    def differences(self, sql: str, tolerance: float = 0.0) -> list[Difference]:
        """How the answers to one statement differ."""
        return differences(self.our_answer(sql), self.their_answer(sql), tolerance)

    def close(self) -> None:
        self.ours.close()
        self._theirs.close()

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def texts_of(intervals: pa.Array[Any]) -> pa.Array[Any]:
    """What casts to each of these intervals."""
    return pa.array(
        [
            None if span is None else interval_strings.write(span.months, span.days, span.nanoseconds // 1000)
            for span in intervals.to_pylist()
        ],
        pa.large_string(),
    )


def _answer(ask: Callable[[], pa.Table]) -> Answer:
    try:
        return ask()
    except Exception as error:
        return error


def answer_kind(answer: Answer) -> str:
    """In a word, what kind of answer it is."""
    if isinstance(answer, pa.Table):
        return "rows"
    if isinstance(answer, UnsupportedError):
        return REFUSED
    if isinstance(answer, BamQueryError | duckdb.Error):
        return ERROR
    return f"{FOREIGN}: {type(answer).__name__}"


def is_of_values(answer: Answer) -> bool:
    """Whether a statement failed on the values that it met, and not on what it says."""
    of_values = (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException)
    return isinstance(answer, (ExecutionError, *of_values))


def differences(ours: Answer, theirs: Answer, tolerance: float = 0.0) -> list[Difference]:
    """How two answers differ: types, rows in their order, errors."""
    if not (isinstance(ours, pa.Table) and isinstance(theirs, pa.Table)):
        mine, other = answer_kind(ours), answer_kind(theirs)
        return [] if mine == other else [Difference(-1, 0, mine, other)]
    if ours.num_rows != theirs.num_rows:
        return [Difference(-1, 0, f"{ours.num_rows} rows", f"{theirs.num_rows} rows")]
    found = []
    for place, (mine, other) in enumerate(zip(ours.columns, theirs.columns, strict=True)):
        kinds = [type_of(column.type) for column in (mine, other)]
        if kinds[0] != kinds[1]:
            found.append(Difference(-1, place, *kinds))
            continue
        found += [
            Difference(row, place, *pair)
            for row, pair in enumerate(zip(plain(mine), plain(other), strict=True))
            if pair[0] is not pair[1] and not values_agree(*pair, tolerance)
        ]
    return found


def type_of(kind: pa.DataType) -> str:
    """The name of a type; a column that is only NULL is an INTEGER (docs/sql.md)."""
    return type_name(pa.int32() if pa.types.is_null(kind) else kind)


def values_agree(ours: Any, theirs: Any, tolerance: float = 0.0) -> bool:
    """Whether two values are one: all NaNs are; 0.0 and -0.0 are not; floats within a relative tolerance."""
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        if ours == theirs:
            return tolerance > 0 or struct.pack("<d", ours) == struct.pack("<d", theirs)
        return tolerance > 0 and math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
    return type(ours) is type(theirs) and bool(ours == theirs)
