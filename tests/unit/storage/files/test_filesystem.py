import ctypes
import errno
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files import filesystem
from bamquery.storage.files.filesystem import POSIX


def write(path: Path, *buffers, offset=0):
    file = POSIX.create(path)
    try:
        file.write_at(offset, buffers)
        file.sync()
    finally:
        file.close()


def test_buffers_of_every_kind_land_one_after_another_at_the_offset(tmp_path):
    values = np.arange(3, dtype="<i4")
    write(
        tmp_path / "f",
        b"ab",
        pa.py_buffer(b"cd"),
        memoryview(b"ef"),
        b"",
        bytearray(b"g"),
        values.data,
        offset=3,
    )
    assert (tmp_path / "f").read_bytes() == b"\0\0\0abcdefg" + values.tobytes()


def test_more_buffers_than_one_call_takes(tmp_path):
    buffers = [bytes([i % 256]) * (i % 5) for i in range(5000)]
    write(tmp_path / "f", *buffers)
    assert (tmp_path / "f").read_bytes() == b"".join(buffers)


@pytest.mark.parametrize("taken", [1, 2, 7, 4096])
def test_short_writes_are_continued(tmp_path, monkeypatch, taken):
    real = os.pwritev

    def pwritev(descriptor, views, offset):
        return real(descriptor, [b"".join(map(bytes, views))[:taken]], offset)

    monkeypatch.setattr(os, "pwritev", pwritev)
    write(tmp_path / "f", b"abc", b"defgh", b"i")
    assert (tmp_path / "f").read_bytes() == b"abcdefghi"


def test_large_writes_start_on_their_way_to_the_disk_at_once(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(filesystem, "_start_writing", lambda descriptor, *extent: started.append(extent))
    large = bytes(filesystem._START_BYTES)
    write(tmp_path / "f", b"small", large, offset=7)
    write(tmp_path / "g", large[1:])
    assert started == [(7, len(large) + 5)]


@pytest.mark.parametrize("libc", [ctypes.CDLL(None), object()])
def test_a_system_that_cannot_start_early_loses_nothing(tmp_path, monkeypatch, libc):
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: libc)
    data = os.urandom(3 << 20)
    write(tmp_path / "f", data)
    assert (tmp_path / "f").read_bytes() == data


