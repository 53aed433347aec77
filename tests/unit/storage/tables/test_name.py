import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.errors import CatalogError
from bamquery.storage.tables.name import decode, encode
from bamquery.text.identifiers import fold_case
from tests.selection.effort import effort


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("trips", "trips"),
        ("Trips_2020-01", "trips_2020-01"),
        ("a b", "a%20b"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("../etc", "%2E%2E%2Fetc"),
        ("~", "%7E"),
        ("Ä", "%C3%A4"),
        ("nul\0byte", "nul%00byte"),
        ("%41", "%2541"),
    ],
)
def test_names_become_plain_folder_names(name, folder):
    assert encode(name) == folder
    assert decode(folder) == fold_case(name)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_name_survives_and_only_equal_names_share_a_folder(name):
    folder = encode(name)
    assert folder.isascii()
    assert not set(folder) & set("/\0.")
    assert decode(folder) == fold_case(name)
    assert encode(fold_case(name)) == folder


@pytest.mark.long
def test_every_character_survives():
    # All of the plane that has what cases and widths differ in, and of the other ones some, or all.
    for point in [*range(1, 0x10000), *range(0x10000, sys.maxunicode + 1, effort(31, 1))]:
        if not 0xD800 <= point < 0xE000:
            assert decode(encode(chr(point))) == fold_case(chr(point))


def test_names_that_cannot_be_are_refused():
    with pytest.raises(CatalogError, match="not empty"):
        encode("")
    with pytest.raises(CatalogError, match="Unicode"):
        encode("\ud800")
    assert len(encode("x" * 240)) == 240
    with pytest.raises(CatalogError, match="241 bytes"):
        encode("x" * 241)
    with pytest.raises(CatalogError, match="too long"):
        encode("漢" * 30)


@pytest.mark.parametrize(
    "folder", ["", "Trips", "a b", "..", "lost+found", "%41", "%c3%a4", "%C3", "%", "%ZZ", "x" * 241]
)
def test_folders_of_others_are_no_tables(folder):
    assert decode(folder) is None
