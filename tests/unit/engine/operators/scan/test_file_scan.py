"""Scans of files: the columns that are wanted, filtered, in order, their I/O not counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow import parquet

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan.lowering import lower_scan
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import FileScanProfile
from bamquery.engine.settings import Settings
from bamquery.engine.sources.scan_sources import FileSource
from bamquery.errors import IngestError
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Scan
from bamquery.storage.ingest import open_source
from bamquery.storage.ingest.sources.source import DeferredBatch, IngestSource
from tests.stored import numbers

ROWS = 10_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = numbers(ROWS)
    for part in range(4):
        parquet.write_table(table.slice(part * 2500, 2500), tmp_path / f"{part}.parquet", row_group_size=700)
    return tmp_path


def run(scan: Scan, threads: int = 2) -> tuple[list[tuple], QueryProfile]:
    settings = Settings(threads=threads)
    operator = lower_scan(scan, settings)
    rows: list[tuple] = []
    with ExecutionContext(CpuDevice(), settings) as context:
        for frame in operator.frames(context):
            columns = [column.to_pylist() for column in frame.columns]
            rows += zip(*columns, strict=True) if columns else [()] * frame.num_rows
    return rows, QueryProfile("cpu", operator.profile)


def rare_is_one(source: FileSource) -> Expression:
    index = source.schema.get_field_index("rare")
    kind = source.schema.field(index).type
    return Call("equal", (ColumnRef(index, "rare", kind), Literal(pa.scalar(1, kind))), pa.bool_())


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_and_columns(folder: Path, threads: int) -> None:
    source = FileSource(open_source(str(folder / "*.parquet")))
    columns = tuple(source.schema.get_field_index(name) for name in ("text", "position"))
    rows, profile = run(Scan(source, columns, (rare_is_one(source),)), threads)
    table = numbers(ROWS)
    expected = [
        (text, position)
        for text, position, rare in zip(
            *(table[name].to_pylist() for name in ("text", "position", "rare")), strict=True
        )
        if rare
    ]
    assert rows == expected
    assert profile.io.uncounted == (source.name,)
    assert profile.io.bytes_read == 0
    assert profile.io.amplification is None
    assert isinstance(profile.root, FileScanProfile)
    assert profile.to_dict()["operators"]["io"] == "not counted"


def test_no_columns_but_rows(folder: Path) -> None:
    source = FileSource(open_source(str(folder / "*.parquet")))
    assert len(run(Scan(source, ()))[0]) == ROWS
    assert len(run(Scan(source, (), (rare_is_one(source),)))[0]) == sum(numbers(ROWS)["rare"].to_pylist())


def test_it_can_stop_early(folder: Path) -> None:
    source = FileSource(open_source(str(folder / "*.parquet")))
    operator = lower_scan(Scan(source, (0,)), Settings(threads=2))
    with ExecutionContext(CpuDevice(), Settings(threads=2)) as context:
        frames = operator.frames(context)
        next(frames)
        frames.close()
    assert operator.profile.rows < ROWS


def test_a_damaged_file_is_an_error(folder: Path) -> None:
    source = FileSource(open_source(str(folder / "*.parquet")))
    damaged = folder / "2.parquet"
    data = bytearray(damaged.read_bytes())
    data[200:6000] = bytes(5800)
    damaged.write_bytes(data)
    with pytest.raises(IngestError, match=r"2\.parquet"):
        run(Scan(source, tuple(range(len(source.schema)))))


class AskedSource:
    """A source that writes down how large its batches should be."""

    def __init__(self, source: IngestSource) -> None:
        self._source = source
        self.batch_bytes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def deferred_batches(
        self, columns: list[str], files: list[int] | None, batch_bytes: int
    ) -> Iterator[DeferredBatch]:
        self.batch_bytes.append(batch_bytes)
        return self._source.deferred_batches(columns, files, batch_bytes)


@pytest.mark.parametrize("threads", [1, 8, 64])
def test_batches_of_all_threads_fit_the_room_for_them(folder: Path, threads: int) -> None:
    asked = AskedSource(open_source(str(folder / "*.parquet")))
    for limit in (256 << 20, 1 << 40):
        settings = Settings(threads=threads, memory_limit=limit)
        scan = lower_scan(Scan(FileSource(cast(IngestSource, asked)), (0,), ()), settings)
        with ExecutionContext(CpuDevice(), settings) as context:
            context.memory.announce(1, threads)
            assert sum(frame.num_rows for frame in scan.frames(context)) == ROWS
    scarce, plenty = asked.batch_bytes
    assert plenty == 32 << 20
    assert scarce * (threads + 1) <= 256 << 20 >> 1
    assert scarce >= 1 << 20
