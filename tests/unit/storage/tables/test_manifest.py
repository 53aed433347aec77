import base64
import json
import os
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from bamquery._native import crc32c
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.locks import MAX_VERSION
from bamquery.storage.files.regular_file import read_small_file
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.tables.known_manifests import read_manifest
from bamquery.storage.tables.manifest import (
    FORMAT_VERSION,
    KNOWN_VERSIONS,
    MAX_FRAGMENT_ROWS,
    Manifest,
    file_name,
    fragment_id,
    parse_file_name,
    writer_token,
)

SCHEMA = pa.schema([("a", pa.int64()), ("Ä", pa.dictionary(pa.int32(), pa.large_string()))])
ENTRIES = (
    FragmentEntry(fragment_id(0xABC, 0), 1024, 8192, 512, 200, 56, 7),
    FragmentEntry(fragment_id(0xABC, 1), 1, 8192, 512, 200, 56, 2**32 - 1),
)
MANIFEST = Manifest(3, 'My "Trips"', "append", datetime(2026, 1, 2, 3, 4, 5, 6, UTC), SCHEMA, ENTRIES)


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "my%20%22trips%22" / "manifests"
    folder.mkdir(parents=True)
    return folder / "00000003.json"


def sealed(members):
    """A manifest's bytes with any members and the right checksum."""
    covered = json.dumps(members, indent=1).encode()[: -len("\n}")]
    return covered + b',\n "crc32c": "%08x"\n}\n' % crc32c(covered)


def members(**changes):
    return {**{k: v for k, v in json.loads(MANIFEST.to_bytes()).items() if k != "crc32c"}, **changes}


def test_what_is_written_is_read_back(path):
    path.write_bytes(MANIFEST.to_bytes())
    assert read_manifest(path) == MANIFEST
    assert MANIFEST.rows == 1025
    assert sealed(members()) == MANIFEST.to_bytes()


def test_it_is_json_that_anybody_can_read():
    data = json.loads(MANIFEST.to_bytes())
    assert data["table"] == 'My "Trips"'
    assert data["fragments"][0]["rows"] == 1024
    assert pa.ipc.read_schema(pa.py_buffer(base64.b64decode(data["schema"]))) == SCHEMA


def test_a_dropped_table_has_neither_schema_nor_fragments(path):
    dropped = Manifest(3, 'My "Trips"', "drop", MANIFEST.created_at, None, ())
    assert Manifest.from_bytes(dropped.to_bytes(), path) == dropped
    assert dropped.dropped
    assert dropped.rows == 0


def test_an_empty_table_is_a_version_like_any_other(path):
    empty = Manifest(3, 'My "Trips"', "create", MANIFEST.created_at, SCHEMA, ())
    assert Manifest.from_bytes(empty.to_bytes(), path) == empty


def test_every_flipped_bit_is_noticed(path):
    data = MANIFEST.to_bytes()
    for position in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            with pytest.raises(CorruptionError, match=r"00000003\.json: damaged") as caught:
                Manifest.from_bytes(bytes(changed), path)
            assert caught.value.path == path


def test_damage_says_what_can_be_done(path):
    folder = path.parents[1]
    with pytest.raises(CorruptionError) as caught:
        Manifest.from_bytes(b"", path)
    assert str(caught.value).endswith(
        f"put a copy of it back; or go back to the version before it, if {path.parent} has one, by removing "
        f"this file and 00000003.committed beside it; or give the table up: remove the folder {folder} and "
        f"the file {folder.parent.parent / 'committed' / folder.name}"
    )


def test_a_fragment_of_the_most_rows(path):
    entries = [{**ENTRY, "rows": MAX_FRAGMENT_ROWS}]
    assert Manifest.from_bytes(sealed(members(fragments=entries, rows=MAX_FRAGMENT_ROWS)), path).rows


def test_every_truncation_is_noticed(path):
    data = MANIFEST.to_bytes()
    for size in range(len(data)):
        with pytest.raises(CorruptionError, match="damaged"):
            Manifest.from_bytes(data[:size], path)
    with pytest.raises(CorruptionError, match="damaged"):
        Manifest.from_bytes(data + b"\n", path)


