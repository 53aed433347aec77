"""Tests that need an NVIDIA GPU: skipped, with the reason, where there is none.

`--gpu-scale` makes them smaller or larger: 0.05 under compute-sanitizer, say. `--racecheck` is for its tool
of that name, which knows atomics by what they do.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bamquery.driver.gpu.device import Gpu
from bamquery.errors import GpuError

FOLDER = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu-scale", type=float, default=1.0, help="how much GPU tests do")
    parser.addoption("--racecheck", action="store_true", help="kernels as racecheck understands them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    files = {path for path in {item.path for item in items} if FOLDER in path.parents}
    mine = [item for item in items if item.path in files]
    if not mine:
        return
    marks = [pytest.mark.gpu]
    try:
        Gpu().close()
    except GpuError as error:
        marks.append(pytest.mark.skip(str(error)))
    for item in mine:
        for mark in marks:
            item.add_marker(mark)


@pytest.fixture(scope="session")
def gpu(request: pytest.FixtureRequest) -> Iterator[Gpu]:
    # Where all tests run, this folder's options come too late to be known.
    defines = ("BAMQUERY_RACECHECK",) if request.config.getoption("--racecheck", False) else ()
    with Gpu(defines=defines, line_info=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> float:
    return float(request.config.getoption("--gpu-scale", 1.0))
