"""The selective scan gives the rows it should, whatever way it takes, and reads no more than it must."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import bamquery
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan import chunks as scan_chunks
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, CorruptionError, ExecutionError, StorageError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import numbers, require_direct_reads, run_scan, scan_of, stored

ROWS = 40_000
NAMES = ("position", "noise", "rare", "holes", "text", "word", "flag")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return numbers(ROWS)


@pytest.fixture(scope="module", params=[(), (100, 1124, 1125, 20_000)], ids=["one fragment", "five"])
def snapshot(
    request: pytest.FixtureRequest, table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Snapshot]:
    with stored(tmp_path_factory.mktemp("scan") / "db", table, request.param) as found:
        yield found


def column(table: pa.Table, name: str) -> ColumnRef:
    index = table.schema.get_field_index(name)
    return ColumnRef(index, name, table.schema.field(index).type)


def compare(table: pa.Table, name: str, function: str, value: object) -> Expression:
    reference = column(table, name)
    return Call(function, (reference, Literal(pa.scalar(value, reference.type))), pa.bool_())


def expected(table: pa.Table, mask: pa.ChunkedArray | None, names: tuple[str, ...]) -> list[dict]:
    found = table if mask is None else table.filter(mask)
    return found.select(list(names)).to_pylist()


@pytest.mark.parametrize("strategy", ["auto", "stream", "vectors", "blocks"])
@pytest.mark.parametrize("zone_maps", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_selective_query(
    table: pa.Table, snapshot: Snapshot, strategy: str, zone_maps: bool, threads: int
) -> None:
    predicates = [
        compare(table, "rare", "equal", 1),
        compare(table, "noise", "less", 0.5),
        compare(table, "holes", "greater_equal", 0.25),
    ]
    found, profile = run_scan(
        snapshot, NAMES, predicates, strategy=strategy, zone_maps=zone_maps, threads=threads
    )
    mask = pc.and_kleene(
        pc.and_kleene(pc.equal(table["rare"], 1), pc.less(table["noise"], 0.5)),
        pc.greater_equal(table["holes"], 0.25),
    )
    assert found.to_pylist() == expected(table, mask, NAMES)
    assert found.num_rows > 3
    assert profile.rows_scanned == profile.rows_total == ROWS
    assert profile.strategy == strategy
    assert profile.zone_maps is zone_maps


@pytest.mark.parametrize("reader", ["mapped", "direct"])
def test_everything_comes_in_order(table: pa.Table, snapshot: Snapshot, reader: str, tmp_path: Path) -> None:
    if reader == "direct":
        require_direct_reads(snapshot.fragments[0].path.parent)
    found, profile = run_scan(snapshot, NAMES, reader=reader)
    assert found.to_pylist() == table.to_pylist()
    assert profile.reader == reader
    assert all(c.strategy == "stream" for c in profile.columns.values())


def test_a_filter_of_two_columns_and_of_each(table: pa.Table, snapshot: Snapshot) -> None:
    predicates = [
        Call("less", (column(table, "noise"), column(table, "holes")), pa.bool_()),
        compare(table, "noise", "greater", 0.9),
        Call(
            "or",
            (
                compare(table, "position", "less", 100),
                Call("is_null", (column(table, "text"),), pa.bool_()),
            ),
            pa.bool_(),
        ),
    ]
    found, _ = run_scan(snapshot, ("position", "text"), predicates)
    mask = pc.and_kleene(
        pc.and_kleene(pc.less(table["noise"], table["holes"]), pc.greater(table["noise"], 0.9)),
        pc.or_kleene(pc.less(table["position"], 100), pc.is_null(table["text"])),
    )
    assert found.to_pylist() == expected(table, mask, ("position", "text"))
    assert found.num_rows


def test_a_boolean_column_and_a_dictionary_as_filters(table: pa.Table, snapshot: Snapshot) -> None:
    word = column(table, "word")
    decoded = Cast(word, pa.large_string())
    predicates = [
        column(table, "flag"),
        Call("in", (decoded, Literal(pa.scalar("red", pa.large_string()))), pa.bool_()),
    ]
    found, profile = run_scan(snapshot, ("position", "word"), predicates)
    mask = pc.and_kleene(table["flag"], pc.equal(table["word"].cast(pa.string()), "red"))
    assert found.to_pylist() == expected(table, mask, ("position", "word"))
    assert profile.columns["word"].role == "filter, output"


def test_zone_maps_spare_reads(table: pa.Table, snapshot: Snapshot) -> None:
    predicates = [compare(table, "position", "greater_equal", ROWS - 10)]
    found, with_maps = run_scan(snapshot, ("noise",), predicates)
    _, without = run_scan(snapshot, ("noise",), predicates, zone_maps=False)
    assert found.num_rows == 10
    position = with_maps.columns["position"]
    assert position.vectors_pruned == position.vectors_total - 1
    assert position.counters.bytes <= 8192
    assert without.columns["position"].vectors_pruned == 0
    assert without.columns["position"].counters.bytes >= ROWS * 8
    # What was needed does not depend on how well it was avoided.
    assert position.bytes_needed == without.columns["position"].bytes_needed == ROWS * 8


def test_no_row_can_match(table: pa.Table, snapshot: Snapshot) -> None:
    found, profile = run_scan(snapshot, NAMES, [compare(table, "position", "less", 0)])
    assert found.num_rows == 0
    assert profile.counters.bytes == 0
    assert profile.bytes_needed == ROWS * 8
    assert profile.rows_scanned == ROWS


def test_columns_that_are_not_named_cost_nothing(tmp_path: Path) -> None:
    narrow = numbers(5000).select(["position", "rare"])
    wide = numbers(5000).append_column("more", pa.array(["y" * 500] * 5000))
    read = []
    for name, table in (("narrow", narrow), ("wide", wide)):
        with stored(tmp_path / name, table) as snapshot:
            predicate = Call(
                "equal",
                (column(snapshot_table(snapshot), "rare"), Literal(pa.scalar(1, pa.int16()))),
                pa.bool_(),
            )
            _, profile = run_scan(snapshot, ("position",), [predicate])
            read.append((profile.counters.bytes, profile.counters.blocks, set(profile.columns)))
    assert read[0] == read[1]


def snapshot_table(snapshot: Snapshot) -> pa.Table:
    return snapshot.schema.empty_table()


def test_a_column_that_is_filter_and_output_is_read_once(table: pa.Table, snapshot: Snapshot) -> None:
    predicates = [compare(table, "noise", "less", 0.5)]
    _, both = run_scan(snapshot, ("noise",), predicates)
    _, filter_only = run_scan(snapshot, (), predicates)
    assert both.counters == filter_only.counters
    assert both.columns["noise"].role == "filter, output"
    assert both.bytes_needed == ROWS * 8


def test_counting_rows_reads_nothing(snapshot: Snapshot) -> None:
    scan = scan_of(snapshot, ())
    with ExecutionContext(CpuDevice(), Settings()) as context:
        frames = list(scan.frames(context))
    assert sum(frame.num_rows for frame in frames) == ROWS
    assert scan.profile.to_dict()["columns"] == []


def test_counting_rows_that_match(table: pa.Table, snapshot: Snapshot) -> None:
    scan = scan_of(snapshot, (), [compare(table, "noise", "less", 0.25)])
    with ExecutionContext(CpuDevice(), Settings()) as context:
        frames = list(scan.frames(context))
    assert all(frame.num_columns == 0 for frame in frames)
    assert sum(frame.num_rows for frame in frames) == pc.sum(pc.less(table["noise"], 0.25)).as_py()


@pytest.mark.parametrize("columns", [("position", "text"), ()])
def test_empty_table(tmp_path: Path, columns: tuple[str, ...]) -> None:
    empty = numbers(0)
    with stored(tmp_path / "db", empty) as snapshot:
        for predicates in ([], [compare(empty, "noise", "less", 0.5)]):
            scan = scan_of(snapshot, columns, predicates)
            with ExecutionContext(CpuDevice(), Settings()) as context:
                assert sum(frame.num_rows for frame in scan.frames(context)) == 0


@pytest.mark.parametrize(("value", "rows"), [(True, ROWS), (False, 0), (None, 0)])
def test_constant_conditions(snapshot: Snapshot, value: bool | None, rows: int) -> None:
    found, profile = run_scan(snapshot, ("position",), [Literal(pa.scalar(value, pa.bool_()))])
    assert found.num_rows == rows
    if not rows:
        assert profile.counters.commands == 0


def test_a_condition_that_can_fail_sees_only_rows_that_pass_the_others(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["1", "no number", "30", "4"] * 1000), "good": [1, 0, 1, 1] * 1000})
    with stored(tmp_path / "db", table) as snapshot:
        text = ColumnRef(0, "text", pa.large_string())
        as_number = Call("greater", (Cast(text, pa.int64()), Literal(pa.scalar(3))), pa.bool_())
        good = Call("equal", (ColumnRef(1, "good", pa.int64()), Literal(pa.scalar(1))), pa.bool_())
        found, _ = run_scan(snapshot, ("text",), [as_number, good])
        assert set(found["text"].to_pylist()) == {"30", "4"}
        with pytest.raises(ExecutionError):
            run_scan(snapshot, ("text",), [as_number])


def test_the_order_of_filters_adapts(tmp_path: Path) -> None:
    """Zone maps say nothing of these two; the first chunk shows which one is worth asking first."""
    random = np.random.default_rng(0)
    table = pa.table({"always": random.random(300_000), "seldom": random.random(300_000)})

    def below(name: str, limit: float) -> Expression:
        doubled = Call("add", (column(table, name), column(table, name)), pa.float64())
        return Call("less", (doubled, Literal(pa.scalar(limit))), pa.bool_())

    with stored(tmp_path / "db", table) as snapshot:
        found, profile = run_scan(
            snapshot, ("always",), [below("always", 5.0), below("seldom", 0.002)], threads=1
        )
    assert found.num_rows == pc.sum(pc.less(table["seldom"], 0.001)).as_py()
    first_chunk = 16 * 1024
    assert profile.columns["always"].rows_needed < first_chunk + 1000
    assert profile.columns["seldom"].rows_needed == 300_000


def test_a_reader_that_wants_few_rows_stops_the_scan(tmp_path: Path) -> None:
    table = numbers(400_000).select(["position", "noise"])
    with stored(tmp_path / "db", table) as snapshot:
        scan = scan_of(snapshot, ("position",))
        with ExecutionContext(CpuDevice(), Settings()) as context:
            frames = scan.frames(context)
            first = next(frames)
            frames.close()
        assert first.column(0).to_pylist() == list(range(first.num_rows))
        assert scan.profile.to_dict()["rows_scanned"] == 16 * 1024
        assert scan.profile.counters.bytes == 16 * 1024 * 8


def test_a_reader_that_takes_all_rows_gets_no_small_first_chunk(tmp_path: Path) -> None:
    """Unless there are steps to be put in order."""
    table = numbers(400_000).select(["position", "noise"])
    few = [compare(table, name, "greater_equal", 0) for name in ("position", "noise")]
    with stored(tmp_path / "db", table) as snapshot:
        for predicates, chunks in (([], 1), (few[:1], 1), (few, 2)):
            scan = scan_of(snapshot, ("position",), predicates)
            scan.take_all_rows()
            with ExecutionContext(CpuDevice(), Settings().with_values({"threads": 1})) as context:
                frames = list(scan.frames(context))
            assert len(frames) == chunks
            assert pa.concat_arrays([f.column(0) for f in frames]).equals(pa.array(range(400_000)))


@pytest.mark.parametrize(
    ("sql", "reads", "vectors"),
    [
        ("SELECT sum(a + 1) FROM t", 1, 489),
        ("SELECT a + 1 AS b FROM t WHERE a > -1 ORDER BY b", 1, 489),
        ("SELECT count(*) FROM t AS x JOIN t AS y USING (a)", 1, 489),
        ("SELECT a FROM t WHERE a > -1 LIMIT 10", 1, 16),
        ("SELECT sum(a) FROM (SELECT a FROM t LIMIT 400000)", 2, 489),
    ],
)
def test_who_takes_all_rows_says_so(tmp_path: Path, sql: str, reads: int, vectors: int) -> None:
    with bamquery.connect(tmp_path / "db", device="cpu") as con:
        con.execute("CREATE TABLE t AS SELECT range AS a FROM range(500000)")
        con.execute("SET threads = 1")
        rel = con.sql(sql)
        rel.to_arrow()
        columns = [scan.columns["a"] for scan in rel.profile.scans]
    assert columns
    assert {(column.streamed, column.vectors_read) for column in columns} == {(reads, vectors)}


def test_cancelled_between_reads(table: pa.Table, snapshot: Snapshot) -> None:
    scan = scan_of(snapshot, NAMES)
    with ExecutionContext(CpuDevice(), Settings()) as context:
        frames = scan.frames(context)
        next(frames)
        context.cancelled.set()
        with pytest.raises(CancelledError):
            for _ in frames:
                pass


def test_the_next_chunks_wait_for_whoever_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-ahead is bounded: chunks beyond it are not read while nobody asks."""
    monkeypatch.setattr(scan_chunks, "CHUNK_BYTES", 1 << 20)
    table = pa.table({"wide": pa.array(["z" * 100] * 200_000)})
    with stored(tmp_path / "db", table) as snapshot:
        scan = scan_of(snapshot, ("wide",), threads=2)
        with ExecutionContext(CpuDevice(), Settings(threads=2)) as context:
            frames = scan.frames(context)
            for _ in range(3):
                next(frames)
            time.sleep(0.2)
            # Three taken, at most three in work or waiting.
            assert scan.profile.counters.bytes < 6 * 1.2e6
            assert sum(frame.num_rows for frame in frames) > 150_000


