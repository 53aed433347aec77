"""What the page cache lacks is asked for before a GPU's scan waits for it, and planned by a drive's rates."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import check, compare
from tests.stored import stored

ROWS = 40_000
CUTS = (10_240, 20_480, 30_720)


@pytest.fixture(params=["plain", "auto"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Snapshot]:
    rows = np.arange(ROWS)
    made = pa.table({"n": rows, "x": rows * 7919 % 65_521, "y": rows * 104_729 % 65_521})
    with stored(tmp_path / "db", made, CUTS, encoding=request.param) as found:
        yield found


@pytest.fixture
def asked(scan_modules: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Names of files and offsets that the system was told of."""
    from bamquery.engine.cuda.scan.resources import read_ahead

    found: list[tuple[str, int]] = []

    class Told:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def submit(self, _: Any, path: str, extent: Extent) -> None:
            found.append((path, extent.offset))

        def shutdown(self, **_: Any) -> None: ...

    monkeypatch.setattr(read_ahead, "ThreadPoolExecutor", Told)
    return found


@pytest.fixture
def cold(scan_modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in the page cache, and the drive gives 10,000 scattered reads a second."""
    from bamquery.engine.cuda.scan import scan_state
    from bamquery.engine.cuda.scan.chunk import chunk_memory

    monkeypatch.setattr(chunk_memory, "is_cached", lambda *_: False)
    slow = DeviceProfile(2e9, 1e4, 1e-4)
    monkeypatch.setattr(scan_state.DeviceProfile, "measure", lambda *_: slow)


def places(table: Snapshot, column: str, fragments: Any = None) -> list[tuple[str, int]]:
    chosen = table.fragments if fragments is None else [table.fragments[n] for n in fragments]
    return [(str(f.path), f.layout.columns[f.column_index(column)].values.offset) for f in chosen]


@pytest.mark.usefixtures("cold")
def test_all_that_is_streamed_is_asked_for_once(
    device: Any, table: Snapshot, asked: list[tuple[str, int]]
) -> None:
    predicates = [compare(table, "x", "less", 60)]
    profile = check(device, table, ("y",), predicates, zone_maps=False)
    assert profile.columns["y"].streamed == len(table.fragments)
    assert sorted(asked) == sorted(places(table, "x") + places(table, "y"))
    assert any("page cache lacked" in note for note in profile.notes)
    asked.clear()
    again = check(device, table, ("y",), predicates, zone_maps=False)
    assert not asked, "it is pinned by now"
    assert not any("page cache lacked" in note for note in again.notes)


@pytest.mark.usefixtures("cold")
def test_fragments_that_zone_maps_leave_out_are_not_read(
    device: Any, table: Snapshot, asked: list[tuple[str, int]]
) -> None:
    check(device, table, ("y",), [compare(table, "n", "greater", 35_000)])
    assert asked
    assert {path for path, _ in asked} == {str(table.fragments[-1].path)}


def test_what_is_in_memory_is_planned_by_the_rates_of_memory(
    device: Any, table: Snapshot, asked: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan import scan_state

    monkeypatch.setattr(scan_state.ScanState, "cold_model", None)
    check(device, table, ("y",), [compare(table, "x", "less", 60)], zone_maps=False)
    assert sorted(asked) == sorted(places(table, "x"))


@pytest.mark.usefixtures("cold")
def test_direct_reads_ask_for_no_pages(device: Any, table: Snapshot, asked: list[tuple[str, int]]) -> None:
    check(device, table, ("y",), [compare(table, "x", "less", 60)], reader="direct", strategy="stream")
    assert not asked


@pytest.mark.parametrize("zone_maps", [True, False])
def test_bounds_of_parts_are_asked_for_where_conditions_are(
    device: Any, table: Snapshot, monkeypatch: pytest.MonkeyPatch, zone_maps: bool
) -> None:
    """What is only put out needs vectors' statistics: decode parameters and checksums."""
    told: dict[bool, set[str]] = {False: set(), True: set()}

    def ask_ahead(_: Fragment, columns: Iterable[str], *, parts: bool = False) -> None:
        told[parts].update(columns)

    monkeypatch.setattr(Fragment, "ask_ahead", ask_ahead)
    check(device, table, ("y",), [compare(table, "x", "less", 60)], zone_maps=zone_maps)
    assert told[False] >= {"x", "y"}
    assert told[True] == ({"x"} if zone_maps else set())


def test_the_system_is_told_of_every_page(
    scan_modules: None, table: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.resources import read_ahead

    told: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, *rest: told.append(rest))
    monkeypatch.setattr(read_ahead, "_PIECE_BYTES", 5000)
    ahead = read_ahead.ReadAhead()
    gone = table.fragments[1]
    monkeypatch.setattr(gone, "path", Path("gone"))
    ahead.ask([(table.fragments[0], Extent(4096, 12_000)), (table.fragments[0], None), (gone, Extent(0, 1))])
    ahead.ask([(table.fragments[0], Extent(4096, 12_000))])
    assert ahead._pool is not None
    ahead._pool.shutdown(wait=True)
    want = os.POSIX_FADV_WILLNEED
    assert told == [(4096, 5000, want), (9096, 5000, want), (14_096, 2000, want)]
    ahead.close()
    ahead._tell(str(table.fragments[0].path), Extent(0, 100))
    assert len(told) == 3
