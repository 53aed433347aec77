"""Columns that are read whole by an emulated GPU are those that were written."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.errors import CancelledError, CorruptionError
from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices import scan_cases
from tests.devices.scan_cases import KEYS, compare, every_type, require_same, run
from tests.gpu.scan.test_scan_packed import packable
from tests.stored import stored
from tests.unit.engine.cuda_scan.fake_gpu import NOT_READY, FakeGpu

CUTS = (2048, 4096, 5120)
"""Fragments without gaps between their vectors, as the reader wants them."""
FAST, SLOW = 10e9, 1e6
"""Bytes a second that a bus brings."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    folder = tmp_path_factory.mktemp("packed") / "db"
    with stored(folder, packable(9000), CUTS, encoding="auto") as snapshot:
        yield snapshot


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    with stored(tmp_path_factory.mktemp("plain") / "db", every_type(9000, nulls="none"), CUTS) as snapshot:
        yield snapshot


@pytest.fixture
def reads_whole(device: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[pa.Table, ScanProfile]]:
    """Runs a scan of all rows, whose columns `read_columns` gives; `None` where it gives none."""
    from bamquery.engine.cuda.scan.resources.scan_resources import ScanResources
    from bamquery.engine.cuda.scan.whole.read import read_columns

    own = scan_cases.scan_of

    def scan_of(*arguments: Any, **settings: Any) -> Operator[pa.RecordBatch]:
        scan = own(*arguments, **settings)
        scan.take_all_rows()
        return scan

    def scan(work: Any) -> Generator[Any, None, None]:
        found = read_columns(device.session, device, work, work.columns)
        if found is None:
            raise LookupError("its rows are chosen")
        names = [work.plan.schema.field(column).name for column in work.plan.outputs]
        rows = sum(fragment.rows for fragment in work.fragments)
        yield device._frame(tuple(found[name] for name in names), rows)

    def read(
        snapshot: Snapshot, columns: Sequence[str], *predicates: Any, rate: float = FAST
    ) -> tuple[pa.Table, ScanProfile]:
        run(device, snapshot, columns)  # after which its pages are pinned
        with monkeypatch.context() as patch:
            patch.setattr(scan_cases, "scan_of", scan_of)
            patch.setattr(ScanResources, "stream_rate", rate)  # not what the emulation takes at the moment
            patch.setattr(device, "scan", scan)
            return run(device, snapshot, columns, predicates)

    return read


