"""From CUDA C++ to machine code: what makes it be made again, and how mistakes are told."""

import shutil
import threading
from pathlib import Path

import pytest

from bamquery.driver.compile import compiler
from bamquery.driver.compile.compiler import CompileOptions, compile_kernel, included_files
from bamquery.driver.compile.kernel_cache import KernelCache
from bamquery.errors import KernelError

KERNEL = '#include "part.hpp"\nextern "C" __global__ void store(int* to) { *to = VALUE; }\n'
FOR_H200 = CompileOptions("sm_90")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "part.hpp").write_text("#define VALUE 1\n")
    path = tmp_path / "store.cu"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "cache")


def test_compiled_once(source: Path, cache: KernelCache) -> None:
    first = compile_kernel(source, FOR_H200, cache)
    again = compile_kernel(source, FOR_H200, cache)
    assert first.code.startswith(b"\x7fELF")
    assert (first.cached, again.cached) == (False, True)
    assert again.code == first.code


@pytest.mark.parametrize(
    "options",
    [
        CompileOptions("sm_80"),
        CompileOptions("sm_90", target="ltoir"),
        CompileOptions("sm_90", defines=("SOMETHING",)),
        CompileOptions("sm_90", line_info=True),
    ],
)
def test_other_options_make_other_code(source: Path, cache: KernelCache, options: CompileOptions) -> None:
    compile_kernel(source, FOR_H200, cache)
    assert not compile_kernel(source, options, cache).cached
    assert compile_kernel(source, FOR_H200, cache).cached


def test_a_changed_header_is_compiled_again(source: Path, cache: KernelCache) -> None:
    first = compile_kernel(source, FOR_H200, cache)
    source.with_name("part.hpp").write_text("#define VALUE 2\n")
    second = compile_kernel(source, FOR_H200, cache)
    assert not second.cached
    assert second.code != first.code


def test_a_copy_elsewhere_is_found_unless_its_lines_are_named(source: Path, cache: KernelCache) -> None:
    lines = CompileOptions("sm_90", line_info=True)
    for options in (FOR_H200, lines):
        compile_kernel(source, options, cache)
    copy = shutil.copytree(source.parent, source.parent / "copy", ignore=shutil.ignore_patterns("cache"))
    assert compile_kernel(copy / source.name, FOR_H200, cache).cached
    assert not compile_kernel(copy / source.name, lines, cache).cached


@pytest.mark.parametrize("name", ["nvrtc_version", "cccl_version"])
def test_another_compiler_compiles_again(
    source: Path, cache: KernelCache, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_kernel(source, FOR_H200, cache)
    monkeypatch.setattr(compiler, name, lambda: "another")
    assert not compile_kernel(source, FOR_H200, cache).cached


def test_a_damaged_entry_is_compiled_again(source: Path, cache: KernelCache) -> None:
    first = compile_kernel(source, FOR_H200, cache)
    assert cache.folder is not None
    (entry,) = (path for path in cache.folder.rglob("*") if path.is_file())
    entry.write_bytes(entry.read_bytes()[:-7])
    again = compile_kernel(source, FOR_H200, cache)
    assert not again.cached
    assert again.code == first.code
    assert compile_kernel(source, FOR_H200, cache).cached


def test_threads_that_want_the_same_compile_it_once(source: Path, cache: KernelCache) -> None:
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(compile_kernel(source, FOR_H200, cache).cached))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False, True, True, True]


def test_defines_reach_the_compiler(tmp_path: Path, cache: KernelCache) -> None:
    source = tmp_path / "defined.cu"
    source.write_text('static_assert(SIZE == 7);\n#ifndef FLAG\n#error "no flag"\n#endif\n')
    compile_kernel(source, CompileOptions("sm_90", defines=("SIZE=7", "FLAG")), cache)


def test_an_error_names_file_and_line_and_has_the_log(source: Path, cache: KernelCache) -> None:
    source.write_text(KERNEL + "__device__ int wrong() { return missing; }\n")
    with pytest.raises(KernelError, match=r"sm_90: identifier .missing. is undefined") as caught:
        compile_kernel(source, FOR_H200, cache)
    assert caught.value.file == source
    assert caught.value.line == 3
    assert "1 error detected" in caught.value.log
    assert caught.value.log in str(caught.value)


def test_an_error_in_a_header_names_the_header(source: Path, cache: KernelCache) -> None:
    header = source.with_name("part.hpp")
    header.write_text("\n\n#define VALUE 1\n__device__ int wrong() { return missing; }\n")
    with pytest.raises(KernelError) as caught:
        compile_kernel(source, FOR_H200, cache)
    assert (caught.value.file, caught.value.line) == (header, 4)


def test_an_architecture_that_does_not_exist(source: Path, cache: KernelCache) -> None:
    with pytest.raises(KernelError, match="sm_1") as caught:
        compile_kernel(source, CompileOptions("sm_1"), cache)
    assert "gpu-architecture" in caught.value.log


def test_a_kernel_that_is_not_there(tmp_path: Path, cache: KernelCache) -> None:
    with pytest.raises(KernelError, match=r"none\.cu.*No such file"):
        compile_kernel(tmp_path / "none.cu", FOR_H200, cache)


def test_warnings_are_kept_with_the_code(tmp_path: Path, cache: KernelCache) -> None:
    source = tmp_path / "careless.cu"
    source.write_text('extern "C" __global__ void careless() { int unused; }\n')
    first = compile_kernel(source, FOR_H200, cache)
    assert "declared but never referenced" in first.log
    assert compile_kernel(source, FOR_H200, cache).log == first.log


def test_an_unwritable_cache_does_not_keep_kernels_from_compiling(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = KernelCache(tmp_path / "file" / "cache")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        assert not compile_kernel(source, FOR_H200, cache).cached
    assert not compile_kernel(source, FOR_H200, cache).cached


def test_included_files_are_followed_once_also_round_in_circles(tmp_path: Path) -> None:
    headers = tmp_path / "core"
    headers.mkdir()
    (headers / "a.hpp").write_text('#include "b.hpp"\n#  include "beside.hpp"\n')
    (headers / "b.hpp").write_text('#if 0\n#include "a.hpp"\n#endif\n#include <cuda/atomic>\n')
    (headers / "beside.hpp").write_text("")
    source = tmp_path / "kernel.cu"
    source.write_text('// #include "c.hpp"\n#include "a.hpp"\n')
    names = [file.name for file in included_files(source, [headers])]
    assert names == ["kernel.cu", "a.hpp", "b.hpp", "beside.hpp"]
