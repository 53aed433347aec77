"""Tests that need an NVIDIA GPU: skipped, with the reason, where there is none.

`--gpu-scale` makes them smaller or larger: 0.05 under compute-sanitizer, say.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bamquery.driver.gpu import Gpu
from bamquery.errors import GpuError

FOLDER = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu-scale", type=float, default=1.0, help="how much GPU tests do: 1 is some seconds")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def gpu() -> Iterator[Gpu]:
    try:
        opened = Gpu()
    except GpuError as error:
        pytest.skip(str(error))
    with opened:
        yield opened


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> float:
    # Where all tests run, this folder's options come too late to be known.
    return float(request.config.getoption("--gpu-scale", 1.0))
