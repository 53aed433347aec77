"""Every kernel and every header of the core compiles under NVRTC, without a warning, where no GPU is.

Those that a user runs compile for one architecture in `make test`, for every one in `make test-slow`, with
the kernels of benchmarks. What came of the same text, headers, options and compiler is kept between runs.
"""

import re
from pathlib import Path

import pytest

import bamquery.engine
from bamquery.driver.compile.compiler import CompileOptions, compile_kernel
from bamquery.driver.compile.kernel_cache import KernelCache
from bamquery.driver.compile.toolchain import KERNELS, PACKAGE

SLOW = pytest.mark.slow
ARCHITECTURES = ["sm_90", *(pytest.param(name, marks=SLOW) for name in ("sm_80", "sm_100", "sm_120"))]
ENGINE_KERNELS = Path(bamquery.engine.__file__).parent / "kernels"
SOURCES = [
    pytest.param(path, marks=SLOW) if path.stem in ("bench_cache", "bench_array") else path
    for path in sorted([*KERNELS.glob("*.cu"), *ENGINE_KERNELS.rglob("*.cu")])
]
HEADER_NAMES = sorted(
    str(path.relative_to(PACKAGE))
    for folder in (PACKAGE / "driver" / "core", PACKAGE / "storage" / "core", ENGINE_KERNELS)
    for path in folder.rglob("*.hpp")
)

GENERIC_LAMBDA = re.compile(r"\[[&=\w, ]*\]\s*\([^)]*\bauto\b")

KEPT = KernelCache(Path(__file__).parents[4] / "build" / "kernels")


def compile_clean(source: Path, architecture: str) -> bytes:
    compiled = compile_kernel(source, CompileOptions(architecture), KEPT)
    assert compiled.log == "", compiled.log
    return compiled.code


@pytest.mark.whole
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_kernel_compiles(source: Path, architecture: str) -> None:
    code = compile_clean(source, architecture)
    assert code.startswith(b"\x7fELF")


C_TYPES = [
    *("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "float"),
    *("ScanBits", "ScanDecimal"),
]


@pytest.mark.parametrize(
    "c_type", ["int64_t", *(pytest.param(name, marks=SLOW) for name in C_TYPES if name != "int64_t")]
)
def test_the_filter_compiles_for_a_type(c_type: str) -> None:
    options = CompileOptions("sm_90", defines=(f"BAMQUERY_SCAN_TYPE={c_type}",))
    compiled = compile_kernel(ENGINE_KERNELS / "scan_filter.cu", options, KEPT)
    assert compiled.log == "", compiled.log


@pytest.mark.slow
@pytest.mark.parametrize("c_type", ["int8_t", "int64_t", "uint64_t", "float", "ScanDecimal"])
@pytest.mark.parametrize("file", ["packed/filter", "packed/gather", "packed/blocks", "packed/mapped"])
def test_kernels_of_packed_columns_compile_for_a_type(file: str, c_type: str) -> None:
    options = CompileOptions("sm_90", defines=(f"BAMQUERY_SCAN_TYPE={c_type}",))
    compiled = compile_kernel(ENGINE_KERNELS / f"{file}.cu", options, KEPT)
    assert compiled.log == "", compiled.log


@pytest.mark.slow
def test_values_of_packed_decimals_compile_in_64_bits() -> None:
    options = CompileOptions("sm_90", defines=("BAMQUERY_SCAN_TYPE=ScanNarrowDecimal",))
    compiled = compile_kernel(ENGINE_KERNELS / "packed" / "gather.cu", options, KEPT)
    assert compiled.log == "", compiled.log


@pytest.mark.slow
@pytest.mark.parametrize("c_type", ["int8_t", "int64_t", "uint64_t", "float", "double"])
def test_pruning_of_packed_columns_compiles_for_a_type(c_type: str) -> None:
    options = CompileOptions("sm_90", defines=(f"BAMQUERY_SCAN_TYPE={c_type}",))
    compiled = compile_kernel(ENGINE_KERNELS / "packed" / "prune.cu", options, KEPT)
    assert compiled.log == "", compiled.log


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADER_NAMES)
def test_a_header_compiles_alone(name: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.cu"
    source.write_text(f'#include "{name}"\n')
    compile_clean(source, "sm_90")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_headers_compile_together(architecture: str, tmp_path: Path) -> None:
    source = tmp_path / "together.cu"
    source.write_text("".join(f'#include "{name}"\n' for name in HEADER_NAMES))
    compile_clean(source, architecture)


@pytest.mark.parametrize("name", HEADER_NAMES)
def test_no_header_has_a_generic_lambda(name: str) -> None:
    """NVRTC of CUDA 13.0 takes them for functions of the host, and newer ones do not tell."""
    assert GENERIC_LAMBDA.search((PACKAGE / name).read_text()) is None
