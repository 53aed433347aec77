"""Kernels of programs and of keys, compiled by g++ and run as fibers."""

from __future__ import annotations

import pytest

from tests.unit.engine.cuda_scan.emulator import Emulator


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(tmp_path_factory.mktemp("program-kernels"))
