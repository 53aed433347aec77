"""Rebuilds a database after every operation of a log, in every way a power failure may have left it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults import crash_workload
from tests.faults.crash_workload import History
from tests.faults.recording import Disk, KilledError, Operation, RecordingFileSystem, build, digest

DATABASE = Path("outer", "inner", "db")


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small databases are made in it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def record(
    base: Path,
    without: frozenset[str] = frozenset(),
    killed_at: int | None = None,
    *,
    run: Callable[[History, Path], None] = crash_workload.run,
) -> History:
    """Run the workload below `base`, to its end or until it is killed."""
    filesystem = RecordingFileSystem(without=without, killed_at=killed_at)
    history = History(filesystem)
    try:
        run(history, base)
    except KilledError:
        assert killed_at is not None
    return history


def replay(history: History, base: Path, *, subsets: int, first: int = 0, last: int | None = None) -> int:
    """Verify the outcomes of a crash after each of the operations [first, last].

    Between two writes to one file, only the extremes; otherwise also `subsets` random ones. Returns how many
    different outcomes there were.

    Raises:
        AssertionError: one was not as it must be; says which.
    """
    operations = history.filesystem.operations
    disk = Disk(base)
    seen: set[tuple[bytes, str]] = set()
    with scratch() as work:
        for done in range(len(operations) + 1 if last is None else min(last, len(operations)) + 1):
            if done:
                disk.apply(operations[done - 1])
            if done < first:
                continue
            allowed = history.allowed(done)
            outcomes = disk.extremes() if _is_amid_writes(operations, done) else disk.outcomes(done, subsets)
            for name, tree in outcomes:
                key = (digest(tree), repr(allowed))
                if key in seen:
                    continue
                seen.add(key)
                folder = work / str(len(seen))
                folder.mkdir()
                build(tree, folder)
                try:
                    crash_workload.verify(folder / DATABASE, allowed, thorough=len(seen) % 8 == 0)
                except Exception as error:
                    before = operations[done - 1] if done else None
                    raise AssertionError(
                        f"crash after operation {done} ({before}), {name}: {error!r}"
                    ) from error
                shutil.rmtree(folder)
    return len(seen)


def _is_amid_writes(operations: Sequence[Operation], done: int) -> bool:
    """True where the operations before and after are writes to the same file."""
    if not 0 < done < len(operations):
        return False
    before, after = operations[done - 1], operations[done]
    return before.kind == after.kind == "write" and before.file == after.file
