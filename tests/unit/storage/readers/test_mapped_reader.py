"""A file that changes under a memory map is an error, never the end of the process."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.readers.mapped_reader import MappedReader


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20))
    return path


TRUNCATED = """
    import os, sys, threading, faulthandler
    from pathlib import Path
    import numpy as np
    from bamquery.errors import StorageError
    from bamquery.statement_context.thread_budget import ThreadBudget, working_for
    from bamquery.storage.readers.block_reader import ReadCounters
    from bamquery.storage.readers.mapped_reader import MappedReader

    path = Path(sys.argv[1])
    size = path.stat().st_size
    reader = MappedReader(path, size)
    rows = np.arange(size // 8)
    reader.gather(0, 8, 8, rows, ReadCounters())
    {before}
    os.truncate(path, 10_000)
    reads = [
        lambda: reader.read_ranges(np.array([0, 500_000]), np.array([100, 100]), ReadCounters()),
        lambda: reader.read_ranges(np.arange(0, size, 4096), np.full(size // 4096, 4096), ReadCounters()),
        lambda: reader.gather(0, 8, 8, rows, ReadCounters()),
        lambda: reader.gather(0, 24, 24, np.arange(size // 24), ReadCounters()),
        lambda: reader.gather_bits(0, np.arange(size * 8), ReadCounters()),
    ]
    errors = []
    def read_all():
        for read in reads:
            for helpers in (1, 5):  # those of other threads that help find it out, too
                try:
                    with working_for(ThreadBudget(helpers)):
                        read()
                except StorageError as error:
                    errors.append(str(error))
    threads = [threading.Thread(target=read_all) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(errors) == 40, errors
    message = f"{{path}}: truncated while in use: 10000 bytes instead of {{size}}"
    assert all(error == message for error in errors), errors
    reader.read_ranges(np.array([0]), np.array([100]), ReadCounters())  # what is left can still be read
    print("survived")
"""


@pytest.mark.parametrize("before", ["", "faulthandler.enable()"])
def test_truncation_while_reading_is_an_error(file: Path, before: str) -> None:
    """Also where another handler was installed after ours."""
    done = run(TRUNCATED.format(before=before), str(file))
    assert done.stdout == "survived\n", done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("handler", ["", "import faulthandler; faulthandler.enable()"])
def test_other_bus_errors_still_end_the_process(file: Path, handler: str) -> None:
    """Ours are caught; anybody else's go where they went before, and never round in circles."""
    done = run(
        f"""
        import mmap, os, resource, sys
        from pathlib import Path
        import numpy as np
        from bamquery.storage.readers.block_reader import ReadCounters
        from bamquery.storage.readers.mapped_reader import MappedReader
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        path = Path(sys.argv[1])
        reader = MappedReader(path, path.stat().st_size)
        reader.read_ranges(np.array([0]), np.array([100]), ReadCounters())
        {handler}
        reader.read_ranges(np.array([0]), np.array([100]), ReadCounters())
        with open(path, "r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
            os.truncate(path, 0)
            mapped[100_000]
        """,
        str(file),
    )
    assert done.returncode == -signal.SIGBUS, done.stderr
    assert ("Bus error" in done.stderr) == bool(handler)


def test_a_missing_file_and_a_wrong_size_are_found_at_open(file: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptionError, match=r"file: 1048576 bytes instead of 5"):
        MappedReader(file, 5)
    with pytest.raises(CorruptionError, match=r"nowhere: the file is missing"):
        MappedReader(tmp_path / "nowhere", 5)
