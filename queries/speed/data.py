"""The rows that `bamquery bench sql` asks about: made once, and loaded into both systems from one copy."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bamquery.connection.connection import connect
from bamquery.errors import BamQueryError
from bamquery.queries.arguments import cores
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import COLUMNS, Recipe
from bamquery.queries.speed.suites import TPCH_TABLES
from bamquery.queries.trips.export import export
from bamquery.queries.trips.parquet_files import parquet_files
from bamquery.queries.trips.zones import load_zones
from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import Encoding

Tell = Callable[[str], None]
_GENERATOR: Final = "tpchgen-cli"


class Data:
    """Two databases with the same tables.

    Attributes:
        ours: BamQuery's folder.
        theirs: DuckDB's file.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Below a folder, under a name that says which rows they have."""
        self.ours = folder / f"{name}.bq"
        self.theirs = folder / f"{name}.duckdb"
        self._done = folder / f"{name}.done"

    @property
    def complete(self) -> bool:
        """Whether both have been loaded."""
        return self._done.exists()

    def begin(self) -> None:
        """Remove what a run that was stopped has left."""
        shutil.rmtree(self.ours, ignore_errors=True)
        self.theirs.unlink(missing_ok=True)

    def finish(self) -> None:
        """Both are loaded."""
        self._done.touch()


def tpch_data(folder: Path, scale: float, encoding: Encoding, tell: Tell) -> Data:
    """TPC-H's eight tables at a scale factor: 1 has 6 M rows in `lineitem`, 1 GB in all.

    Raises:
        BamQueryError: the generator is not installed, or fails.
    """
    data = Data(folder, f"tpch-{scale:g}-{encoding}")
    if data.complete:
        return data
    data.begin()
    parquet = folder / f"tpch-{scale:g}.parquet"
    shutil.rmtree(parquet, ignore_errors=True)
    tell(f"making TPC-H, scale factor {scale:g}")
    _generate_tpch(parquet, scale)
    _load(data, {table: [parquet / f"{table}.parquet"] for table in TPCH_TABLES}, encoding, tell)
    shutil.rmtree(parquet)
    data.finish()
    return data


def trips_data(folder: Path, rows: int, encoding: Encoding, tell: Tell) -> Data:
    """Generated trips, all their columns, and the list of zones.

    Raises:
        StorageError: they cannot be written.
    """
    data = Data(folder, f"trips-{rows}-{encoding}")
    if data.complete:
        return data
    data.begin()
    tell(f"making {rows:,} trips")
    with Database.open(data.ours) as database:
        recipe = Recipe(rows=rows, columns=COLUMNS, first_year=2012, last_year=2021)
        generate(database, "trips", recipe, threads=cores(), encoding=encoding)
        load_zones(database)
        copies = {}
        for table in ("trips", "zones"):
            copies[table] = folder / f"{data.ours.stem}.{table}.parquet"
            with database.table(table).snapshot() as snapshot:
                export(snapshot, snapshot.schema.names, copies[table])
    _load_duckdb(data.theirs, {table: parquet_files(copy) for table, copy in copies.items()}, tell)
    for copy in copies.values():
        shutil.rmtree(copy)
    data.finish()
    return data


def _generate_tpch(folder: Path, scale: float) -> None:
    beside = Path(sysconfig.get_path("scripts")) / _GENERATOR
    program = str(beside) if beside.exists() else shutil.which(_GENERATOR)
    if program is None:
        raise BamQueryError(
            f'TPC-H needs {_GENERATOR}, which is not installed: pip install "bamquery[bench]"'
        )
    command = [program, "parquet", "-s", f"{scale:g}", "--output-dir", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise BamQueryError(f"{_GENERATOR} failed: {ran.stderr.strip() or ran.returncode}")


def _load(data: Data, tables: dict[str, list[Path]], encoding: Encoding, tell: Tell) -> None:
    with connect(data.ours) as connection:
        for table, files in tables.items():
            tell(f"loading {table} into BamQuery")
            connection.sql(
                f"CREATE TABLE {table} WITH (encoding = '{encoding}') "
                f"AS FROM read_parquet({_sql_list(files)})"
            )
    _load_duckdb(data.theirs, tables, tell)


def _load_duckdb(path: Path, tables: dict[str, list[Path]], tell: Tell) -> None:
    connection = open_duckdb(path, cores())
    try:
        for table, files in tables.items():
            tell(f"loading {table} into DuckDB")
            connection.execute(f"CREATE TABLE {table} AS FROM read_parquet({_sql_list(files)})")
    finally:
        connection.close()


def open_duckdb(path: Path, threads: int) -> Any:
    """A connection of DuckDB to its own file.

    Raises:
        BamQueryError: it is not installed.
    """
    try:
        import duckdb  # noqa: PLC0415
    except ImportError as error:
        raise BamQueryError(
            'comparing with DuckDB needs duckdb, which is not installed: pip install "bamquery[bench]"'
        ) from error
    return duckdb.connect(str(path), config={"threads": threads})


def _sql_list(files: list[Path]) -> str:
    return "[" + ", ".join("'" + str(file).replace("'", "''") + "'" for file in files) + "]"