def test_a_file_system_that_takes_nothing_is_an_error_not_a_loop(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with pytest.raises(StorageError, match="took no bytes"):
        write(tmp_path / "f", b"abc")


def test_create_never_opens_an_existing_file(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        POSIX.create(tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"old"


def test_descriptors_are_not_inherited(tmp_path):
    file = POSIX.create(tmp_path / "f")
    assert not os.get_inheritable(file._descriptor)
    file.close()
    file.close()


def test_publish_gives_the_name_once(tmp_path):
    (tmp_path / "draft").write_bytes(b"new")
    POSIX.publish(tmp_path / "draft", tmp_path / "final")
    assert (tmp_path / "final").read_bytes() == b"new"
    (tmp_path / "other").write_bytes(b"other")
    with pytest.raises(FileExistsError):
        POSIX.publish(tmp_path / "other", tmp_path / "final")
    assert (tmp_path / "final").read_bytes() == b"new"


def test_a_link_whose_answer_was_lost_counts_as_made(tmp_path):
    (tmp_path / "draft").write_bytes(b"new")
    POSIX.publish(tmp_path / "draft", tmp_path / "final")
    POSIX.publish(tmp_path / "draft", tmp_path / "final")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_hard_links_a_rename_that_refuses_to_replace_is_used(tmp_path, monkeypatch, number):
    def link(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)
    (tmp_path / "draft").write_bytes(b"new")
    POSIX.publish(tmp_path / "draft", tmp_path / "final")
    assert (tmp_path / "final").read_bytes() == b"new"
    (tmp_path / "other").write_bytes(b"other")
    with pytest.raises(FileExistsError):
        POSIX.publish(tmp_path / "other", tmp_path / "final")
    assert (tmp_path / "final").read_bytes() == b"new"
    with pytest.raises(StorageError, match="No such file"):
        POSIX.publish(tmp_path / "missing", tmp_path / "third")


def test_with_neither_links_nor_renames_the_way_out_is_named(tmp_path, monkeypatch):
    def link(*_, **__):
        raise OSError(errno.EPERM, "no")

    class Libc:
        @staticmethod
        def renameat2(*_):
            ctypes.set_errno(errno.EINVAL)
            return -1

    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc())
    (tmp_path / "draft").write_bytes(b"new")
    with pytest.raises(StorageError, match="another volume") as caught:
        POSIX.publish(tmp_path / "draft", tmp_path / "final")
    assert caught.value.path == tmp_path / "final"


def test_other_failures_of_link_are_not_retried(tmp_path):
    with pytest.raises(StorageError, match="cannot publish: No such file"):
        POSIX.publish(tmp_path / "missing", tmp_path / "final")


def test_what_is_gone_needs_no_removal(tmp_path):
    POSIX.remove(tmp_path / "f")
    POSIX.remove_directory(tmp_path / "d")
    POSIX.make_directory(tmp_path / "d")
    POSIX.make_directory(tmp_path / "d")
    POSIX.sync_directory(tmp_path / "d")
    POSIX.remove_directory(tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_failures_name_the_path_and_the_reason(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"")
    cases = [
        (lambda: POSIX.create(tmp_path / "no" / "f"), tmp_path / "no" / "f", "cannot create: No such file"),
        (lambda: POSIX.remove_directory(tmp_path / "d"), tmp_path / "d", "not empty"),
        (lambda: POSIX.make_directory(tmp_path / "d" / "f"), tmp_path / "d" / "f", "in the way"),
        (lambda: POSIX.make_directory(tmp_path / "no" / "d"), tmp_path / "no" / "d", "No such file"),
        (lambda: POSIX.sync_directory(tmp_path / "no"), tmp_path / "no", "No such file"),
        (lambda: POSIX.remove(tmp_path / "d"), tmp_path / "d", "cannot remove"),
    ]
    for action, path, message in cases:
        with pytest.raises(StorageError, match=message) as caught:
            action()
        assert caught.value.path == path


def test_a_folder_that_knows_no_sync_needs_none(tmp_path, monkeypatch):
    def fsync(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    number = errno.EINVAL
    POSIX.sync_directory(tmp_path)
    number = errno.EIO
    with pytest.raises(StorageError, match="stable storage"):
        POSIX.sync_directory(tmp_path)


CHANGES = {
    "create": lambda changes, inner: changes.create(inner / "new"),
    "publish": lambda changes, inner: changes.publish(inner / "f", inner / "new"),
    "publish from": lambda changes, inner: changes.publish(inner / "f", inner.parent.parent / "new"),
    "link": lambda changes, inner: changes.link(inner / "f", inner / "new"),
    "remove": lambda changes, inner: changes.remove(inner / "f"),
    "make a folder": lambda changes, inner: changes.make_directory(inner / "new"),
    "remove a folder": lambda changes, inner: changes.remove_directory(inner / "d"),
    "sync a folder": lambda changes, inner: changes.sync_directory(inner),
}


@pytest.mark.parametrize("linked", ["outer", "outer/inner"])
@pytest.mark.parametrize("change", CHANGES)
def test_no_change_below_the_root_goes_through_a_link(tmp_path, change, linked):
    """Also where the link was not there when somebody looked."""
    (tmp_path / "away" / "inner" / "d").mkdir(parents=True)
    (tmp_path / "away" / "inner" / "f").write_bytes(b"of somebody else")
    away = {"outer": tmp_path / "away", "outer/inner": tmp_path / "away" / "inner"}[linked]
    root = tmp_path / "root"
    (root / linked).parent.mkdir(parents=True)
    (root / linked).symlink_to(away)
    before = sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    with pytest.raises(CorruptionError, match="a link in the place of a folder") as caught:
        CHANGES[change](filesystem.PosixFileSystem(root), root / "outer" / "inner")
    assert caught.value.path == root / linked
    assert sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_the_way_to_the_root_may_go_through_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")
    changes = filesystem.PosixFileSystem(tmp_path / "way")
    changes.make_directory(tmp_path / "way" / "d")
    changes.create(tmp_path / "way" / "d" / "f").close()
    changes.publish(tmp_path / "way" / "d" / "f", tmp_path / "way" / "g")
    assert sorted(os.listdir(tmp_path / "real")) == ["d", "g"]


def test_no_descriptor_of_a_folder_stays_open(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    changes = filesystem.PosixFileSystem(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for path in (tmp_path / "link" / "f", tmp_path / "no" / "f", tmp_path / "f"):
        with suppress(StorageError):
            changes.create(path).close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_size_limit_is_an_error_with_a_hint(tmp_path):
    code = (
        "import sys; from pathlib import Path; from bamquery.errors import StorageError\n"
        "from bamquery.storage.files.filesystem import POSIX\n"
        "file = POSIX.create(Path(sys.argv[1]))\n"
        "try: file.write_at(0, [bytes(100_000)])\n"
        "except StorageError as error: print(error)\n"
    )
    limit = (50_000, 50_000)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "f")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{tmp_path / 'f'}: cannot write: File too large" in done.stdout
    assert "ulimit -f" in done.stdout


def test_messages_give_the_way_out():
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "free some space" in str(filesystem.storage_error(error, Path("x"), "write"))
