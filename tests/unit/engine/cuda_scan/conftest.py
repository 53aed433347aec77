"""The scan's modules over an emulated GPU; they are forgotten afterwards, since they know stand-ins."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.unit.engine.cuda_scan import fake_gpu
from tests.unit.engine.cuda_scan.emulator import Emulator

_NAMES = (
    *("rmm", "rmm.pylibrmm", "rmm.pylibrmm.stream"),
    *("pylibcudf", "pylibcudf.aggregation", "pylibcudf.binaryop", "pylibcudf.copying", "pylibcudf.span"),
    *("pylibcudf.types", "pylibcudf.unary"),
)

_ROWS = ("upload_values", "concatenate", "look_up", "late_rows", "narrow_rows", "take_rows", "null_column")


class _Anything(ModuleType):
    """A module that has every name."""

    __path__: list[str] = []  # noqa: RUF012 - so that it can have submodules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _Anything("value")


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    return Emulator(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def scan_modules() -> Iterator[None]:
    before = dict(sys.modules)
    sys.modules.update({name: _Anything(name) for name in _NAMES})
    columns = importlib.import_module("bamquery.engine.cuda.scan.columns.device_columns")
    columns.column_from_buffers = fake_gpu.column_from_buffers  # type: ignore[attr-defined]
    rows = importlib.import_module("bamquery.engine.cuda.scan.columns.libcudf_rows")
    for name in _ROWS:
        setattr(rows, name, getattr(fake_gpu, name))
    yield
    resources = sys.modules.get("bamquery.engine.cuda.scan.resources.scan_resources")
    for found in [] if resources is None else resources._known.values():
        found.stop()
    for name in set(sys.modules) - set(before):
        if name in _NAMES or name.startswith("bamquery.engine.cuda"):
            del sys.modules[name]


@pytest.fixture(scope="module")
def gpu(emulator: Emulator) -> fake_gpu.FakeGpu:
    return fake_gpu.FakeGpu(emulator)


@pytest.fixture(scope="module")
def device(scan_modules: None, gpu: fake_gpu.FakeGpu) -> fake_gpu.FakeDevice:
    importlib.import_module("bamquery.engine.cuda.scan.scan")
    frames = importlib.import_module("bamquery.engine.cuda.frames")
    return fake_gpu.FakeDevice(fake_gpu.FakeSession(gpu), frames.CudaFrame)
