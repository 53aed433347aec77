"""Benchmarks' clients on every path under the sanitizers."""

from pathlib import Path

import pytest

from tests.native.programs import NATIVE, TESTS, build, run, sanitizer

SOURCES = [
    "async_commands",
    "bench_backing",
    "bench_cache",
    "bench_clients",
    "bench_controller",
    "bench_mapped",
    "bench_rings",
    "bus_guard",
    "controller_worker",
    "copy_batch",
    "direct_executor",
    "direct_io",
    "drive_profile",
    "faults",
    "file_transfer",
    "io_uring",
    "namespace",
    "open_file",
    "queue_memory",
    "software_controller",
    "status_text",
    "thread_executor",
    "thread_pool",
]


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_benchmarks(sanitizers: str, tmp_path: Path) -> None:
    flags = sanitizer(sanitizers, tmp_path)
    sources = [TESTS / "bench_test.cpp", *(NATIVE / f"{name}.cpp" for name in SOURCES)]
    done = run(build(tmp_path / "bench_test", sources, flags=flags))
    assert done.returncode == 0, done.stderr
    assert "all benchmark tests passed" in done.stdout
