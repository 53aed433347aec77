"""Keys of folders: what they are called, of which type, and where there are none."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.many_files.hive_partitions import folder_keys, folder_name, partition_columns
from bamquery.storage.ingest.sources.options import PathOptions

NOTHING_SAID = PathOptions()


def values(*folders: str, options: PathOptions = NOTHING_SAID) -> tuple[pa.DataType, list[object]]:
    (column,) = partition_columns([Path(f"d/k={folder}/x.csv") for folder in folders], options)
    return column.type, [value.as_py() for value in column.values]


@pytest.mark.parametrize(
    ("folders", "kind", "expected"),
    [
        (("1", "-20", " 3 ", "0x10", "0b11", "-0"), pa.int64(), [1, -20, 3, 16, 3, 0]),
        (("9223372036854775807", "-9223372036854775808"), pa.int64(), [2**63 - 1, -(2**63)]),
        (("9223372036854775808",), pa.large_string(), ["9223372036854775808"]),
        (("1" * 5000,), pa.large_string(), ["1" * 5000]),
        (("007",), pa.large_string(), ["007"]),
        (("1", "x"), pa.large_string(), ["1", "x"]),
        (("1.5",), pa.large_string(), ["1.5"]),
        (("2020-01-31", "2020-2-1"), pa.date32(), [date(2020, 1, 31), date(2020, 2, 1)]),
        (("2020-02-30",), pa.large_string(), ["2020-02-30"]),
        (("2020-01-01 24:00:00",), pa.timestamp("us"), [datetime(2020, 1, 2)]),
        (("9999-12-31 24:00:00",), pa.large_string(), ["9999-12-31 24:00:00"]),
        (("2020-01-01T01:02:03.5Z",), pa.timestamp("us"), [datetime(2020, 1, 1, 1, 2, 3, 500000)]),
        (("2020-01-01", "2020-01-01 01:00:00"), pa.large_string(), ["2020-01-01", "2020-01-01 01:00:00"]),
        (("a%20b%2Fc", "%zz%4"), pa.large_string(), ["a b/c", "%zz%4"]),
        (("1", "__HIVE_DEFAULT_PARTITION__"), pa.int64(), [1, None]),
        (("__HIVE_DEFAULT_PARTITION__",), pa.large_string(), [None]),
        (("", "NULL"), pa.large_string(), ["", "NULL"]),
    ],
)
def test_types_and_values(folders: tuple[str, ...], kind: pa.DataType, expected: list[object]) -> None:
    assert values(*folders) == (kind, expected)


def test_types_can_be_said() -> None:
    assert values("1", options=PathOptions(guess_types=False)) == (pa.large_string(), ["1"])
    assert values("1", options=PathOptions(partition_strings=("k",))) == (pa.large_string(), ["1"])


def test_a_value_that_is_no_text() -> None:
    with pytest.raises(IngestError, match="not UTF-8"):
        values("%FF")


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/b=2/x/a=1/f.csv", {"b": "2", "a": "1"}),
        ("k=1/k=2/f.csv", {"k": "1"}),
        ("k=1/../k=2/f.csv", {"k": "2"}),
        ("a=b=c/=d/e/k=v.csv", {}),
        ("k=/f.csv", {"k": ""}),
    ],
)
def test_keys(path: str, keys: dict[str, str]) -> None:
    assert folder_keys(Path(path)) == keys


def test_keys_are_in_the_order_of_their_names() -> None:
    files = [Path("b=1/a=2/f.csv"), Path("a=3/b=4/f.csv")]
    assert [column.name for column in partition_columns(files, PathOptions())] == ["a", "b"]


def test_files_that_differ_in_their_keys() -> None:
    files = [Path("k=1/f.csv"), Path("j=1/f.csv")]
    assert partition_columns(files, PathOptions()) == []
    with pytest.raises(IngestError, match=r"j=1/f\.csv: its folders have other keys"):
        partition_columns(files, PathOptions(partitioned=True))
    with pytest.raises(IngestError, match='no key "z"'):
        partition_columns(files[:1], PathOptions(partitioned=True, partition_strings=("z",)))


@pytest.mark.parametrize("value", ["a b/=%é", "", "..", "x~_-.9", "\n\\:*?"])
def test_folders_are_read_as_they_were_named(value: str) -> None:
    name = folder_name("k", value)
    assert "/" not in name
    (column,) = partition_columns([Path(name, "f.csv")], PathOptions())
    assert column.values[0].as_py() == value


def test_the_folder_of_null() -> None:
    assert folder_name("a b", None) == "a%20b=__HIVE_DEFAULT_PARTITION__"
