"""Tables in a database of their own, for tests of what reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.scan.lowering import lower_scan
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.engine.settings import Settings
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.errors import StorageError
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Scan
from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import Encoding
from bamquery.storage.format.storable_types import normalize_schema
from bamquery.storage.readers.queue_reader import QueueReader
from bamquery.storage.tables.snapshot import Snapshot


def store(
    database: Database,
    name: str,
    table: pa.Table,
    cuts: Sequence[int] = (),
    *,
    encoding: Encoding = "plain",
) -> None:
    """Put rows into a new table, one fragment for each run of rows between `cuts`."""
    table = table.cast(normalize_schema(table.schema))
    edges = [0, *cuts, table.num_rows]
    with database.create_table(name, table.schema, encoding=encoding) as writer:
        for batch in table.slice(0, edges[1]).combine_chunks().to_batches():
            writer.write(batch)
        writer.commit()
    for begin, end in pairwise(edges[1:]):
        with database.table(name).append() as writer:
            for batch in table.slice(begin, end - begin).combine_chunks().to_batches():
                writer.write(batch)
            writer.commit()


@contextmanager
def stored(
    path: Path, table: pa.Table, cuts: Sequence[int] = (), *, encoding: Encoding = "plain"
) -> Iterator[Snapshot]:
    """A snapshot of table `t` of a new database in `path`, with as many fragments as `cuts` make."""
    with Database.open(path) as database:
        store(database, "t", table, cuts, encoding=encoding)
        with database.table("t").snapshot() as snapshot:
            assert len(snapshot.fragments) == (len(cuts) + 1 if table.num_rows else 0)
            yield snapshot


def scan_of(
    snapshot: Snapshot, columns: Sequence[str], predicates: Sequence[Expression] = (), **settings: Any
) -> Operator[pa.RecordBatch]:
    """The scan operator for those columns and predicates."""
    positions = tuple(snapshot.schema.get_field_index(name) for name in columns)
    plan = Scan(StoredTable(snapshot), positions, tuple(predicates))
    return lower_scan(plan, Settings().with_values(settings))


def run_scan(
    snapshot: Snapshot, columns: Sequence[str], predicates: Sequence[Expression] = (), **settings: Any
) -> tuple[pa.Table, ScanProfile]:
    """Its rows and its profile."""
    scan = scan_of(snapshot, columns, predicates, **settings)
    device = CpuDevice()
    chosen = Settings().with_values({"threads": 2, **settings})
    schema = pa.schema([pa.field(field.name, field.type) for field in scan.fields])
    with ExecutionContext(device, chosen) as context:
        batches = [device.to_arrow(frame, scan.fields) for frame in scan.frames(context)]
    assert isinstance(scan.profile, ScanProfile)
    return pa.Table.from_batches(batches, schema if columns else None), scan.profile


def require_direct_reads(folder: Path) -> None:
    """Skip the test where the file system of `folder` has none."""
    probe = folder / "probe"
    probe.write_bytes(bytes(4096))
    try:
        QueueReader(probe, 4096).close()
    except StorageError as error:
        pytest.skip(f"no direct reads here: {error}")
    finally:
        os.unlink(probe)


def numbers(rows: int, seed: int = 0) -> pa.Table:
    """Columns that differ in what can be done with them.

    `position` ascends, `noise` is uniform in [0, 1), `rare` is 1 in about a thousandth of the rows and 0
    elsewhere, `holes` is noise with nulls, `text` has strings of several lengths with nulls, `word` is a
    dictionary, `flag` a boolean.
    """
    random = np.random.default_rng(seed)
    words = np.array(["red", "green", "blue", ""])
    texts = [None if i % 11 == 0 else "x" * (i % 37) + str(i) for i in range(rows)]
    return pa.table(
        {
            "position": pa.array(np.arange(rows)),
            "noise": pa.array(random.random(rows)),
            "rare": pa.array((random.random(rows) < 1e-3).astype(np.int16)),
            "holes": pa.array(random.random(rows), mask=random.random(rows) < 0.2),
            "text": pa.array(texts, pa.large_string()),
            "word": pa.array(words[random.integers(0, 4, rows)], pa.large_string()).dictionary_encode(),
            "flag": pa.array(random.random(rows) < 0.5),
        }
    )
