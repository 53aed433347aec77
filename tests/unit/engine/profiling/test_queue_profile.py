"""What queue pairs did, as EXPLAIN ANALYZE and JSON show it."""

from __future__ import annotations

import pytest

from bamquery.engine.explain.text_tree import explain_profile
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.queue_profile import DriveCounters, QueueProfile
from bamquery.engine.profiling.scan_profile import ColumnProfile, ReadClock, ScanProfile


def made() -> QueueProfile:
    return QueueProfile(
        pairs=64,
        depth=256,
        drives=[DriveCounters(commands=600_000, bytes=600_000 * 512, in_flight_seconds=20.0)],
        kernel_seconds=0.01,
        waited_seconds=3.0,
        warp_seconds=4.0,
        controller_seconds=0.3,
        wall_seconds=0.06,
    )


def test_figures() -> None:
    queues = made()
    assert queues.iops == pytest.approx(60e6)
    assert queues.bytes_per_second == pytest.approx(30.72e9)
    assert queues.mean_depth == pytest.approx(2000)
    assert queues.waited_share == 0.75
    assert queues.controller_cores == pytest.approx(5)
    assert set(queues.to_dict()) >= {"commands", "iops", "mean_depth", "waited_share", "controller_cores"}


def test_one_drive_is_one_drive() -> None:
    (drive,) = made().to_dict()["drives"]
    assert drive == {"commands": 600_000, "bytes": 307_200_000, "errors": 0, "mean_depth": 2000}
    assert "drive 0" not in explain_profile(QueryProfile("cuda:0", scan(made())))


def test_several_drives_add_up() -> None:
    queues = made()
    queues.drive(2).commands = 1000
    queues.drive(2).errors = 3
    queues.drive(1).bytes = 8
    assert (queues.commands, queues.bytes, queues.errors) == (601_000, 307_200_008, 3)
    assert [drive["errors"] for drive in queues.to_dict()["drives"]] == [0, 0, 3]
    lines = explain_profile(QueryProfile("cuda:0", scan(queues))).splitlines()
    assert any("drive 2: 1,000 commands" in line or "drive 2: 1000 commands" in line for line in lines), lines


def test_nothing_is_divided_by_nothing() -> None:
    queues = QueueProfile()
    assert (queues.iops, queues.mean_depth, queues.waited_share, queues.controller_cores) == (None,) * 4


def scan(queues: QueueProfile | None) -> ScanProfile:
    profile = ScanProfile("Scan", source="t", reader="mapped", block_size=512, queues=queues)
    profile.columns["a"] = ColumnProfile("a", "filter")
    if queues is not None:
        profile.columns["a"].paths.update({"copy engine": 3, "zero-copy": 1})
    return profile


def test_explained() -> None:
    text = explain_profile(QueryProfile("cuda:0", scan(made())))
    line = next(line for line in text.splitlines() if "queue pairs:" in line)
    assert "60.00 MIOPS" in line
    assert "2000 in flight in 64 pairs of depth 256" in line
    assert "warps waited 75% of their time" in line
    assert "controller 5.0 cores" in line
    assert "copy engine, zero-copy" in text


def test_a_cpus_profile_has_none_of_it() -> None:
    profile = scan(None)
    text = explain_profile(QueryProfile("cpu", profile))
    assert "queue pairs" not in text
    assert "path" not in text
    assert profile.to_dict()["queues"] is None


def test_a_clock_takes_what_others_measured() -> None:
    clock = ReadClock()
    clock.add(1.5)
    clock.add(0.5)
    assert clock.seconds == 2.0
