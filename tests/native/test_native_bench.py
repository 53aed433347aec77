"""Benchmarks' clients on every path under the sanitizers."""

from pathlib import Path

import pytest

from tests.native.programs import build, native, run, sanitizer, software_controller

SOURCES = native(
    "bench/backing",
    "bench/bench_rings",
    "bench/cache",
    "bench/clients",
    "bench/controller",
    "bench/mapped",
    "bench/rings",
    "files/open_file",
    "crc32c",
)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_benchmarks(sanitizers: str, tmp_path: Path) -> None:
    flags = sanitizer(sanitizers, tmp_path)
    sources = [Path(__file__).with_name("bench_test.cpp"), *SOURCES, *software_controller()]
    done = run(build(tmp_path / "bench_test", sources, flags=flags))
    assert done.returncode == 0, done.stderr
    assert "all benchmark tests passed" in done.stdout
