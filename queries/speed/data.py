"""The rows that `bamquery bench sql` asks about: made once, and loaded into each system from one copy."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from bamquery.connection.connection import connect
from bamquery.errors import BamQueryError
from bamquery.queries.arguments import cores
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import COLUMNS, Recipe
from bamquery.queries.speed.suites import TPCH_TABLES
from bamquery.queries.speed.systems.duckdb_file import open_duckdb
from bamquery.queries.trips.export import export
from bamquery.queries.trips.parquet_files import parquet_files
from bamquery.queries.trips.zones import load_zones
from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import Encoding

Tell = Callable[[str], None]
_GENERATOR: Final = "tpchgen-cli"


@dataclass(frozen=True)
class Wanted:
    """Which copies of the rows systems need, beside BamQuery's own.

    Attributes:
        duckdb: a file of DuckDB's.
        parquet: Parquet files, which are deleted otherwise, table by table.
    """

    duckdb: bool = True
    parquet: bool = False


class Data:
    """The same tables for each system; a copy has its name once it is whole.

    Attributes:
        ours: BamQuery's folder.
        theirs: DuckDB's file.
        parquet: a folder with a file for each table.
    """

    def __init__(self, folder: Path, name: str, parquet_name: str) -> None:
        """Below a folder, under a name that says which rows they have."""
        self.ours = folder / f"{name}.bq"
        self.theirs = folder / f"{name}.duckdb"
        self.parquet = folder / f"{parquet_name}.parquet"


def tpch_data(folder: Path, scale: float, encoding: Encoding, wanted: Wanted, tell: Tell) -> Data:
    """TPC-H's eight tables at a scale factor: 1 has 6 M rows in `lineitem`, 1 GB in all.

    Tables are made and loaded one by one, so that no more Parquet than one table's takes room.

    Raises:
        BamQueryError: the generator is not installed, or fails.
    """
    data = Data(folder, f"tpch-{scale:g}-{encoding}", f"tpch-{scale:g}")
    with ExitStack() as stack:
        ours = stack.enter_context(_BamQueryCopy(data.ours, encoding)) if not data.ours.exists() else None
        theirs = (
            stack.enter_context(_DuckDbCopy(data.theirs))
            if wanted.duckdb and not data.theirs.exists()
            else None
        )
        for table in TPCH_TABLES:
            file = data.parquet / f"{table}.parquet"
            had = file.exists()
            if not had and (ours or theirs or wanted.parquet):
                tell(f"making TPC-H's {table}, scale factor {scale:g}")
                generate_table(file, table, scale)
            for copy in filter(None, (ours, theirs)):
                tell(f"loading {table} into {copy.label}")
                copy.load(table, [file])
            if not had and not wanted.parquet:
                file.unlink(missing_ok=True)
        if data.parquet.exists() and not any(data.parquet.iterdir()):
            data.parquet.rmdir()
    return data


def trips_data(folder: Path, rows: int, encoding: Encoding, tell: Tell) -> Data:
    """Generated trips, all their columns, and the list of zones, for BamQuery and DuckDB.

    Raises:
        StorageError: they cannot be written.
    """
    name = f"trips-{rows}-{encoding}"
    data = Data(folder, name, name)
    if data.ours.exists() and data.theirs.exists():
        return data
    tell(f"making {rows:,} trips")
    part = _part(data.ours)
    shutil.rmtree(data.ours, ignore_errors=True)
    shutil.rmtree(data.parquet, ignore_errors=True)
    data.parquet.mkdir()
    with Database.open(part) as database:
        recipe = Recipe(rows=rows, columns=COLUMNS, first_year=2012, last_year=2021)
        generate(database, "trips", recipe, threads=cores(), encoding=encoding)
        load_zones(database)
        copies = {table: data.parquet / table for table in ("trips", "zones")}
        for table, copy in copies.items():
            with database.table(table).snapshot() as snapshot:
                export(snapshot, snapshot.schema.names, copy)
    part.rename(data.ours)
    with _DuckDbCopy(data.theirs) as theirs:
        for table, copy in copies.items():
            tell(f"loading {table} into {theirs.label}")
            theirs.load(table, parquet_files(copy))
    shutil.rmtree(data.parquet)
    return data


def _part(path: Path) -> Path:
    """Where a copy grows; what a run that was stopped has left of it is removed."""
    part = path.with_name(f"{path.name}.part")
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
    return part


def generate_table(file: Path, table: str, scale: float) -> None:
    """One of TPC-H's tables as a Parquet file.

    Raises:
        BamQueryError: the generator is not installed, or fails.
    """
    beside = Path(sysconfig.get_path("scripts")) / _GENERATOR
    program = str(beside) if beside.exists() else shutil.which(_GENERATOR)
    if program is None:
        raise BamQueryError(
            f'TPC-H needs {_GENERATOR}, which is not installed: pip install "bamquery[bench]"'
        )
    part = _part(file.parent)
    command = [program, "parquet", "-s", f"{scale:g}", f"--tables={table}", "--output-dir", str(part)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise BamQueryError(f"{_GENERATOR} failed: {ran.stderr.strip() or ran.returncode}")
    file.parent.mkdir(exist_ok=True)
    (part / file.name).rename(file)
    shutil.rmtree(part)


class _Copy:
    """A copy that is loaded table by table, and renamed at the end of its `with` unless something failed."""

    label: str

    def __init__(self, path: Path) -> None:
        self._path = path
        self._growing = _part(path)

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._close()
        if kind is None:
            self._growing.rename(self._path)

    def load(self, table: str, files: list[Path]) -> None:
        """Make a table of Parquet files."""
        raise NotImplementedError

    def _open(self) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError


class _BamQueryCopy(_Copy):
    label = "BamQuery"

    def __init__(self, path: Path, encoding: Encoding) -> None:
        super().__init__(path)
        self._encoding = encoding

    def load(self, table: str, files: list[Path]) -> None:
        self._connection.sql(
            f"CREATE TABLE {table} WITH (encoding = '{self._encoding}') "
            f"AS FROM read_parquet({_sql_list(files)})"
        )

    def _open(self) -> None:
        self._connection = connect(self._growing)

    def _close(self) -> None:
        self._connection.close()


class _DuckDbCopy(_Copy):
    label = "DuckDB"

    def load(self, table: str, files: list[Path]) -> None:
        self._connection.execute(f"CREATE TABLE {table} AS FROM read_parquet({_sql_list(files)})")

    def _open(self) -> None:
        self._connection = open_duckdb(self._growing, cores())

    def _close(self) -> None:
        self._connection.close()


def _sql_list(files: list[Path]) -> str:
    return "[" + ", ".join("'" + str(file).replace("'", "''") + "'" for file in files) + "]"
