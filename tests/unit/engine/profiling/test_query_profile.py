"""The figures of a profile against a model that counts them the slow way, and against the kernel's."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import ReadClock
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import numbers, require_direct_reads, run_scan, stored

BLOCK = 512


class Model:
    """What one column takes, from its layout and values and nothing else; sums over fragments."""

    def __init__(self) -> None:
        self.rows = self.needed = self.blocks = 0

    def add(
        self, fragment: Fragment, name: str, values: pa.Array, rows: NDArray[np.int64], reads: list[range]
    ) -> None:
        """One fragment's `values`: `rows` were looked at, and for that the rows of each of `reads` read."""
        self.rows += len(rows)
        self.needed += needed(values, rows)
        layout = fragment.layout.columns[fragment.column_index(name)]
        touched: set[int] = set()

        def touch(base: int, begin: float, end: float) -> None:
            if end > begin:
                touched.update(
                    range((base + int(begin)) // BLOCK, (base + int(np.ceil(end)) - 1) // BLOCK + 1)
                )

        for read in reads:
            vector = read.start // VECTOR_ROWS * VECTOR_ROWS
            if values.slice(vector, VECTOR_ROWS).null_count:
                touch(layout.validity.offset, read.start / 8, read.stop / 8)
            width = bit_width(values)
            if width is not None:
                touch(layout.values.offset, read.start * width / 8, read.stop * width / 8)
            else:
                lengths = [0 if text is None else len(text) for text in values.to_pylist()]
                touch(layout.offsets.offset, 8 * read.start, 8 * read.stop + 8)
                begin = sum(lengths[: read.start])
                touch(layout.values.offset, begin, begin + sum(lengths[read.start : read.stop]))
        if layout.dictionary is not None and reads:
            for extent in (layout.dictionary.offsets, layout.dictionary.values):
                touch(extent.offset, 0, extent.length)
        self.blocks += len(touched)


def bit_width(values: pa.Array) -> int | None:
    """None for strings."""
    kind = values.type.index_type if pa.types.is_dictionary(values.type) else values.type
    return None if pa.types.is_large_string(kind) else kind.bit_width


def needed(values: pa.Array, rows: NDArray[np.int64]) -> int:
    nulls = -(-len(rows) // 8) if values.null_count else 0
    width = bit_width(values)
    if width is not None:
        return nulls + -(-len(rows) * width // 8)
    return (
        nulls + 8 * len(rows) + sum(len(t) for t in values.take(pa.array(rows)).to_pylist() if t is not None)
    )


def reference(snapshot: Snapshot, name: str) -> ColumnRef:
    index = snapshot.schema.get_field_index(name)
    return ColumnRef(index, name, snapshot.schema.field(index).type)


def condition(snapshot: Snapshot, name: str, function: str, value: object) -> Expression:
    column = reference(snapshot, name)
    return Call(function, (column, Literal(pa.scalar(value, column.type))), pa.bool_())


OUTPUTS = ("holes", "text", "word", "flag", "noise")


@pytest.mark.parametrize("strategy", ["stream", "vectors", "blocks"])
@pytest.mark.parametrize("zone_maps", [True, False])
def test_every_column_against_the_model(tmp_path: Path, strategy: str, zone_maps: bool) -> None:
    rows, edges = 9000, (0, 5000, 9000)
    table = numbers(rows)
    filters = {"position": table["position"].to_numpy() >= 2500, "rare": table["rare"].to_numpy() == 1}
    final = filters["position"] & filters["rare"]
    models = {name: Model() for name in (*filters, *OUTPUTS)}
    with stored(tmp_path / "db", table, edges[1:-1]) as snapshot:
        predicates = [
            condition(snapshot, "position", "greater_equal", 2500),
            condition(snapshot, "rare", "equal", 1),
        ]
        found, profile = run_scan(
            snapshot, OUTPUTS, predicates, strategy=strategy, zone_maps=zone_maps, block_size=BLOCK
        )
        assert found.num_rows == np.count_nonzero(final) > 2
        # Which filter goes first is the scan's choice. It has to look at every row.
        first = next(name for name in filters if profile.columns[name].rows_needed == rows)
        for fragment, begin, end in zip(snapshot.fragments, edges[:-1], edges[1:], strict=True):
            part = slice(begin, end)
            vectors = [
                range(v, min(v + VECTOR_ROWS, end - begin)) for v in range(0, end - begin, VECTOR_ROWS)
            ]
            if zone_maps:
                # Both filters rule out vectors, as far as minimum and maximum tell.
                vectors = [
                    v
                    for v in vectors
                    if all(passes[part][v.start : v.stop].any() for passes in filters.values())
                ]
            alive = np.zeros(end - begin, np.bool_)
            for v in vectors:
                alive[v.start : v.stop] = True
            for name, model in models.items():
                if name == first:
                    looked_at, reads = np.arange(end - begin), vectors
                else:
                    looked_at = np.flatnonzero(
                        alive & (filters[first][part] if name in filters else final[part])
                    )
                    reads = ways(strategy, looked_at, vectors)
                values = table[name].slice(begin, end - begin).combine_chunks()
                model.add(fragment, name, values.cast(snapshot.schema.field(name).type), looked_at, reads)
    for name, model in models.items():
        measured = profile.columns[name]
        assert (measured.rows_needed, measured.bytes_needed) == (model.rows, model.needed), name
        assert (measured.counters.blocks, measured.counters.bytes) == (model.blocks, model.blocks * BLOCK), (
            name
        )
    assert profile.bytes_needed == sum(model.needed for model in models.values())


def ways(strategy: str, rows: NDArray[np.int64], vectors: list[range]) -> list[range]:
    """What is read to look at some rows."""
    if not len(rows):
        return []
    if strategy == "stream":
        return vectors
    if strategy == "vectors":
        return [vector for vector in vectors if np.isin(vector, rows).any()]
    return [range(row, row + 1) for row in rows.tolist()]


def test_without_a_filter_all_rows_are_needed(tmp_path: Path) -> None:
    table = numbers(3000)
    with stored(tmp_path / "db", table, [1000]) as snapshot:
        _, profile = run_scan(snapshot, OUTPUTS)
        for name in OUTPUTS:
            kind = snapshot.schema.field(name).type
            parts = [
                table[name].slice(b, n).combine_chunks().cast(kind) for b, n in ((0, 1000), (1000, 2000))
            ]
            assert profile.columns[name].bytes_needed == sum(needed(p, np.arange(len(p))) for p in parts), (
                name
            )


def test_direct_reads_agree_with_the_kernel(tmp_path: Path) -> None:
    """What block readers count is what the process asked the device for, within 5 %."""
    require_direct_reads(tmp_path)
    table = numbers(1_000_000).select(["rare", "noise", "holes"])
    with stored(tmp_path / "db", table) as snapshot:
        run_scan(snapshot, ("noise",), reader="direct")  # measures the volume, if nobody has
        for strategy in ("stream", "vectors", "blocks"):
            before = bytes_read_by_process()
            _, profile = run_scan(
                snapshot,
                ("noise", "holes"),
                [condition(snapshot, "rare", "equal", 1)],
                reader="direct",
                strategy=strategy,
            )
            kernel = bytes_read_by_process() - before
            if not kernel:
                pytest.skip("the kernel counts no reads of this file system: /proc/self/io stays as it is")
            assert profile.counters.bytes == pytest.approx(kernel, rel=0.05), strategy
            assert profile.reader == "direct"
            assert profile.reader_path == f"direct ({profile.io_path})"


def bytes_read_by_process() -> int:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["read_bytes"])


def test_clock_counts_overlapping_reads_once() -> None:
    clock = ReadClock()
    barrier = threading.Barrier(4)

    def read() -> None:
        barrier.wait()
        with clock.measure_read():
            barrier.wait()
            time.sleep(0.05)
            barrier.wait()

    started = time.perf_counter()
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    assert 0.05 <= clock.seconds <= elapsed
    stopped = clock.seconds
    assert clock.seconds == stopped


def test_a_query_adds_up_its_scans(tmp_path: Path) -> None:
    table = numbers(3000)
    with stored(tmp_path / "db", table) as snapshot:
        _, one = run_scan(snapshot, ("noise",))
        _, two = run_scan(snapshot, ("text",), reader="mapped")
    root = OperatorProfile("Union", {"of": 2}, rows=6000, seconds=0.5, children=(one, two))
    profile = QueryProfile("cpu", root, seconds=1.0)
    assert profile.io.bytes_read == one.counters.bytes + two.counters.bytes
    assert profile.io.bytes_needed == one.bytes_needed + two.bytes_needed
    assert profile.io.commands == one.counters.commands + two.counters.commands
    assert profile.io.amplification == profile.io.bytes_read / profile.io.bytes_needed
    assert profile.io.readers == ("mapped",)
    assert profile.rows == 6000
    data = json.loads(json.dumps(profile.to_dict()))
    assert data["operators"]["children"][0]["columns"][0]["bytes_read"] == one.counters.bytes
    assert data["io"]["bytes_per_second"] > 0


def test_nothing_read_has_no_amplification() -> None:
    io = QueryProfile("cpu", OperatorProfile("Values")).io
    assert (io.amplification, io.iops, io.bytes_per_second) == (None, None, None)
