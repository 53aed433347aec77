"""The baselines with cuDF, over stand-ins for its libraries: bytes, answers, errors. Real ones: tests/gpu."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bamquery.errors import BamQueryError, MemoryLimitError
from bamquery.queries import baselines, systems
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import Recipe
from bamquery.queries.questions import question
from bamquery.queries.runner import Plan, RunResult, run
from bamquery.queries.sample import trip_files
from bamquery.queries.systems import baseline
from bamquery.queries.trips.export import export_path
from bamquery.queries.trips.loader import load
from bamquery.storage.database.database import Database
from tests.unit.queries.fake_cudf import CudaAsyncMemoryResource, fake_modules

ROWS = 20_011
ON_CPU = {"device": "cpu"}
CUDF = tuple(name for name, found in baselines.BASELINES.items() if found.gpu)


@pytest.fixture(scope="module")
def taxi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cudf") / "taxi.bq"
    with Database.open(path) as database:
        load(database, trip_files())
        generate(
            database, "generated", Recipe(ROWS, order="random", match_share=0.002, nulls=False), threads=1
        )
    return path


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    modules = fake_modules()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    yield modules
    for name in ("cudf_frames", "cudf_pinned", "cudf_parquet", "cudf_filters"):
        sys.modules.pop(f"{baselines.__name__}.{name}", None)
        if hasattr(baselines, name):
            delattr(baselines, name)


def moved(result: RunResult, system: str) -> list[int | None]:
    return [timing.moved for asked in result.questions for timing in asked.timings if timing.system == system]


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("table", ["trips", "generated"])
def test_answers_and_bytes(taxi: Path, fakes: dict[str, Any], table: str, cold: bool) -> None:
    result = run(Plan(taxi, table, against=CUDF, repeat=1, cold=cold, settings=ON_CPU))
    assert result.right
    copies = [pq.read_metadata(file) for file in sorted(export_path(taxi, table).iterdir())]
    names = [copies[0].schema.column(place).path for place in range(copies[0].num_columns)]
    groups = [copy.row_group(number) for copy in copies for number in range(copy.num_row_groups)]
    stored = {
        name: sum(group.column(place).total_compressed_size for group in groups)
        for place, name in enumerate(names)
    }
    assert moved(result, "cuDF read_parquet") == [
        sum(stored[name] for name in asked.question.columns) for asked in result.questions
    ]
    for few, all_ in zip(
        moved(result, "cuDF read_parquet, filters"), moved(result, "cuDF read_parquet"), strict=True
    ):
        assert few is not None
        assert all_ is not None
        assert 0 < few <= all_
    if table == "generated":
        assert moved(result, "cuDF, pinned memory") == [8 * ROWS * columns for columns in range(2, 7)]
    first = result.questions[0]
    assert first.io is not None
    for timing in first.timings:
        assert timing.moved is not None
        assert first.amplification(timing) == timing.moved / first.io.needed
    assert isinstance(fakes["rmm"].mr.get_current_device_resource(), CudaAsyncMemoryResource)


def test_pinned_columns_with_nulls_take_their_bitmaps_along(taxi: Path, fakes: dict[str, Any]) -> None:
    system = baseline("cudf-pinned", export_path(taxi, "trips"))
    run(Plan(taxi, "trips", repeat=1, settings=ON_CPU))
    with Database.open(taxi) as database, database.table("trips").snapshot() as snapshot:
        rows = snapshot.rows
    system.open()
    system.ask(question("q5"))
    # trip_distance, total_amount, extra and tolls_amount have no nulls in the sample's files.
    bitmaps = system.bytes_moved(question("q5")) - 8 * rows * 6  # type: ignore[operator]
    assert bitmaps % (-(-rows // 512) * 64) == 0
    assert bitmaps > 0
    assert system.count() == 1124
    system.close()


def test_no_long_trip_no_answer(tmp_path: Path, fakes: dict[str, Any]) -> None:
    with Database.open(tmp_path / "taxi.bq") as database:
        generate(database, "trips", Recipe(1000, match_share=0.0, nulls=False), threads=1)
    assert run(Plan(tmp_path / "taxi.bq", against=CUDF, repeat=1, settings=ON_CPU)).right


# --- what can be missing ---


@pytest.mark.parametrize("name", CUDF)
def test_without_cudf_the_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudf", None)
    with pytest.raises(BamQueryError, match=r'cuDF.* needs cudf, which .* pip install "bamquery\[cu13\]"'):
        baseline(name, Path("x.parquet"))


def test_a_cudf_that_finds_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> None:
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    monkeypatch.setattr(systems.importlib, "import_module", broken)
    with pytest.raises(BamQueryError, match=r"needs an NVIDIA GPU that cudf can use: cudaErrorNoDevice"):
        baseline("cudf-parquet", Path("x.parquet"))


@pytest.mark.parametrize("name", CUDF)
def test_without_a_gpu(name: str, fakes: dict[str, Any]) -> None:
    def none() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver")

    fakes["cupy"].cuda.runtime.getDeviceCount = none
    with pytest.raises(BamQueryError, match=r"needs an NVIDIA GPU, and CUDA finds none: cudaErrorInsuff"):
        baseline(name, Path("x.parquet")).open()


def test_too_little_memory_is_an_error_that_says_where(taxi: Path, fakes: dict[str, Any]) -> None:
    run(Plan(taxi, "generated", ("q1",), repeat=1, settings=ON_CPU))

    def full(*_: object, **__: object) -> None:
        raise MemoryError("std::bad_alloc: out_of_memory: CUDA error")

    fakes["rmm"].DeviceBuffer = full
    fakes["cudf"].read_parquet = full
    for name in CUDF:
        system = baseline(name, export_path(taxi, "generated"))
        system.open()
        with pytest.raises(MemoryLimitError, match=r"cuDF.*: Q2's columns do not fit into the GPU's memory"):
            system.ask(question("q2"))
    fakes["cupy"].cuda.alloc_pinned_memory = full
    system = baseline("cudf-pinned", export_path(taxi, "generated"))
    system.open()
    with pytest.raises(
        MemoryLimitError, match=r"160,088 bytes of host memory for trip_distance cannot be pinned"
    ):
        system.ask(question("q1"))
