"""Direct reads, writes and flushes by io_uring and by threads, under the sanitizers."""

import os
from pathlib import Path

import pytest

from tests.native.programs import build, joined, native, run, sanitizer

SOURCES = native(
    "executors/direct_executor",
    "executors/file_transfer",
    "executors/io_uring",
    "executors/thread_executor",
    "threads/thread_pool",
    "files/direct_io",
    "files/open_file",
)


@pytest.mark.parametrize(
    "sanitizers",
    ["address", *(pytest.param(kinds, marks=pytest.mark.slow) for kinds in ("undefined", "thread"))],
)
def test_disk_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    flags = [*sanitizer(sanitizers, tmp_path), "-O0"]  # compilers take a third less time
    (tmp_path / "probe").touch()
    try:
        os.close(os.open(tmp_path / "probe", os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"no direct reads here: {error}")
    source = joined([Path(__file__).with_name("uring_test.cpp"), *SOURCES], tmp_path)
    done = run(build(tmp_path / "uring_test", [source], flags=flags), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all disk tests passed" in done.stdout or "without io_uring" in done.stdout
