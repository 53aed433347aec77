"""Reads past the page cache: what is counted is what the kernel saw; failures say the way out."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from bamquery import _native
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.queue_reader import IoPath, QueueReader

SIZE = 48 << 20


@pytest.fixture(params=["io_uring", "preadv"])
def io(file: Path, request: pytest.FixtureRequest) -> IoPath:
    try:
        QueueReader(file, SIZE, io=request.param).close()
    except StorageError as error:
        pytest.skip(str(error))
    return cast("IoPath", request.param)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("direct") / "file"
    with path.open("wb") as target:
        target.write(np.random.default_rng(0).bytes(SIZE))
        os.fsync(target.fileno())
    return path


def file_system(path: Path) -> str:
    """Type of the file system that holds `path`."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    inside = [m for m in mounts if path.resolve().is_relative_to(m[1])]
    return max(inside, key=lambda m: len(m[1]))[2]


def kernel_read_bytes() -> int:
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes:"):
            return int(line.split()[1])
    raise AssertionError


def test_bytes_counted_are_bytes_the_kernel_read(file: Path, io: IoPath) -> None:
    if file_system(file) in {"tmpfs", "overlay", "ramfs"}:
        pytest.skip(f"{file_system(file)} reads no device: /proc/self/io stays at 0")
    reader = QueueReader(file, SIZE, io=io)
    random = np.random.default_rng(1)
    rows = np.unique(random.integers(0, SIZE // 8, 3000))
    vectors = np.unique(random.integers(0, SIZE // 8192, 700)) * 8192
    for read in (
        lambda counters: reader.read_ranges(np.array([0]), np.array([SIZE]), counters),
        lambda counters: reader.read_ranges(vectors, np.full(len(vectors), 8192), counters),
        lambda counters: reader.gather(0, 8, 8, rows, counters),
    ):
        counters = ReadCounters()
        before = kernel_read_bytes()
        read(counters)
        read_bytes = kernel_read_bytes() - before
        assert counters.bytes > 0
        assert abs(read_bytes - counters.bytes) <= 0.05 * counters.bytes
    reader.close()


def test_the_path_says_why_it_is_not_io_uring(file: Path, io: IoPath) -> None:
    reader = QueueReader(file, SIZE, io=io)
    assert reader.io_path == ("io_uring" if io == "io_uring" else "preadv: asked for")
    reader.close()
    chosen = QueueReader(file, SIZE)
    assert chosen.io_path == "io_uring" or chosen.io_path.startswith("preadv: ")
    chosen.close()
    with pytest.raises(ValueError, match="io is auto, io_uring or preadv"):
        QueueReader(file, SIZE, io=cast("IoPath", "magic"))


def test_commands_are_those_the_controller_carries_out(file: Path, io: IoPath) -> None:
    reader = QueueReader(file, SIZE, io=io)
    before = reader.controller.statistics()
    counters = ReadCounters()
    reader.gather(0, 65_536, 8, np.arange(SIZE // 65_536), counters)
    reader.read_ranges(np.array([100]), np.array([SIZE - 200]), counters)
    after = reader.controller.statistics()
    assert after["reads"] - before["reads"] == counters.commands
    assert after["read_bytes"] - before["read_bytes"] == counters.bytes
    assert counters.commands == SIZE // 65_536 + SIZE // _native.LARGEST_READ
    reader.close()


def test_the_device_says_how_large_a_block_is(file: Path) -> None:
    reader = QueueReader(file, SIZE)
    assert reader.block_size in {512, 1024, 2048, 4096}
    assert QueueReader(file, SIZE, block_size=65_536).block_size == 65_536
    reader.close()


def test_truncation_while_in_use_is_an_error(tmp_path: Path, io: IoPath) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    reader = QueueReader(path, 1 << 20, io=io)
    os.truncate(path, 10_000)
    message = "file: truncated while in use: 10000 bytes instead of 1048576"
    with pytest.raises(StorageError, match=message):
        reader.read_ranges(np.array([0]), np.array([1 << 20]), ReadCounters())
    with pytest.raises(StorageError, match=message):
        reader.gather(0, 8, 8, np.arange(1 << 17), ReadCounters())
    assert reader.read_ranges(np.array([0]), np.array([100]), ReadCounters()).size == 100
    reader.close()


def test_file_systems_without_direct_reads_say_the_way_out() -> None:
    status = Path("/proc/self/status")  # procfs refuses O_DIRECT
    with pytest.raises(StorageError, match=r'no direct reads: use reader="mapped"'):
        QueueReader(status, status.stat().st_size)


def test_a_missing_file_and_a_wrong_size_are_found_at_open(file: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptionError, match=f"{SIZE} bytes instead of 5"):
        QueueReader(file, 5)
    with pytest.raises(CorruptionError, match=r"the file is missing"):
        QueueReader(tmp_path / "nowhere", 5)


def test_many_threads_share_a_reader(file: Path, io: IoPath) -> None:
    """More threads than queue pairs: some wait for one."""
    contents = np.frombuffer(file.read_bytes(), np.int64)
    reader = QueueReader(file, SIZE, depth=8, io=io)
    failures: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(5):
            rows = np.unique(random.integers(0, SIZE // 8, 100))
            found = np.frombuffer(reader.gather(0, 8, 8, rows, ReadCounters()), np.int64)
            if not np.array_equal(found, contents[rows]):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    reader.close()


def test_closing_lets_reads_under_way_finish(file: Path, io: IoPath) -> None:
    contents = file.read_bytes()
    for _ in range(10):
        reader = QueueReader(file, SIZE, io=io)
        begun = threading.Event()
        answers: list[bytes | str] = []

        def read() -> None:
            begun.set()  # noqa: B023
            try:
                buffer = reader.read_ranges(np.array([0]), np.array([SIZE // 4]), ReadCounters())  # noqa: B023
            except StorageError as error:
                answers.append(str(error))  # noqa: B023
            else:
                answers.append(buffer.to_pybytes())  # noqa: B023

        thread = threading.Thread(target=read)
        thread.start()
        begun.wait()
        reader.close()
        thread.join()
        assert answers in ([contents[: SIZE // 4]], [f"{file}: the reader is closed"])
    with pytest.raises(StorageError, match="the reader is closed"):
        reader.gather(0, 8, 8, np.arange(3), ReadCounters())


def test_a_forked_child_can_read(file: Path, io: IoPath) -> None:
    """Threads and rings are the parent's; the child's must be its own."""
    script = """
import os, sys
from pathlib import Path
import numpy as np
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.queue_reader import QueueReader
path = Path(sys.argv[1])
reader = QueueReader(path, path.stat().st_size, io=sys.argv[2])
rows = np.arange(0, path.stat().st_size // 8, 5000)
expected = reader.gather(0, 8, 8, rows, ReadCounters())
child = os.fork()
if child == 0:
    same = reader.gather(0, 8, 8, rows, ReadCounters()).equals(expected)
    reader.close()
    os._exit(0 if same else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
same = reader.gather(0, 8, 8, rows, ReadCounters()).equals(expected)
reader.close()
sys.exit(status if same else 1)
"""
    done = subprocess.run([sys.executable, "-c", script, str(file), io], timeout=60, check=False)
    assert done.returncode == 0
