"""Each system's own files of the same rows, loaded table by table from Parquet."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final, Self

import pyarrow.parquet

from bamquery.connection.connection import connect
from bamquery.queries.arguments import cores
from bamquery.queries.speed.systems.clickhouse_folder import DATABASE, open_clickhouse
from bamquery.queries.speed.systems.duckdb_file import open_duckdb
from bamquery.queries.speed.systems.frames import ENDINGS
from bamquery.queries.speed.systems.names import FilePlace
from bamquery.storage.format.layout import Encoding

_parquet: Final[Any] = pyarrow.parquet


class Copy:
    """A copy that is loaded table by table, and renamed at the end of its `with` unless something failed.

    Attributes:
        label: whose it is.
    """

    label: str

    def __init__(self, path: Path) -> None:
        self.path = path
        self._growing = part_of(path)

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._close()
        if kind is None:
            self._growing.rename(self.path)

    def load(self, table: str, files: list[Path]) -> None:
        """Make a table of Parquet files."""
        raise NotImplementedError

    def _open(self) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        """Nothing is open, unless a copy says so."""


class BamQueryCopy(Copy):
    """A database folder."""

    label = "BamQuery"

    def __init__(self, path: Path, encoding: Encoding) -> None:
        super().__init__(path)
        self._encoding = encoding

    def load(self, table: str, files: list[Path]) -> None:
        """By SQL."""
        self._connection.sql(
            f"CREATE TABLE {table} WITH (encoding = '{self._encoding}') "
            f"AS FROM read_parquet({_sql_list(files)})"
        )

    def _open(self) -> None:
        self._connection = connect(self._growing)

    def _close(self) -> None:
        self._connection.close()


class DuckDbCopy(Copy):
    """A file of DuckDB's."""

    label = "DuckDB"

    def load(self, table: str, files: list[Path]) -> None:
        """By SQL."""
        self._connection.execute(f"CREATE TABLE {table} AS FROM read_parquet({_sql_list(files)})")

    def _open(self) -> None:
        self._connection = open_duckdb(self._growing, cores())

    def _close(self) -> None:
        self._connection.close()


class ClickHouseCopy(Copy):
    """MergeTree tables with ClickHouse's default codec, LZ4, in the order of the rows, without an index."""

    label = "ClickHouse"

    def load(self, table: str, files: list[Path]) -> None:
        """By SQL; a column without nulls is of a type without them, which is how its users declare it."""
        query = self._connection.query
        query(f"CREATE DATABASE IF NOT EXISTS {DATABASE} ENGINE = Atomic")
        names = ",".join(file.name for file in files)
        pattern = files[0].parent.absolute() / (f"{{{names}}}" if files[1:] else names)
        source = "file('" + str(pattern).replace("'", "\\'") + "', Parquet)"
        listed = query(f"DESCRIBE {source}", "ArrowTable").to_pylist()
        nullable = _columns_with_nulls(files)
        columns = ", ".join(
            f"{column['name']} {_type_of(column['type'], nullable=column['name'] in nullable)}"
            for column in listed
        )
        query(f"CREATE TABLE {DATABASE}.{table} ({columns}) ENGINE = MergeTree ORDER BY tuple()")
        query(f"INSERT INTO {DATABASE}.{table} SELECT * FROM {source}")  # noqa: S608 (names of ours)
        query(f"OPTIMIZE TABLE {DATABASE}.{table} FINAL")

    def _open(self) -> None:
        self._connection = open_clickhouse(self._growing, cores())

    def _close(self) -> None:
        self._connection.close()


class PolarsCopy(Copy):
    """A folder of files that polars wrote, with its defaults: Parquet, or IPC that can be mapped."""

    label = "polars"

    def __init__(self, path: Path, place: FilePlace) -> None:
        super().__init__(path)
        self._place = place

    def load(self, table: str, files: list[Path]) -> None:
        """Piece by piece, never whole in memory."""
        import polars  # noqa: PLC0415 (what this is about)

        scan = polars.scan_parquet(files)
        file = self._growing / f"{table}.{ENDINGS[self._place]}"
        if self._place == "parquet":
            scan.sink_parquet(file)
        else:
            scan.sink_ipc(file, compression="uncompressed")

    def _open(self) -> None:
        self._growing.mkdir()


def part_of(path: Path) -> Path:
    """Where a copy grows; what a run that was stopped has left of it is removed."""
    part = path.with_name(f"{path.name}.part")
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
    return part


def _sql_list(files: list[Path]) -> str:
    return "[" + ", ".join("'" + str(file).replace("'", "''") + "'" for file in files) + "]"


def _columns_with_nulls(files: list[Path]) -> set[str]:
    """As the files' statistics say; of a column without any, nobody knows."""
    found = set()
    for file in files:
        metadata = _parquet.read_metadata(file)
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(metadata.num_columns)):
                statistics = column.statistics
                if statistics is None or not statistics.has_null_count or statistics.null_count:
                    found.add(column.path_in_schema)
    return found


def _type_of(declared: str, *, nullable: bool) -> str:
    inner = (
        declared.removeprefix("Nullable(").removesuffix(")") if declared.startswith("Nullable(") else declared
    )
    return f"Nullable({inner})" if nullable else inner
