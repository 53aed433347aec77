import errno
import fcntl
import subprocess
import sys
import threading

import pytest

from bamquery.errors import StorageError
from bamquery.storage.files.locks import LockFile

CHILD = """
import sys
from pathlib import Path
from bamquery.storage.files.locks import LockFile
lock = LockFile(Path(sys.argv[1]), exclusive=True)
for line in sys.stdin:
    kind, start = line.split()
    print(getattr(lock, kind)(int(start)), flush=True)
"""


FORKS = """
import os, sys, time
from pathlib import Path
from bamquery.storage.files.locks import LockFile

def fork(work):
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        work()
        os.write(done, b"x")
        time.sleep(60)
        os._exit(0)
    assert os.read(ready, 1) == b"x"
    return child

def lockable():
    with LockFile(path, exclusive=True) as other:
        return other.try_exclusive(1)

path = Path(sys.argv[1])
parent = LockFile(path)
assert parent.try_shared(1)
closing = fork(parent.close)
assert not lockable(), "a child that closed its copy took the parent's lock"
keeping = fork(lambda: None)
parent.close()
assert lockable(), "a child that has a copy kept the parent's lock"
for child in (closing, keeping):
    os.kill(child, 9)
    os.waitpid(child, 0)
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "lock").touch()
    return tmp_path / "lock"


class Child:
    """Another process with the lock file open."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, kind, start):
        self.process.stdin.write(f"{kind} {start}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() == "True"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def child(path):
    child = Child(path)
    yield child
    child.kill()


def test_two_opens_in_one_process_conflict(path):
    with LockFile(path) as reader, LockFile(path, exclusive=True) as vacuum:
        assert reader.try_shared(3)
        assert not vacuum.try_exclusive(3)
        assert vacuum.try_exclusive(4)
        assert not reader.try_shared(4)
        assert vacuum.held_by_others(3)
        assert not vacuum.held_by_others(4)
        reader.unlock(3)
        assert vacuum.try_exclusive(3)


def test_two_processes_conflict_and_death_frees(path, child):
    with LockFile(path, exclusive=True) as mine:
        assert child.do("try_shared", 2**62 + 5)
        assert not mine.try_exclusive(2**62 + 5)
        assert mine.held_by_others(2**62 + 5)
        assert mine.try_shared(2**62 + 5)
        mine.unlock(2**62 + 5)
        child.kill()
        assert mine.try_exclusive(2**62 + 5)


def test_a_range_to_the_end_meets_every_lock(path, child):
    with LockFile(path, exclusive=True) as mine:
        assert mine.try_exclusive(0, 0)
        assert not child.do("try_shared", 2**62 + 2**60)
        mine.unlock(0, 0)
        assert child.do("try_shared", 2**62 + 2**60)
        assert not mine.try_exclusive(0, 0)


def test_readers_need_no_write_permission(path):
    path.chmod(0o444)
    with LockFile(path) as reader:
        assert reader.try_shared(1)


def test_closing_frees_and_a_closed_lock_says_so(path):
    first = LockFile(path)
    assert first.try_shared(1)
    first.close()
    first.close()
    with LockFile(path, exclusive=True) as second:
        assert second.try_exclusive(1)
    with pytest.raises(StorageError, match="closed"):
        first.try_shared(1)


def test_a_forgotten_lock_is_freed_with_its_object(path):
    lock = LockFile(path)
    assert lock.try_shared(1)
    del lock
    with LockFile(path, exclusive=True) as other:
        assert other.try_exclusive(1)


def test_waiting_has_an_end(path):
    with LockFile(path, exclusive=True) as holder, LockFile(path) as waiter:
        assert holder.try_exclusive(0)
        with pytest.raises(StorageError, match="cannot count sheep"):
            waiter.wait_shared(0, "count sheep", seconds=0.05)
        timer = threading.Timer(0.1, holder.unlock, [0])
        timer.start()
        waiter.wait_shared(0, "count sheep")
        timer.join()


def test_a_forked_child_neither_keeps_nor_frees_its_parents_locks(path):
    # In a process of its own: forking one that has threads, as a test run may, is deprecated.
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS, str(path)], check=True, timeout=60)


def test_a_removed_or_replaced_file_is_noticed(path):
    with LockFile(path) as lock:
        assert lock.is_current()
        path.unlink()
        assert not lock.is_current()
        path.touch()
        assert not lock.is_current()


def test_missing_and_unusable_files(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        LockFile(tmp_path / "missing")
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(StorageError, match="cannot open the lock"):
        LockFile(tmp_path / "link")


def test_a_file_system_without_locks_is_named(path, monkeypatch):
    def control(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    with LockFile(path) as lock:
        monkeypatch.setattr(fcntl, "fcntl", control)
        with pytest.raises(StorageError, match="cannot lock: No locks available") as caught:
            lock.try_shared(1)
        monkeypatch.undo()
    assert caught.value.path == path
