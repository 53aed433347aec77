"""Compiled kernels on disk: found again, never damaged, never too many, never in the way."""

import multiprocessing
import os
import pwd
import warnings
from pathlib import Path

import pytest

from bamquery.driver.compile.kernel_cache import KernelCache, default_folder


def test_what_was_stored_is_found_by_another_cache(tmp_path: Path) -> None:
    KernelCache(tmp_path).store("key", b"machine code")
    assert KernelCache(tmp_path).load("key") == b"machine code"
    assert KernelCache(tmp_path).load("other") is None


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "magic"])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, damage: str) -> None:
    cache = KernelCache(tmp_path)
    cache.store("key", b"machine code")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[:-1],
            "flip": whole[:-1] + bytes([whole[-1] ^ 1]),
            "empty": b"",
            "magic": b"X" + whole[1:],
        }[damage]
    )
    assert cache.load("key") is None
    cache.store("key", b"machine code")
    assert cache.load("key") == b"machine code"


def test_what_was_used_least_goes_first(tmp_path: Path) -> None:
    entry_bytes = 1036
    cache = KernelCache(tmp_path, limit_bytes=3 * entry_bytes)
    for place, key in enumerate(["a", "b", "c"]):
        cache.store(key, bytes(1000))
        os.utime(tmp_path / f"{key}.kernel", (place, place))
    assert cache.load("a") is not None  # used again: now b is the oldest
    cache.store("d", bytes(1000))
    assert [key for key in "abcd" if cache.load(key) is not None] == ["a", "c", "d"]


def test_one_entry_larger_than_the_limit_is_kept(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, limit_bytes=10)
    cache.store("a", bytes(100))
    assert cache.load("a") == bytes(100)


def test_files_that_a_killed_writer_left_go_and_those_of_a_living_one_stay(tmp_path: Path) -> None:
    abandoned, fresh = tmp_path / "old.partial", tmp_path / "new.partial"
    abandoned.write_bytes(b"")
    os.utime(abandoned, (0, 0))
    fresh.write_bytes(b"")
    KernelCache(tmp_path).store("key", b"")
    assert not abandoned.exists()
    assert fresh.exists()


def test_a_folder_that_cannot_be_made_is_said_once_and_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    cache = KernelCache(file / "kernels")
    with pytest.warns(RuntimeWarning, match=r"cannot be written .*XDG_CACHE_HOME"):
        cache.store("key", b"machine code")
    cache.store("key", b"machine code")  # a warning here would be an error
    assert cache.load("key") is None


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        KernelCache(tmp_path).store("key", b"machine code")
    assert list(tmp_path.iterdir()) == []


def _store_and_load(folder: Path, rounds: int, failures: "multiprocessing.Queue[str]") -> None:
    warnings.simplefilter("error")
    cache = KernelCache(folder, limit_bytes=20_000)
    try:
        for round_number in range(rounds):
            key = str(round_number % 7)
            found = cache.load(key)
            if found is not None and found != key.encode() * 3000:
                failures.put(f"{key}: {found[:20]!r}")
            cache.store(key, key.encode() * 3000)
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
    assert sum(path.stat().st_size for path in tmp_path.glob("*.kernel")) <= 20_000 + 4 * 3036
    assert not list(tmp_path.glob("*.partial"))


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
        cache.store("key", b"machine code")
    assert cache.load("key") is None
    assert list(homeless.iterdir()) == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(homeless))
    assert default_folder() == homeless / "bamquery" / "kernels"
