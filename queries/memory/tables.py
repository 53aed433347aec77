"""Tables and files that the cases read, several times as large as the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.connection.connection import Connection

_SOURCES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "texts": (
            "CREATE TABLE texts AS SELECT i, i % 100 AS g, repeat(md5(i::VARCHAR), 128) AS w "
            "FROM range({texts}) r(i)",
        ),
        "numbers": (
            "CREATE TABLE numbers AS SELECT i * 2654435761 % {numbers} AS k, i AS v "
            "FROM range({numbers}) r(i)",
        ),
        "few": ("CREATE TABLE few AS SELECT i FROM range({few}) r(i)",),
        "many": ("CREATE TABLE many AS SELECT i FROM range({many}) r(i)",),
        "pairs": (
            "CREATE TABLE a AS SELECT i, i % 3 AS g, repeat(md5(i::VARCHAR), 20 + i % 160) AS x "
            "FROM range({pairs}) r(i)",
            "CREATE TABLE b AS SELECT i, i % 3 AS g, repeat(md5('b' || i), 20 + i % 160) AS y "
            "FROM range({pairs}) r(i)",
        ),
    }
)
_TEXT_BYTES: Final = 4096
_NUMBER_BYTES: Final = 16
_BATCH: Final = 4096
FILES: Final = ("parquet", "csv", "arrow", "ndjson")


def sizes(limit: int, scale: float) -> dict[str, int]:
    """Rows of each table: at scale 1 the largest take four times the limit, and answers many times that."""
    return {
        "texts": max(int(4 * limit * scale) // _TEXT_BYTES, 64),
        "numbers": max(int(2 * limit * scale) // _NUMBER_BYTES, 64),
        "few": max(int(20_000 * scale), 64),
        "many": max(int(100_000 * scale), 64),
        "pairs": max(int(1_500 * scale), 64),
    }


def make_table(connection: Connection, name: str, folder: Path, rows: Mapping[str, int]) -> None:
    """A table by its name, or a file `NAME.parquet`, say, in the folder, made of that table."""
    table, _, file = name.partition(".")
    if file:
        connection.execute(f"COPY {table} TO '{folder / name}'")
        return
    for text in _SOURCES[table]:
        connection.execute(text.format(**rows))


def text_batches(rows: int) -> pa.RecordBatchReader:
    """What the table `texts` has, as batches that are made when they are asked for."""
    fields: list[tuple[str, pa.DataType]] = [("i", pa.int64()), ("g", pa.int64()), ("w", pa.large_string())]
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, _BATCH):
            numbers = range(start, min(start + _BATCH, rows))
            texts = [f"{i:032d}" * (_TEXT_BYTES // 32) for i in numbers]
            columns: list[Any] = [pa.array(numbers), pa.array([i % 100 for i in numbers])]
            yield pa.record_batch([*columns, pa.array(texts, pa.large_string())], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
