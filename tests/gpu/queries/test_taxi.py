"""The taxi suite on a GPU: BamQuery there, and cuDF beside it, every answer checked."""

import importlib
import json
from pathlib import Path

import pytest

from bamquery.queries.baselines import BASELINES
from bamquery.queries.command_line import main
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import ORDERS, Recipe
from bamquery.queries.runner import Plan, run
from bamquery.queries.sample import trip_files
from bamquery.queries.trips.loader import load
from bamquery.storage.database.database import Database

# cuDF and what it imports warn of what will change in them.
pytestmark = pytest.mark.filterwarnings("default")

ROWS = 300_007
GPU = {"device": "cuda:0"}
ON_CPU = {"device": "cpu"}
CUDF = tuple(name for name, found in BASELINES.items() if found.gpu)


@pytest.fixture(scope="module")
def taxi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taxi") / "taxi.bq"
    with Database.open(path) as database:
        load(database, trip_files())
        recipe = Recipe(ROWS, order="random", match_share=0.002, nulls=False)
        generate(database, "generated", recipe, threads=2)
        for order in ORDERS:
            generate(database, order, Recipe(ROWS, order=order, nulls=False), threads=2)
    return path


@pytest.fixture(autouse=True)
def cudf_is_there() -> None:
    for library in BASELINES["cudf-pinned"].libraries:
        try:
            importlib.import_module(library)
        except ImportError as error:
            pytest.skip(f"needs cuDF: {error}")


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("table", ["trips", "generated"])
def test_cudf_agrees(taxi: Path, table: str, cold: bool) -> None:
    result = run(Plan(taxi, table, against=CUDF, repeat=2, cold=cold, settings=ON_CPU))
    assert result.right
    for asked in result.questions:
        pinned = next(timing for timing in asked.timings if timing.system == "cuDF, pinned memory")
        if table == "generated":
            assert pinned.moved == 8 * ROWS * len(asked.question.columns)
        assert pinned.moved is not None
        assert pinned.moved >= 8 * result.rows * len(asked.question.columns)


def test_cudf_has_no_answer_where_there_is_no_long_trip(tmp_path: Path) -> None:
    with Database.open(tmp_path / "taxi.bq") as database:
        generate(database, "trips", Recipe(5000, match_share=0.0, nulls=False), threads=1)
    result = run(Plan(tmp_path / "taxi.bq", against=CUDF, repeat=1, settings=ON_CPU))
    assert result.right
    assert [asked.expected for asked in result.questions] == [None] * 5


@pytest.mark.parametrize("zone_maps", [True, False])
@pytest.mark.parametrize("table", ["trips", "generated"])
def test_bamquery_agrees(taxi: Path, table: str, zone_maps: bool) -> None:
    result = run(Plan(taxi, table, repeat=2, settings=GPU | {"zone_maps": zone_maps}))
    assert result.right
    assert result.device == "cuda:0"
    host = run(Plan(taxi, table, repeat=1, settings=ON_CPU | {"zone_maps": zone_maps}))
    for there, here in zip(result.questions, host.questions, strict=True):
        assert there.io is not None
        assert here.io is not None
        # Bits of nulls are rounded up to bytes chunk by chunk, and chunks differ.
        assert abs(there.io.needed - here.io.needed) <= 8
    assert result.memory["gpu_bytes"] > 0


def test_everything_from_the_command_line(taxi: Path, tmp_path: Path) -> None:
    written = tmp_path / "run.json"
    command = ["run", str(taxi), "--table", "generated", "--device", "cuda:0", "--against", ",".join(CUDF)]
    assert main([*command, "--repeat", "1", "--json", str(written)]) == 0
    found = json.loads(written.read_text())
    assert found["device"]["ran_on"] == "cuda:0"
    assert found["machine"]["gpus"]
    assert {"cudf", "rmm"} <= set(found["machine"]["libraries"])
    assert found["queries"][0]["profile"]["device"] == "cuda:0"


def test_selectivity(taxi: Path, tmp_path: Path) -> None:
    written = tmp_path / "run.json"
    command = ["selectivity", str(taxi), "--tables", ",".join(ORDERS), "--device", "cuda:0", "--repeat", "1"]
    assert main([*command, "--shares", "0.0001,0.01,0.3,1", "--json", str(written)]) == 0
    assert json.loads(written.read_text())["device"]["ran_on"] == "cuda:0"