@pytest.fixture
def only_by_the_gpu(scan_modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.engine.cuda.scan.whole import read

    monkeypatch.setattr(read, "_FEW_ROWS", 0)


PACKED = tuple(name for name in packable(1).schema.names if name not in ("none", "flag", "turns"))
"""Those that are packed, or plain, in all fragments alike, and of whole bytes."""


@pytest.mark.parametrize("name", PACKED)
def test_packed_columns(
    reads_whole: Any, only_by_the_gpu: None, packed: Snapshot, name: str, device: Any
) -> None:
    found, profile = reads_whole(packed, (name,))
    require_same(found, run(CpuDevice(), packed, (name,))[0])
    figures = profile.columns[name]
    assert figures.paths == {"copy engine": 1}
    assert bool(figures.counters.bytes) == (name != "same")
    assert figures.vectors_read == figures.vectors_total == 9
    assert any("read whole" in note for note in profile.notes)
    assert (profile.reader, profile.block_size) == ("mapped", 512)


def test_packed_decimals_are_made_in_64_bits(
    reads_whole: Any, only_by_the_gpu: None, packed: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of up to 18 digits, whose codes mean no more; `far_dec` has numbers as far apart as such are."""
    from bamquery.engine.cuda.scan.columns import libcudf_rows

    made: list[pa.DataType] = []
    own = libcudf_rows.narrow_rows

    def note(session: Any, column: Any) -> Any:
        made.append(column.array.type)
        return own(session, column)

    monkeypatch.setattr(libcudf_rows, "narrow_rows", note)
    names = ("dec", "i64", "far_dec")
    found, _ = reads_whole(packed, names)
    require_same(found, run(CpuDevice(), packed, names)[0])
    assert made == [pa.decimal64(12, 2), pa.decimal64(18, 2)]


def test_decimals_of_more_digits_are_made_as_they_are(
    reads_whole: Any, only_by_the_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.columns import libcudf_rows

    monkeypatch.setattr(libcudf_rows, "narrow_rows", None)
    values = pa.array([Decimal(n).scaleb(-2) for n in range(5000)], pa.decimal128(19, 2))
    for encoding in ("auto", "plain"):
        with stored(tmp_path / encoding, pa.table({"n": values}), CUTS[:2], encoding=encoding) as snapshot:
            found, _ = reads_whole(snapshot, ("n",))
            require_same(found, run(CpuDevice(), snapshot, ("n",))[0])


@pytest.mark.parametrize("name", [name for name in KEYS if name != "flag"])
def test_plain_columns(reads_whole: Any, only_by_the_gpu: None, plain: Snapshot, name: str) -> None:
    found, _ = reads_whole(plain, (name, "pick"))
    require_same(found, run(CpuDevice(), plain, (name, "pick"))[0])


@pytest.mark.parametrize("name", ["text", "flag"])
def test_what_has_no_such_reader_is_chosen(
    reads_whole: Any, only_by_the_gpu: None, plain: Snapshot, name: str
) -> None:
    with pytest.raises(LookupError):
        reads_whole(plain, (name,))


def test_few_rows_are_read_by_the_processor(reads_whole: Any, plain: Snapshot) -> None:
    found, profile = reads_whole(plain, ("text", "flag", "i32"))
    require_same(found, run(CpuDevice(), plain, ("text", "flag", "i32"))[0])
    assert any("by the processor" in note for note in profile.notes)


def test_few_rows_of_many_bytes_are_chosen(
    reads_whole: Any, plain: Snapshot, scan_modules: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.whole import read

    monkeypatch.setattr(read, "_FEW_BYTES", 9000 * 4)
    assert reads_whole(plain, ("flag",))[0].num_rows == 9000
    with pytest.raises(LookupError):
        reads_whole(plain, ("text",))


def test_gaps_between_vectors(reads_whole: Any, only_by_the_gpu: None, tmp_path: Path) -> None:
    with (
        stored(tmp_path / "db", packable(5000), (1, 3000), encoding="auto") as snapshot,
        pytest.raises(LookupError),
    ):
        reads_whole(snapshot, ("cents",))


def test_what_zone_maps_leave_out_is_not_read(
    reads_whole: Any, only_by_the_gpu: None, tmp_path: Path
) -> None:
    table = pa.table({"n": pa.array(range(9000), pa.int32())})
    with stored(tmp_path / "db", table, CUTS, encoding="auto") as snapshot:
        reads_whole(snapshot, ("n",), compare(snapshot, "n", "less", 8900))
        with pytest.raises(LookupError):
            reads_whole(snapshot, ("n",), compare(snapshot, "n", "less", 2000))


def test_large_columns_for_few_rows_are_chosen(
    reads_whole: Any, only_by_the_gpu: None, plain: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicates = [compare(plain, "pick", "less", 0.5)]
    names = ("i64", "u64", "stamp", "time", "dec")
    reads_whole(plain, names, *predicates, rate=SLOW)
    monkeypatch.setattr("bamquery.engine.cuda.scan.whole.plan.guess_selectivities", lambda *_: [1e-9])
    with pytest.raises(LookupError):
        reads_whole(plain, names, *predicates, rate=SLOW)
    reads_whole(plain, names, *predicates)


@pytest.mark.parametrize(("name", "problem"), [("cents", "checksum"), ("city", "checksum")])
def test_changed_bytes_are_found(
    reads_whole: Any, only_by_the_gpu: None, tmp_path: Path, name: str, problem: str
) -> None:
    with stored(tmp_path / "db", packable(5000), (2048,), encoding="auto") as snapshot:
        fragment = snapshot.fragments[1]
        reads_whole(snapshot, (name,))
        place = stored_buffers(fragment, name).values.offset
        with fragment.path.open("r+b") as file:
            file.seek(place + 300)
            before = file.read(1)[0]
            file.seek(place + 300)
            file.write(bytes([before ^ 1]))
        with pytest.raises(CorruptionError, match=f'column "{name}", vector .* {problem}'):
            reads_whole(snapshot, (name,))


def test_a_truncated_file(reads_whole: Any, only_by_the_gpu: None, tmp_path: Path) -> None:
    with stored(tmp_path / "db", packable(5000), encoding="auto") as snapshot:
        reads_whole(snapshot, ("cents",))
        with snapshot.fragments[0].path.open("r+b") as file:
            file.truncate(snapshot.fragments[0].data_bytes - 1)
        with pytest.raises(CorruptionError, match="bytes instead of"):
            reads_whole(snapshot, ("cents",))


def test_a_cancelled_read_gives_all_back(
    reads_whole: Any, only_by_the_gpu: None, packed: Snapshot, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.scan_clock import ScanClock
    from bamquery.engine.cuda.scan.whole.load import WholeLoad

    loads: list[WholeLoad] = []
    own = WholeLoad.__init__

    def note(self: WholeLoad, *arguments: Any) -> None:
        loads.append(self)
        own(self, *arguments)

    def cancelled(*_: object) -> None:
        raise CancelledError("the query was cancelled")

    reads_whole(packed, ("cents",))
    with monkeypatch.context() as patch:
        patch.setattr(WholeLoad, "__init__", note)
        patch.setattr(ScanClock, "wait_for", cancelled)
        with pytest.raises(CancelledError):
            reads_whole(packed, ("cents",))
    (load,) = loads
    assert not load._memory
    assert not load._runs
    found, _ = reads_whole(packed, ("cents",))
    require_same(found, run(CpuDevice(), packed, ("cents",))[0])


def test_what_the_gpu_may_still_use_is_kept(
    reads_whole: Any, only_by_the_gpu: None, packed: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.resources.scan_resources import ScanResources
    from bamquery.engine.cuda.scan.scan_clock import ScanClock
    from bamquery.engine.cuda.scan.whole.load import WholeLoad

    kept: list[WholeLoad] = []
    with monkeypatch.context() as patch:
        own = ScanClock.settle
        patch.setattr(
            ScanClock, "settle", lambda self, *what: hasattr(self, "work") and own(self, *what)
        )  # of a scan's own clock; that of a load says that it has not ended
        patch.setattr(ScanResources, "park", lambda _, load: kept.append(load))
        reads_whole(packed, ("cents",))
    (load,) = kept
    assert load._memory
    assert load._runs
    assert load.close_within(0)
    assert not load._memory
    assert not load._runs


@pytest.mark.parametrize("status", [NOT_READY, 700])
def test_neither_what_runs_nor_what_failed_is_settled(
    device: Any, gpu: FakeGpu, status: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.scan_clock import ScanClock

    clock = ScanClock(device.session, lambda: None)
    events = [clock.event(device.session.driver_stream)]
    with monkeypatch.context() as patch:
        patch.setattr(gpu.cuda.api, "cuEventQuery", lambda _: (status,))
        assert not clock.settle(events, 0.0)
    assert len(events) == 1
    assert clock.settle(events, 0.0)
    assert not events