@pytest.mark.parametrize("strategy", ["stream", "vectors"])
def test_damage_is_an_error_never_an_answer(tmp_path: Path, strategy: str) -> None:
    table = numbers(20_000)
    with stored(tmp_path / "db", table) as snapshot:
        fragment = snapshot.fragments[0]
        extent = fragment.layout.columns[fragment.column_index("noise")].values
        damage(fragment.path, extent.offset + 8 * 15_000)
        predicates = [compare(table, "position", "greater_equal", 14_000)]
        with pytest.raises(CorruptionError, match=fragment.id):
            run_scan(snapshot, ("noise",), predicates, strategy=strategy)
        found, profile = run_scan(snapshot, ("noise",), predicates, strategy=strategy, verify_checksums=False)
        assert found.num_rows == 6000
        assert profile.verified == "no"


@pytest.mark.parametrize("column", ["position", "holes"])
def test_all_bytes_are_compared(tmp_path: Path, column: str) -> None:
    """Few rows, whose values would come by blocks, of which one is damaged."""
    table = numbers(200_000)
    least = pc.min(table["noise"])
    row = pc.index(table["noise"], least).as_py()
    rare = compare(table, "noise", "less", least.as_py() + 1e-9)
    with stored(tmp_path / "db", table) as snapshot:
        fragment = snapshot.fragments[0]
        extent = fragment.layout.columns[fragment.column_index(column)].values
        _, profile = run_scan(snapshot, (column,), [rare], verify_checksums="all")
        assert profile.verified == "yes"
        damage(fragment.path, extent.offset + 8 * row)
        _, profile = run_scan(snapshot, (column,), [rare], strategy="blocks")
        assert profile.verified == "partly"
        for strategy in ("auto", "stream", "vectors", "blocks"):
            with pytest.raises(CorruptionError, match=fragment.id):
                run_scan(snapshot, (column,), [rare], strategy=strategy, verify_checksums="all")


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    table = numbers(20_000)
    with stored(tmp_path / "db", table) as snapshot:
        path = snapshot.fragments[0].path
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
        with pytest.raises(StorageError, match=path.name):
            run_scan(snapshot, NAMES)


