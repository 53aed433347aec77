"""The cuda device and tables for its scans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import every_type
from tests.stored import stored

ROWS = 300_000
CUTS = (1, 5000, 70_000, 70_100, 200_704)


@pytest.fixture(scope="session")
def cuda() -> Any:
    pytest.importorskip("pylibcudf")
    from bamquery.engine.cuda.device import open_cuda_device

    return open_cuda_device(0, None)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """One fragment."""
    with stored(tmp_path_factory.mktemp("whole") / "db", every_type(ROWS, nulls="pick")) as snapshot:
        yield snapshot


@pytest.fixture(scope="session")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """Six fragments, two of them of few rows."""
    with stored(tmp_path_factory.mktemp("pieces") / "db", every_type(ROWS), CUTS) as snapshot:
        yield snapshot


@pytest.fixture(params=["whole", "pieces"])
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    found: Snapshot = request.getfixturevalue(request.param)
    return found


@pytest.fixture(autouse=True)
def _reads_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads are what these tests are about: no column stays in the GPU's memory that nobody asked to."""
    own = ("test_column_cache", "test_scan_whole")
    if not any(name in request.module.__name__ for name in own):
        session = pytest.importorskip("bamquery.engine.cuda.session")
        monkeypatch.setattr(session.CudaSession, "cache_limit", lambda _, asked: asked or 0)
