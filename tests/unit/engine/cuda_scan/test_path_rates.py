"""What a GPU's reads cost: measured by the kernels that read, kept, and planned with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.encodings.encoding import BufferShape, ColumnShape
from bamquery.storage.read_planner.column_demands import ReaderShape, shape_demands
from bamquery.storage.read_planner.cost_model import Path
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.hit_pyramid import LEVELS, HitPyramid
from bamquery.storage.read_planner.planner import Strategy, plan_reads
from bamquery.storage.read_planner.profile_cache import cache_file
from tests.devices.scan_cases import check, compare, every_type
from tests.gpu.scan.test_scan_packed import packable
from tests.stored import stored

VECTORS = 32_768
ROWS = VECTORS * 1024


@pytest.fixture
def path_rates(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan import path_rates

    return path_rates


def anywhere(share: float) -> HitPyramid:
    everything = HitPyramid(tuple(max(ROWS / (1 << level), 1.0) for level in range(LEVELS)))
    return everything.thin_out(share)


def choose(model: Any, share: float, *bits: float) -> list[Strategy]:
    reader = ReaderShape(512)
    demands = [
        shape_demands(ColumnShape((BufferShape(one),)), anywhere(share), VECTORS, 1, reader) for one in bits
    ]
    return [choice.strategy for choice in plan_reads(demands, model)]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1e-6, Strategy.FETCH_BLOCKS), (3e-4, Strategy.FETCH_BLOCKS), (0.5, Strategy.STREAM)],
)
def test_in_the_page_cache(path_rates: Any, share: float, expected: Strategy) -> None:
    assert choose(path_rates.GpuProfile.nominal(12).model(12), share, 64) == [expected]


@pytest.mark.parametrize("bits", [3, 12, 64])
def test_what_is_pinned_is_loaded_row_by_row(path_rates: Any, bits: int) -> None:
    model = path_rates.GpuProfile.nominal(12).model(12)
    reader = ReaderShape(512, sees_rows=True)
    demands = shape_demands(ColumnShape((BufferShape(bits),)), anywhere(3e-4), VECTORS, 1, reader)
    rows = demands[Strategy.FETCH_BLOCKS]
    assert 0.9 * 3e-4 * ROWS < rows.commands <= 3e-4 * ROWS
    assert 32 * rows.commands <= rows.bytes < 1.05 * 32 * rows.commands
    assert [choice.strategy for choice in plan_reads([demands], model)] == [Strategy.FETCH_BLOCKS]


@pytest.mark.parametrize("bits", [3, 12])
def test_each_row_of_dense_lines_is_work(path_rates: Any, bits: int) -> None:
    """By lines alone, which come as fast as a stream here, single rows would be as quick as that."""
    profile = replace(path_rates.GpuProfile.nominal(12), rows=1e12)
    reader = ReaderShape(512, sees_rows=True)
    demands = shape_demands(ColumnShape((BufferShape(bits),)), anywhere(1), VECTORS, 1, reader)

    def seconds(strategy: Strategy, values: float) -> float:
        model = replace(profile, values=values).model(12)
        return model.seconds([model.cost(demands[strategy])])

    rows, stream = Strategy.FETCH_BLOCKS, Strategy.STREAM
    assert seconds(rows, 1e30) == pytest.approx(seconds(stream, 1e30), rel=0.15)
    assert seconds(rows, 1e10) == pytest.approx(ROWS / 1e10, rel=0.15)
    assert seconds(rows, 1e10) > 2 * seconds(stream, 1e10)
    assert [choice.strategy for choice in plan_reads([demands], profile.model(12))] == [stream]


def test_what_a_dense_run_takes_beside_its_lines_is_its_rows(scan_modules: None) -> None:
    from bamquery.engine.cuda.scan.reads.path_measurement import value_rate

    # 1,000 lines at 1e8 a second are 10 of 40 microseconds, which is what starting takes, too.
    assert value_rate(31_000, 1000, 1e8, 40e-6, 10e-6) == pytest.approx(30_000 / 20e-6)
    dear = value_rate(31_000, 1000, 1e7, 40e-6, 10e-6)
    assert dear == pytest.approx(30_000 / 0.3e-6), "lines alone would take longer: rows are all but free"
    assert value_rate(1000, 1000, 1e8, 40e-6, 10e-6) > 0


def test_what_codes_ask_for_is_another_round() -> None:
    shape = ColumnShape((BufferShape(12, width=8),), form="packed", refers=True)
    demands = shape_demands(shape, anywhere(3e-4), VECTORS, 1, ReaderShape(512))
    assert demands[Strategy.FETCH_BLOCKS].rounds == 2
    assert demands[Strategy.FETCH_VECTORS].rounds == demands[Strategy.STREAM].rounds == 1


def test_few_cores_carry_few_blocks(path_rates: Any) -> None:
    profile = path_rates.GpuProfile.nominal(12)
    assert choose(profile.model(12), 2e-3, 64) == [Strategy.FETCH_BLOCKS]
    assert choose(profile.model(1), 2e-3, 64) != [Strategy.FETCH_BLOCKS]


def test_a_slow_drive_is_streamed_sooner(path_rates: Any) -> None:
    model = path_rates.direct_model(DeviceProfile(3.5e9, 1e6, 1e-4), 1e12, 4)
    assert choose(model, 3e-5, 64) == [Strategy.FETCH_BLOCKS]
    assert choose(model, 0.01, 64) == [Strategy.STREAM]
    # Narrow columns are streamed where a wide one is worth its commands.
    assert choose(model, 1e-3, 64, 2) == [Strategy.FETCH_BLOCKS, Strategy.STREAM]


def test_a_gpu_is_measured_once(
    device: Any, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, path_rates: Any
) -> None:
    from bamquery.engine.cuda.scan.reads import path_measurement

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with stored(tmp_path / "db", every_type(9000, nulls="none")) as table:
        predicates = [compare(table, "f64", "greater", 5.0)]
        assert check(device, table, ("i64",), predicates).volume["source"] == "assumed"
        assert not cache_file().exists()
        monkeypatch.setattr(path_measurement, "LEAST_VECTORS", 8)
        profile = check(device, table, ("i64",), predicates)
        assert profile.volume["source"] == "measured"
        assert path_rates.GpuProfile.load(f"{device.session.gpu.name}-512-1") or cache_file().exists()
        monkeypatch.setattr(path_measurement, "measure_paths", None)
        assert check(device, table, ("i64",), predicates).volume["source"] == "measured"


@pytest.mark.parametrize("encoding", ["plain", "auto"])
def test_rows_that_are_measured_with_are_there(
    device: Any, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, path_rates: Any, encoding: Any
) -> None:
    """Behind the last row of a short vector there may be no page, which ends the GPU's context."""
    from bamquery.engine.cuda.scan.reads import path_measurement

    asked: list[Any] = []
    select = path_measurement._Reads._select

    def noted(reads: Any, positions: Any) -> Any:
        firsts, pieces = reads.chunk.rows.firsts, reads.chunk.rows.pieces
        owner = firsts.searchsorted(positions // 1024, "right") - 1
        rows = [
            int(pieces[o].vectors[p // 1024 - firsts[o]]) * 1024 + p % 1024 - pieces[o].fragment.rows
            for o, p in zip(owner, positions.tolist(), strict=True)
        ]
        asked.append(max(rows))
        return select(reads, positions)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(path_measurement, "LEAST_VECTORS", 8)
    monkeypatch.setattr(path_measurement._Reads, "_select", noted)
    with stored(tmp_path / "db", packable(9000), (1000, 4500), encoding=encoding) as table:
        predicates = [compare(table, "wide", "greater", 5)]
        check(device, table, ("i64",), predicates, strategy="stream", zone_maps=False)
    assert asked
    assert max(asked) < 0


def test_a_gpu_is_measured_with_packed_columns(
    device: Any, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, path_rates: Any
) -> None:
    from bamquery.engine.cuda.scan.reads import path_measurement

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(path_measurement, "LEAST_VECTORS", 8)
    with stored(tmp_path / "db", packable(9000), encoding="auto") as table:
        profile = check(device, table, ("i64",), [compare(table, "cents", "less", 5.0)], strategy="stream")
        assert profile.volume["source"] == "measured"


@pytest.mark.parametrize("encoding", ["plain", "auto"])
def test_a_gpu_is_measured_with_what_zone_maps_leave(
    device: Any, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, path_rates: Any, encoding: Any
) -> None:
    """Else each chunk of each query would try, where tables are only asked so."""
    from bamquery.engine.cuda.scan.reads import path_measurement

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(path_measurement, "LEAST_VECTORS", 8)
    rows = np.arange(40 * 1024)
    table = pa.table({"odd": rows // 1024 % 2 * 100 + rows % 7, "x": rows * 7919 % 65_521})
    with stored(tmp_path / "db", table, encoding=encoding) as kept:
        profile = check(device, kept, ("x",), [compare(kept, "odd", "greater", 50)])
        assert profile.columns["odd"].vectors_read == 20
        assert profile.volume["source"] == "measured"


def test_what_starts_of_reads_take_is_the_median_of_the_last(path_rates: Any) -> None:
    times = path_rates.HostTimes()
    assert times.seconds() == path_rates.HOST_SECONDS
    times.add(Path.ROWS, 5.0)  # whose kernels were compiled
    assert times.seconds()[Path.ROWS] == path_rates.HOST_SECONDS[Path.ROWS]
    for _ in range(20):
        times.add(Path.ROWS, 2e-3)
    times.add(Path.ROWS, 5.0)
    assert times.seconds()[Path.ROWS] == 2e-3
    assert times.seconds()[Path.VECTORS] == path_rates.HOST_SECONDS[Path.VECTORS]
    model = path_rates.GpuProfile.nominal(1).model(1, times.seconds())
    assert {path: rates.host_seconds for path, rates in model.paths.items()} == times.seconds()
