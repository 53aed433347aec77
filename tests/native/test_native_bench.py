"""Benchmarks' clients on every path under the sanitizers."""

from pathlib import Path

import pytest

from tests.native.programs import build, native, run, sanitizer

SOURCES = native(
    "bench/backing",
    "bench/bench_rings",
    "bench/cache",
    "bench/clients",
    "bench/controller",
    "bench/mapped",
    "bench/rings",
    "controller/async_commands",
    "controller/copy_batch",
    "controller/drive_profile",
    "controller/faults",
    "controller/namespace",
    "controller/software_controller",
    "controller/worker",
    "executors/direct_executor",
    "executors/file_transfer",
    "executors/io_uring",
    "executors/thread_executor",
    "threads/thread_pool",
    "files/bus_guard",
    "files/direct_io",
    "files/open_file",
    "crc32c",
    "queues/queue_memory",
    "status_text",
)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_benchmarks(sanitizers: str, tmp_path: Path) -> None:
    flags = sanitizer(sanitizers, tmp_path)
    sources = [Path(__file__).with_name("bench_test.cpp"), *SOURCES]
    done = run(build(tmp_path / "bench_test", sources, flags=flags))
    assert done.returncode == 0, done.stderr
    assert "all benchmark tests passed" in done.stdout
