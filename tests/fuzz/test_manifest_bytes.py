"""Manifests with any bytes: right, or an error, and never a crash; also where the checksum fits."""

import base64
import json
import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery._native import crc32c
from bamquery.errors import BamQueryError
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.tables.manifest import Manifest, fragment_id
from tests.selection.effort import effort

PATH = Path("/nowhere/tables/t/manifests/00000002.json")
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.timestamp("us", "Europe/Berlin")),
        ("c", pa.dictionary(pa.int16(), pa.large_string())),
        ("d", pa.decimal128(10, 2)),
    ]
)
ENTRIES = tuple(FragmentEntry(fragment_id(7, n), 1000 + n, 9000, 700, 300, 60, n) for n in range(3))
MANIFEST = Manifest(2, "T", "create", datetime(2026, 1, 1, tzinfo=UTC), SCHEMA, ENTRIES)
GOOD = MANIFEST.to_bytes()
COVERED = GOOD[: -len(',\n "crc32c": "00000000"\n}\n')]


def seal(covered: bytes) -> bytes:
    return covered + b',\n "crc32c": "%08x"\n}\n' % crc32c(covered)


def parse(data: bytes) -> Manifest | None:
    """The manifest, or None for an error that a user is told about; anything else is a failure."""
    try:
        return Manifest.from_bytes(data, PATH)
    except BamQueryError as error:
        message = str(error)
    assert str(PATH) in message
    return None


def test_the_unharmed_manifest_is_read():
    assert parse(seal(COVERED)) == MANIFEST


def mutate(data: bytes, luck: random.Random) -> bytes:
    """A few random edits of the kind that files and fuzzers make."""
    changed = bytearray(data)
    for _ in range(luck.randint(1, 4)):
        at = luck.randrange(len(changed) + 1)
        match luck.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([luck.randrange(256)])
            case 1:
                del changed[at : at + luck.randint(1, 40)]
            case 2:
                changed[at:at] = luck.randbytes(luck.randint(1, 8))
            case 3:
                start = luck.randrange(len(changed) + 1)
                changed[at:at] = changed[start : start + luck.randint(1, 200)]
            case 4:
                changed[at : at + 1] = luck.choice(
                    [b"0", b"9", b"-", b'"', b"[", b"}", b"e9", b"null", b"\\u"]
                )
            case 5:
                del changed[at:]
    return bytes(changed)


@pytest.mark.parametrize("seed", range(20))
def test_mutations_under_the_old_checksum_are_all_refused(seed):
    luck = random.Random(seed)
    for _ in range(200):
        data = mutate(GOOD, luck)
        assert data == GOOD or parse(data) is None


def mutations(seed: int, count: int) -> None:
    luck = random.Random(seed)
    for _ in range(count):
        found = parse(seal(mutate(COVERED, luck)))
        if found is not None:  # an edit that leaves a manifest leaves a whole one
            assert found.version == 2
            assert found.table.casefold() == "t"
            assert found.rows == sum(entry.rows for entry in found.fragments)


@pytest.mark.parametrize("seed", range(20))
def test_mutations_under_a_right_checksum_are_read_or_refused(seed):
    mutations(seed, 200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1050))
def test_many_mutations_under_a_right_checksum_are_read_or_refused(seed):
    mutations(seed, 10_000)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_schemas_are_read_or_refused(seed):
    """Bytes behind base64, where random edits of the text seldom reach."""
    luck = random.Random(seed)
    members = json.loads(GOOD)
    del members["crc32c"]
    schema = bytearray(base64.b64decode(members["schema"]))
    for _ in range(300):
        changed = bytearray(schema)
        for _ in range(luck.randint(1, 6)):
            changed[luck.randrange(len(changed))] = luck.choice([0, 1, 0x7F, 0x80, 0xFF, luck.randrange(256)])
        members["schema"] = base64.b64encode(bytes(changed)).decode()
        parse(seal(json.dumps(members, indent=1).encode()[: -len("\n}")]))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.long
@settings(max_examples=effort(100, 5000), deadline=None)
@given(st.sampled_from(sorted(set(json.loads(GOOD)) - {"crc32c"})), values)
def test_any_json_in_any_member_is_read_or_refused(name, value):
    members = json.loads(GOOD)
    del members["crc32c"]
    members[name] = value
    parse(seal(json.dumps(members, indent=1).encode()[: -len("\n}")]))


@pytest.mark.long
@settings(max_examples=effort(100, 5000), deadline=None)
@given(
    st.sampled_from(
        ["id", "rows", "data_bytes", "vectors_bytes", "vectors_head", "vectors_tail", "vectors_crc"]
    ),
    values,
)
def test_any_json_in_any_member_of_a_fragment_is_read_or_refused(name, value):
    members = json.loads(GOOD)
    del members["crc32c"]
    members["fragments"][1][name] = value
    parse(seal(json.dumps(members, indent=1).encode()[: -len("\n}")]))


@pytest.mark.long
@settings(max_examples=effort(100, 5000), deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data):
    assert parse(data) is None
    assert parse(seal(data)) is None
