"""Which columns stay in a GPU's memory."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.storage.database.database import Database
from tests.stored import store, stored

LIMIT = 100


@pytest.fixture
def module(device: Device[Any]) -> Any:
    """The module, which knows the stand-in for libcudf."""
    return importlib.import_module("bamquery.engine.cuda.cache.column_cache")


def key(name: str) -> Any:
    return ((name, 4096),)


def want(cache: Any, name: str, times: int, read: int = 0) -> None:
    for _ in range(times):
        cache.find([key(name)], LIMIT)
    cache.note_read(key(name), read)


def put(module: Any, cache: Any, name: str, size: int) -> bool:
    found: bool = cache.put(key(name), module.CachedColumn(name, object(), size), LIMIT)
    return found


def names(cache: Any, *asked: str) -> list[bool]:
    return [one is not None for one in cache.find([key(name) for name in asked], LIMIT)]


def test_what_is_read_once_does_not_come_in(module: Any) -> None:
    """Nor what is asked for often, as long as little of it is read."""
    cache = module.ColumnCache()
    want(cache, "a", 1, read=1000)
    assert not cache.admits({key("a"): (10, 5)}, LIMIT)
    want(cache, "b", 5, read=4)
    assert not cache.admits({key("b"): (10, 5)}, LIMIT)
    want(cache, "b", 1, read=1)
    assert cache.admits({key("b"): (10, 5)}, LIMIT)
    assert not cache.admits({key("b"): (LIMIT + 1, 5)}, LIMIT)


def test_a_column_without_room_is_not_tried_again_at_once(module: Any) -> None:
    cache = module.ColumnCache()
    want(cache, "a", 3, read=9)
    assert cache.admits({key("a"): (10, 5)}, LIMIT)
    cache.refuse([key("a")])
    assert not cache.admits({key("a"): (10, 5)}, LIMIT)
    cache.note_read(key("a"), 5)
    assert cache.admits({key("a"): (10, 5)}, LIMIT)


def test_who_comes_in_was_wanted_more_than_who_goes(module: Any) -> None:
    cache = module.ColumnCache()
    for name, times in (("seldom", 2), ("often", 9)):
        want(cache, name, times)
        assert put(module, cache, name, 50)
    want(cache, "large", 3, read=60)
    assert cache.admits({key("large"): (50, 60)}, LIMIT)
    assert not cache.admits({key("large"): (60, 60)}, LIMIT)
    assert not put(module, cache, "large", 60)
    assert put(module, cache, "large", 50)
    assert names(cache, "seldom", "often", "large") == [False, True, True]
    assert cache.use().nbytes == 100


def test_columns_of_a_scan_do_not_make_room_for_each_other(module: Any) -> None:
    cache = module.ColumnCache()
    want(cache, "a", 2)
    assert put(module, cache, "a", 60)
    want(cache, "b", 9)
    assert not cache.put(key("b"), module.CachedColumn("b", object(), 60), LIMIT, [key("a")])
    assert names(cache, "a", "b") == [True, False]


def test_a_smaller_limit_drops_what_is_wanted_least(module: Any) -> None:
    cache = module.ColumnCache()
    for name, times in (("a", 2), ("b", 5), ("c", 3)):
        want(cache, name, times)
        assert put(module, cache, name, 30)
    cache.find([], 35)
    assert [one is not None for one in cache.find(map(key, "abc"), 35)] == [False, True, False]
    assert cache.clear() == 30
    use = cache.use()
    assert (use.columns, use.nbytes, use.limit) == (0, 0, 35)
    assert (use.hits, use.misses) == (1, 12)


def test_what_was_wanted_long_ago_makes_room(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HALVED", 16)
    cache = module.ColumnCache()
    want(cache, "old", 12)
    assert put(module, cache, "old", LIMIT)
    want(cache, "new", 6)
    assert not put(module, cache, "new", LIMIT)
    want(cache, "new", 10)
    assert put(module, cache, "new", LIMIT)
    assert names(cache, "old", "new") == [False, True]


def test_columns_that_begin_at_one_place_are_two(module: Any, tmp_path: Path) -> None:
    """Strings that are all empty have no bytes, so that the next column's values begin where theirs do."""
    columns = {"empty": pa.array([""], pa.large_string()), "number": pa.array([1], pa.int64())}
    with stored(tmp_path / "db", pa.table(columns)) as snapshot:
        places = {column.values.offset for column in snapshot.fragments[0].layout.columns}
        assert len(places) == 1
        keys = {module.column_key(snapshot.fragments, name) for name in columns}
    assert len(keys) == 2


def test_a_column_is_known_by_its_place_in_files_whatever_comes_and_goes_beside_it(
    module: Any, tmp_path: Path
) -> None:
    """`d` was taken for what `c` had been, as it had its place among the columns that are left."""
    columns = {name: pa.array([place]) for place, name in enumerate("abcd")}
    with Database.open(tmp_path / "db") as database:
        store(database, "t", pa.table(columns))
        table = database.table("t")

        def known(*names: str) -> list[Any]:
            with table.snapshot() as snapshot:
                return [module.column_key(snapshot.fragments, name) for name in names]

        a, b, c, d = known("a", "b", "c", "d")
        table.drop_column("c")
        assert known("a", "b", "d") == [a, b, d]
        table.rename_column("d", "c")
        assert known("c") == [d]
        assert len({a, b, c, d}) == 4
