"""The cuda device over a stand-in for libcudf, for what it asks; see fake_libcudf.py."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bamquery.engine.device import Device
from tests.unit.engine.cuda import fake_libcudf
from tests.unit.engine.cuda_scan.emulator import Emulator


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def device(emulator: Emulator) -> Iterator[Device[Any]]:
    """The device; its modules are forgotten afterwards, since they know the stand-in."""
    names = fake_libcudf.install()
    before = set(sys.modules)
    module = importlib.import_module("bamquery.engine.cuda.device")
    yield module.CudaDevice(fake_libcudf.FakeSession(emulator))
    ours = [name for name in set(sys.modules) - before if name.startswith("bamquery.engine.cuda")]
    for name in [*names, *ours]:
        sys.modules.pop(name, None)
