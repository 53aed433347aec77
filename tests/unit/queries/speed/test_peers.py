"""Peers: what has to be there for them, and cudf-polars' queries read from a package."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from bamquery.errors import BamQueryError
from bamquery.queries.speed.constants.substitutions import Constants
from bamquery.queries.speed.suites import SpeedQuery
from bamquery.queries.speed.systems import registry
from bamquery.queries.speed.systems.pdsh import Pdsh
from bamquery.queries.speed.systems.polars_tables import PolarsTables
from bamquery.queries.speed.systems.registry import require_peers
from bamquery.queries.speed.systems.system import Asked, RefusedError

MODULE = '''
from somewhere import get_data, QueryResult
import polars as pl

class PDSHQueries:
    name = "pdsh"

    @staticmethod
    def q6(run_config: RunConfig) -> QueryResult:
        """Query 6."""
        lineitem = get_data(run_config.dataset_path, "lineitem", run_config.suffix)
        var1 = date(1994, 1, 1)
        frame = lineitem.filter(pl.col("day") >= var1).select(pl.col("price").sum() / run_config.scale_factor)
        return QueryResult(frame=frame, sort_by=[], limit=None)

class PDSHDuckDBQueries:
    @staticmethod
    def q7(run_config):
        return "SELECT 1"
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed cudf-polars, in part."""
    folder = tmp_path / "cudf_polars"
    place = folder / "streaming" / "benchmarks"
    place.mkdir(parents=True)
    (place / "pdsh.py").write_text(MODULE)
    (folder / "__init__.py").write_text("")
    info = tmp_path / "cudf_polars_cu13-26.10.9.dist-info"
    info.mkdir()
    lines = [
        "Metadata-Version: 2.1",
        "Name: cudf-polars-cu13",
        "Version: 26.10.9",
        "Requires-Dist: polars<9999",
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("cudf_polars", None)


def test_there_is_no_such_peer() -> None:
    with pytest.raises(BamQueryError, match=r'nothing called "polar" to compare with.*polars'):
        require_peers(("polar",), 1, "cpu")
    with pytest.raises(BamQueryError, match="--against takes one or more"):
        require_peers((), 1, "cpu")


@pytest.mark.parametrize(
    ("name", "library", "how"),
    [
        ("duckdb", "duckdb", r'pip install "bamquery\[bench\]"'),
        ("chdb", "chdb", r'pip install "bamquery\[formats\]"'),
        ("polars", "polars", r'pip install "bamquery\[bench\]"'),
        ("cudf-polars", "cudf_polars", "pip install cudf-polars-cu13"),
    ],
)
def test_what_is_missing(name: str, library: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = registry.importlib.util.find_spec
    missing = lambda wanted: None if wanted == library else found(wanted)  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", missing)
    with pytest.raises(BamQueryError, match=f"needs {library}, which is not installed: {how}"):
        require_peers((name,), 1, "cuda:0")


@pytest.mark.usefixtures("package")
def test_peers_that_are_there() -> None:
    pytest.importorskip("polars")
    assert require_peers(("duckdb",), 1, "cpu").pdsh is None
    found = require_peers(("duckdb", "cudf-polars"), 1, "cuda:0")
    assert found.have_polars
    assert found.pdsh is not None
    assert found.pdsh.version == "26.10.9"
    with pytest.raises(BamQueryError, match="needs an NVIDIA GPU, and the device is cpu"):
        require_peers(("cudf-polars",), 1, "cpu")


def test_a_package_without_queries(package: Path) -> None:
    pytest.importorskip("polars")
    (package / "cudf_polars" / "streaming" / "benchmarks" / "pdsh.py").unlink()
    with pytest.raises(BamQueryError, match=r"26\.10\.9 comes without its pdsh queries"):
        require_peers(("cudf-polars",), 1, "cuda:0")


@pytest.mark.parametrize(("library", "says"), [("rapidsmpf", "UCX"), ("pylibcudf", "all that it needs")])
def test_a_package_that_cannot_be_imported(library: str, says: str, package: Path) -> None:
    pytest.importorskip("polars")
    text = f"raise ModuleNotFoundError('No module named {library}', name='{library}.core')\n"
    (package / "cudf_polars" / "__init__.py").write_text(text)
    with pytest.raises(BamQueryError, match=f"cannot be imported: No module named {library}.*{says}"):
        require_peers(("cudf-polars",), 1, "cuda:0")


@pytest.mark.usefixtures("package")
def test_polars_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("packaging")
    monkeypatch.setattr(metadata, "requires", lambda name: ["numpy", "polars<1,>=0.9"])
    with pytest.raises(BamQueryError, match=rf"polars<1,>=0.9, and polars {polars.__version__} is installed"):
        require_peers(("cudf-polars",), 1, "cuda:0")


def test_queries_of_a_package() -> None:
    polars = pytest.importorskip("polars")
    pdsh = Pdsh.parse(MODULE, "1")
    assert pdsh is not None
    assert set(pdsh.functions) == {"q6"}
    assert "RunConfig" not in pdsh.functions["q6"]
    days = polars.date_range(polars.date(1993, 1, 1), polars.date(1996, 1, 1), "1y", eager=True)
    table = polars.LazyFrame({"day": days, "price": [1.0, 2.0, 4.0, 8.0]})
    asked: list[str] = []

    def get(name: str) -> Any:
        asked.append(name)
        return table

    def ask(constants: Constants) -> float:
        return pdsh.prepare("06_revenue_change", constants, get)().collect().item()

    assert ask(Constants()) == 14.0
    assert ask(Constants(python={"date(1994, 1, 1)": "date(1995, 1, 1)"}, scale=2.0)) == 6.0
    assert asked == ["lineitem"] * 2
    with pytest.raises(BamQueryError, match="there is no var9"):
        ask(Constants(python={"var9": "1"}))
    with pytest.raises(RefusedError, match="cudf-polars 1 has no pdsh query q7"):
        pdsh.prepare("07_volume_shipping", Constants(), get)
    assert Pdsh.parse("x = 1", "1") is None


class Broken:
    """Tables whose frames fail when they are collected."""

    place = "frames"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def get(self, table: str) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self

    def collect(self, engine: object) -> Any:
        raise self._error


def test_what_polars_refuses_and_what_fails() -> None:
    polars = pytest.importorskip("polars")
    pdsh = Pdsh.parse(MODULE, "1")
    query = SpeedQuery("tpch", "06_revenue_change", "SELECT 1")

    def ask(error: BaseException) -> BamQueryError:
        system = PolarsTables(Broken(error), pdsh)
        with pytest.raises(BamQueryError) as caught:
            system.prepare(Asked(query, query.sql, Constants()))()
        return caught.value

    on_gpu = "'cuda' conversion failed: NotImplementedError: ('unsupported',\n - this)"
    refused = ask(polars.exceptions.ComputeError(on_gpu))
    assert isinstance(refused, RefusedError)
    assert str(refused).endswith("NotImplementedError: ('unsupported', - this)")
    assert isinstance(ask(polars.exceptions.SQLInterfaceError("no")), RefusedError)
    for error in (MemoryError("out"), polars.exceptions.PanicException("out"), RuntimeError("out")):
        failed = ask(error)
        assert (type(failed), str(failed)) == (BamQueryError, "polars, frames: out")
    assert len(str(ask(ValueError("x" * 5000)))) < 500