def test_blocks_cannot_be_verified_and_the_profile_says_so(table: pa.Table, snapshot: Snapshot) -> None:
    predicates = [compare(table, "rare", "equal", 1)]
    _, blocks = run_scan(snapshot, ("noise",), predicates, strategy="blocks")
    _, vectors = run_scan(snapshot, ("noise",), predicates, strategy="vectors")
    assert blocks.verified == "partly"
    assert vectors.verified == "yes"
    assert blocks.columns["noise"].strategy == "blocks"
    assert vectors.columns["noise"].strategy == "vectors"


def test_a_block_size_that_direct_reads_do_not_take_is_noted(snapshot: Snapshot) -> None:
    require_direct_reads(snapshot.fragments[0].path.parent)
    _, asked = run_scan(snapshot, ("noise",), reader="direct", block_size=8192)
    _, default = run_scan(snapshot, ("noise",), reader="direct")
    assert len(asked.notes) == 1
    assert "8192" in asked.notes[0]
    assert asked.block_size == default.block_size
    assert default.notes == []


def test_scans_share_a_snapshot(table: pa.Table, snapshot: Snapshot) -> None:
    """Several threads scan at once, each with its own operator."""
    answers: list[int] = []

    def work() -> None:
        found, _ = run_scan(snapshot, ("noise",), [compare(table, "rare", "equal", 1)])
        answers.append(found.num_rows)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [pc.sum(table["rare"]).as_py()] * 4


def damage(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x10]))