ENTRY = members()["fragments"][0]


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something else"},
        {"format": None},
        {"format_version": 0},
        {"format_version": "1"},
        {"format_version": True},
        {"version": 4},
        {"version": 3.0},
        {"version": -1},
        {"version": 10**30},
        {"table": ""},
        {"table": "other"},
        {"table": 5},
        {"table": "\ud800"},
        {"table": "../trips"},
        {"operation": "explode"},
        {"operation": ["append"]},
        {"operation": "drop"},
        {"operation": "drop", "fragments": [], "rows": 0},
        {"operation": "drop", "schema": None},
        {"operation": "drop", "schema": None, "fragments": [], "rows": 0, "columns": []},
        {"encoding": "gzip"},
        {"encoding": ["plain"]},
        {"created_at": "yesterday"},
        {"created_at": 0},
        {"schema": None},
        {"schema": 7},
        {"schema": "%%%"},
        {"schema": ""},
        {"schema": base64.b64encode(b"no schema at all").decode()},
        {"schema": base64.b64encode(pa.schema([]).serialize()).decode()},
        {"schema": base64.b64encode(pa.schema([("s", pa.string())]).serialize()).decode()},
        {"schema": base64.b64encode(pa.schema([("s", pa.struct([]))]).serialize()).decode()},
        {"schema": base64.b64encode(pa.schema([("a", pa.int8()), ("A", pa.int8())]).serialize()).decode()},
        {"rows": 1024},
        {"rows": -1},
        {"rows": "1025"},
        {"fragments": {}},
        {"fragments": None},
        {"fragments": [[]]},
        {"fragments": [ENTRY, ENTRY], "rows": 2048},
        {"fragments": [{**ENTRY, "id": "../../etc/passwd"}], "rows": 1024},
        {"fragments": [{**ENTRY, "id": "abc-0"}], "rows": 1024},
        {"fragments": [{**ENTRY, "id": ENTRY["id"] + "\n"}], "rows": 1024},
        {"fragments": [{**ENTRY, "rows": 0}], "rows": 0},
        {"fragments": [{**ENTRY, "rows": 1 << 40}], "rows": 1 << 40},
        {"fragments": [{**ENTRY, "rows": MAX_FRAGMENT_ROWS + 1}], "rows": MAX_FRAGMENT_ROWS + 1},
        {"fragments": [{**ENTRY, "data_bytes": -1}], "rows": 1024},
        {"fragments": [{**ENTRY, "vectors_crc": 1 << 32}], "rows": 1024},
        {"fragments": [{**ENTRY, "more": 1}], "rows": 1024},
        {"more": 1},
        {"operation": "rename", "origin": {"folder": "../other", "version": 1}},
        {"operation": "rename", "origin": {"folder": 5, "version": 1}},
        {"operation": "rename", "origin": {"folder": "other"}},
        {"operation": "rename", "origin": {"folder": "other", "version": 0}},
    ],
    ids=str,
)
def test_members_are_checked_even_under_a_right_checksum(path, changes):
    with pytest.raises(CorruptionError, match=r"00000003\.json: damaged"):
        Manifest.from_bytes(sealed(members(**changes)), path)


PLACE = {"folder": "other", "version": 1}
VIEW = {"sql": "SELECT 1", "columns": []}


@pytest.mark.parametrize(
    "changes",
    [{"origin": PLACE}, {"heir": PLACE}, {"view": VIEW}, {"operation": "view"}],
    ids=str,
)
def test_an_operation_has_its_members_and_no_others(path, changes):
    with pytest.raises(CorruptionError, match="does not go with its members"):
        Manifest.from_bytes(sealed(members(**changes)), path)


@pytest.mark.parametrize(
    "text",
    [b"{", b'{"a": 1', b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b'{"version": ' + b"9" * 5000, b"NaN"],
    ids=lambda text: text[:8].decode("latin1"),
)
def test_text_that_is_no_manifest(path, text):
    data = text + b',\n "crc32c": "%08x"\n}\n' % crc32c(text)
    with pytest.raises(CorruptionError, match="damaged"):
        Manifest.from_bytes(data, path)


def test_a_member_twice_is_not_a_matter_of_taste(path):
    covered = sealed(members())[: -len(',\n "crc32c": "00000000"\n}\n')] + b',\n "version": 3'
    with pytest.raises(CorruptionError, match="twice"):
        Manifest.from_bytes(covered + b',\n "crc32c": "%08x"\n}\n' % crc32c(covered), path)


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(1, "load it anew"), (KNOWN_VERSIONS[0] - 1, "load it anew"), (FORMAT_VERSION + 1, "upgrade")],
)
def test_another_format_is_no_damage(path, version, remedy):
    with pytest.raises(StorageError, match=remedy) as caught:
        Manifest.from_bytes(sealed(members(format_version=version, novelty=1)), path)
    assert not isinstance(caught.value, CorruptionError)


def test_another_versions_or_tables_manifest_is_refused(path):
    data = MANIFEST.to_bytes()
    with pytest.raises(CorruptionError, match="another version"):
        Manifest.from_bytes(data, path.with_name("00000004.json"))
    with pytest.raises(CorruptionError, match="belongs to table"):
        Manifest.from_bytes(data, path.parent.parent.with_name("other") / "manifests" / path.name)


def test_file_names():
    assert file_name(1) == "00000001.json"
    assert parse_file_name("00000001.json") == 1
    assert parse_file_name(file_name(123456789)) == 123456789
    assert parse_file_name(file_name(MAX_VERSION)) == MAX_VERSION
    assert parse_file_name(file_name(MAX_VERSION + 1)) is None
    for name in [
        "1.json",
        "00000000.json",
        "000000001.json",
        "00000001.json~",
        "0000000a.json",
        "9" * 30 + ".json",
    ]:
        assert parse_file_name(name) is None


def test_tokens_are_read_from_names():
    assert writer_token(fragment_id(2**60 - 1, 65536)) == 2**60 - 1
    assert writer_token("000000000000abc.3.tmp") == 0xABC
    for name in ["abc-0000", "00000001.json", "", "00000000000xabc-0"]:
        assert writer_token(name) is None


def test_only_regular_files_of_a_sane_size_are_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_small_file(tmp_path / "none", 10)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorruptionError, match="regular"):
        read_small_file(tmp_path / "pipe", 10)
    with pytest.raises(StorageError):
        read_small_file(tmp_path, 10)
    (tmp_path / "file").write_bytes(bytes(11))
    with pytest.raises(CorruptionError, match="at most 10"):
        read_small_file(tmp_path / "file", 10)
    assert read_small_file(tmp_path / "file", 11) == bytes(11)
