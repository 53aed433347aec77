"""Where headers and modules for compiling come from, and what is said where they are missing."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bamquery.driver.compile import toolchain
from bamquery.errors import GpuError


@pytest.fixture
def fresh() -> Iterator[None]:
    toolchain.cccl_folder.cache_clear()
    yield
    toolchain.cccl_folder.cache_clear()


def hide_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    pathfinder = ModuleType("cuda.pathfinder")
    pathfinder.find_nvidia_header_directory = lambda name: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    for name in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")


def make_cccl(folder: Path) -> Path:
    version = folder / "cuda" / "std" / "__cccl" / "version.h"
    version.parent.mkdir(parents=True)
    version.write_text("#define CCCL_VERSION 3000002\n")
    return folder


def test_headers_come_with_the_wheel() -> None:
    package, cccl = toolchain.include_folders()
    assert (package / "driver" / "core" / "platform.hpp").is_file()
    assert (cccl / "cuda" / "atomic").is_file()
    assert int(toolchain.cccl_version()) >= 3_000_000


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("place", ["include/cccl", "include", "targets/x86_64-linux/include/cccl"])
def test_without_the_wheel_a_toolkit_will_do(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_wheels(monkeypatch)
    folder = make_cccl(tmp_path / "toolkit" / place)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    assert toolchain.cccl_folder() == folder.resolve()


@pytest.mark.usefixtures("fresh")
def test_a_toolkit_is_found_by_its_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_wheels(monkeypatch)
    folder = make_cccl(tmp_path / "toolkit" / "include" / "cccl")
    compiler = tmp_path / "toolkit" / "bin" / "nvcc"
    compiler.parent.mkdir()
    compiler.write_text("")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent))
    assert toolchain.cccl_folder() == folder.resolve()


@pytest.mark.usefixtures("fresh")
def test_headers_that_are_nowhere_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_wheels(monkeypatch)
    monkeypatch.setattr(toolchain, "_USUAL_TOOLKIT", tmp_path)
    with pytest.raises(GpuError, match=r"pip install 'bamquery\[cu13\]'"):
        toolchain.cccl_folder()


def test_a_missing_module_says_what_to_install() -> None:
    with pytest.raises(GpuError, match=r"cuda\.nowhere .*pip install 'bamquery\[cu13\]'"):
        toolchain.cuda_module("cuda.nowhere")
