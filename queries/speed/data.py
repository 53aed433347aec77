"""The rows that `bamquery bench sql` asks about: made once, and loaded into each system from one copy."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bamquery.errors import BamQueryError
from bamquery.queries.arguments import cores
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import COLUMNS, Q5_COLUMNS, Recipe
from bamquery.queries.speed.copies import (
    BamQueryCopy,
    ClickHouseCopy,
    Copy,
    DuckDbCopy,
    PolarsCopy,
    part_of,
)
from bamquery.queries.speed.suites import TPCH_TABLES
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
        clickhouse: a folder of ClickHouse's.
        parquet: Parquet files for polars: TPC-H's as they were made, trips as polars writes them.
        ipc: IPC files for polars.
    """

    duckdb: bool = True
    clickhouse: bool = False
    parquet: bool = False
    ipc: bool = False


class Data:
    """The same tables for each system; a copy has its name once it is whole.

    Attributes:
        ours: BamQuery's folder.
        theirs: DuckDB's file.
        clickhouse: ClickHouse's folder.
        parquet, ipc: folders with a file for each table.
    """

    def __init__(self, folder: Path, name: str, encoding: Encoding) -> None:
        """Below a folder, under a name that says which rows they have."""
        self.ours = folder / f"{name}-{encoding}.bq"
        self.theirs = folder / f"{name}-{encoding}.duckdb"
        self.clickhouse = folder / f"{name}.clickhouse"
        self.parquet = folder / f"{name}.parquet"
        self.ipc = folder / f"{name}.ipc"

    def missing(self, wanted: Wanted) -> list[Copy]:
        """Copies that are yet to be loaded, but for BamQuery's and polars' Parquet."""
        copies: list[Copy] = []
        if wanted.duckdb and not self.theirs.exists():
            copies.append(DuckDbCopy(self.theirs))
        if wanted.clickhouse and not self.clickhouse.exists():
            copies.append(ClickHouseCopy(self.clickhouse))
        if wanted.ipc and not self.ipc.exists():
            copies.append(PolarsCopy(self.ipc, "ipc"))
        return copies


def tpch_data(folder: Path, scale: float, encoding: Encoding, wanted: Wanted, tell: Tell) -> Data:
    """TPC-H's eight tables at a scale factor: 1 has 6 M rows in `lineitem`, 1 GB in all.

    Tables are made and loaded one by one, so that no more Parquet than one table's takes room.

    Raises:
        BamQueryError: the generator is not installed, or fails.
    """
    data = Data(folder, f"tpch-{scale:g}", encoding)
    with ExitStack() as stack:
        missing = [] if data.ours.exists() else [BamQueryCopy(data.ours, encoding)]
        copies = [stack.enter_context(copy) for copy in (*missing, *data.missing(wanted))]
        for table in TPCH_TABLES:
            file = data.parquet / f"{table}.parquet"
            had = file.exists()
            if not had and (copies or wanted.parquet):
                tell(f"making TPC-H's {table}, scale factor {scale:g}")
                generate_table(file, table, scale)
            for copy in copies:
                tell(f"loading {table} into {copy.label}")
                copy.load(table, [file])
            if not had and not wanted.parquet:
                file.unlink(missing_ok=True)
        if data.parquet.exists() and not any(data.parquet.iterdir()):
            data.parquet.rmdir()
    return data


def trips_data(
    folder: Path, rows: int, encoding: Encoding, wanted: Wanted, tell: Tell, *, narrow: bool = False
) -> Data:
    """Generated trips and the list of zones, for BamQuery and for others.

    Args:
        folder: where all of them are.
        rows: of trips.
        encoding: of BamQuery's columns.
        wanted: the others.
        tell: what is done.
        narrow: only the columns that Q1 to Q5 name, instead of all.

    Raises:
        StorageError: they cannot be written.
    """
    name = f"trips-{rows}-q5" if narrow else f"trips-{rows}"
    data = Data(folder, name, encoding)
    if not data.ours.exists():
        tell(f"making {rows:,} trips")
        _make_trips(data.ours, rows, Q5_COLUMNS if narrow else COLUMNS, encoding)
    missing = data.missing(wanted)
    if wanted.parquet and not data.parquet.exists():
        missing.append(PolarsCopy(data.parquet, "parquet"))
    if missing:
        _load_trips(data.ours, missing, part_of(folder / f"{name}.export"), tell)
    return data


def _make_trips(path: Path, rows: int, columns: Sequence[str], encoding: Encoding) -> None:
    part = part_of(path)
    with Database.open(part) as database:
        recipe = Recipe(rows=rows, columns=columns, first_year=2012, last_year=2021)
        generate(database, "trips", recipe, threads=cores(), encoding=encoding)
        load_zones(database)
    part.rename(path)


def _load_trips(ours: Path, copies: Sequence[Copy], folder: Path, tell: Tell) -> None:
    """By way of Parquet, which is there no longer than it is needed."""
    folder.mkdir()
    try:
        with Database.open(ours) as database:
            for table in ("trips", "zones"):
                with database.table(table).snapshot() as snapshot:
                    export(snapshot, snapshot.schema.names, folder / table)
        for copy in copies:
            with copy:
                for table in ("trips", "zones"):
                    tell(f"loading {table} into {copy.label}")
                    copy.load(table, parquet_files(folder / table))
    finally:
        shutil.rmtree(folder)


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
    part = part_of(file.parent)
    command = [program, "parquet", "-s", f"{scale:g}", f"--tables={table}", "--output-dir", str(part)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise BamQueryError(f"{_GENERATOR} failed: {ran.stderr.strip() or ran.returncode}")
    file.parent.mkdir(exist_ok=True)
    (part / file.name).rename(file)
    shutil.rmtree(part)
