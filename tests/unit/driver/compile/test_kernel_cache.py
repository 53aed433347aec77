"""Compiled kernels on disk: found again, never damaged, never too many, never in the way."""

import multiprocessing
import os
import pwd
import warnings
from pathlib import Path

import pytest

from bamquery.driver.compile.kernel_cache import KernelCache, default_folder


def entries(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_what_was_stored_is_found_by_another_cache(tmp_path: Path) -> None:
    KernelCache(tmp_path).store(b"key", b"machine code")
    assert KernelCache(tmp_path).load(b"key") == b"machine code"
    assert KernelCache(tmp_path).load(b"other") is None


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "checksum"])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, damage: str) -> None:
    cache = KernelCache(tmp_path)
    cache.store(b"key", b"machine code")
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[:-1],
            "flip": whole[:-1] + bytes([whole[-1] ^ 1]),
            "empty": b"",
            "checksum": bytes([whole[0] ^ 1]) + whole[1:],
        }[damage]
    )
    assert cache.load(b"key") is None
    cache.store(b"key", b"machine code")
    assert cache.load(b"key") == b"machine code"


def test_what_was_used_least_goes_first(tmp_path: Path) -> None:
    entry_bytes = 1032
    cache = KernelCache(tmp_path, limit_bytes=3 * entry_bytes)
    for place, key in enumerate([b"a", b"b", b"c"]):
        known = entries(tmp_path)
        cache.store(key, bytes(1000))
        (path,) = entries(tmp_path) - known
        os.utime(path, (place, place))
    assert cache.load(b"a") is not None  # used again: now b is the oldest
    cache.store(b"d", bytes(1000))
    assert [key for key in (b"a", b"b", b"c", b"d") if cache.load(key) is not None] == [b"a", b"c", b"d"]


def test_a_folder_that_cannot_be_made_is_said_once_and_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    cache = KernelCache(file / "kernels")
    with pytest.warns(RuntimeWarning, match=r"cannot be written .*XDG_CACHE_HOME"):
        cache.store(b"key", b"machine code")
    cache.store(b"key", b"machine code")  # a warning here would be an error
    assert cache.load(b"key") is None


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        KernelCache(tmp_path).store(b"key", b"machine code")
    assert entries(tmp_path) == set()


def _store_and_load(folder: Path, rounds: int, failures: "multiprocessing.Queue[str]") -> None:
    warnings.simplefilter("error")
    cache = KernelCache(folder, limit_bytes=20_000)
    try:
        for round_number in range(rounds):
            key = b"%d" % (round_number % 7)
            found = cache.load(key)
            if found is not None and found != key * 3000:
                failures.put(f"{key!r}: {found[:20]!r}")
            cache.store(key, key * 3000)
    except BaseException as error:
        failures.put(repr(error))


def test_many_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    failures: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=_store_and_load, args=(tmp_path, 200, failures)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert failures.empty(), failures.get()
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= 20_000 + 4 * 3032
    assert not list((tmp_path / "tmp").iterdir())


def test_the_folder_is_where_the_desktop_puts_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/bamquery/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_folder() == Path("/home/ada/.cache/bamquery/kernels")


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user whom no one gave a home, in a folder."""

    def nobody(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_who_has_no_home_keeps_nothing_and_hears_why(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_folder() is None
    cache = KernelCache()
    with pytest.warns(RuntimeWarning, match=r"no home folder; .*XDG_CACHE_HOME"):
        cache.store(b"key", b"machine code")
    assert cache.load(b"key") is None
    assert list(homeless.iterdir()) == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(homeless))
    assert default_folder() == homeless / "bamquery" / "kernels"
