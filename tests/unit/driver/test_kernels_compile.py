"""Every kernel and every header of the core compiles under NVRTC, without a warning, where no GPU is.

CI does so for every architecture; `make test` for one.
"""

from pathlib import Path

import pytest

from bamquery.driver.compiler import CompileOptions, compile_kernel
from bamquery.driver.kernel_cache import KernelCache
from bamquery.driver.toolchain import HEADERS, KERNELS

SLOW = pytest.mark.slow
ARCHITECTURES = ["sm_90", *(pytest.param(name, marks=SLOW) for name in ("sm_80", "sm_100", "sm_120"))]
HEADER_NAMES = sorted(path.name for path in HEADERS.glob("*.hpp"))


def compile_clean(source: Path, architecture: str, folder: Path) -> bytes:
    compiled = compile_kernel(source, CompileOptions(architecture), KernelCache(folder / "cache"))
    assert compiled.log == "", compiled.log
    return compiled.code


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", sorted(path.stem for path in KERNELS.glob("*.cu")))
def test_a_kernel_compiles(name: str, architecture: str, tmp_path: Path) -> None:
    code = compile_clean(KERNELS / f"{name}.cu", architecture, tmp_path)
    assert code.startswith(b"\x7fELF")


@pytest.mark.parametrize("name", HEADER_NAMES)
def test_a_header_compiles_alone(name: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.cu"
    source.write_text(f'#include "{name}"\n')
    compile_clean(source, "sm_90", tmp_path)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_headers_compile_together(architecture: str, tmp_path: Path) -> None:
    source = tmp_path / "together.cu"
    source.write_text("".join(f'#include "{name}"\n' for name in HEADER_NAMES))
    compile_clean(source, architecture, tmp_path)
