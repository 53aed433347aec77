"""One finds one's way: no folder has too many siblings, and each room's README says what goes through it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

import pytest

from tests.docs.blocks import REPOSITORY
from tests.docs.prose import tracked

SIBLINGS = 25
ROOMS = ("bamquery", "driver", "engine", "storage")
FOLDERS = (*ROOMS, "queries", "tests")
LINES = 40
NO_SIBLINGS = {"README.md", "__init__.py"}


def folders(paths: frozenset[str], tops: tuple[str, ...]) -> dict[str, set[str]]:
    """Names in each folder below some; links, which are doors to other rooms, are no siblings there."""
    found = defaultdict(set)
    for path in paths:
        names = PurePosixPath(path).parts
        if names[0] in tops and len(names) > 1 and not (REPOSITORY / path).is_symlink():
            for depth in range(1, len(names)):
                found["/".join(names[:depth])].add(names[depth])
    return {folder: names - NO_SIBLINGS for folder, names in found.items()}


TREE = folders(tracked(), FOLDERS)


@pytest.mark.parametrize("folder", sorted(TREE))
def test_siblings_are_few(folder: str) -> None:
    names = TREE[folder]
    assert len(names) <= SIBLINGS, f"{folder} has {len(names)}: make a room of those that belong together"


@pytest.mark.parametrize("room", [folder for folder in sorted(TREE) if folder.split("/")[0] in ROOMS])
def test_a_room_says_what_goes_through_it(room: str) -> None:
    readme = REPOSITORY / room / "README.md"
    assert readme.exists(), "a room has a README of some ten lines"
    text = readme.read_text("utf-8")
    assert {head for head in ("In:", "Out:", "May import:") if f"**{head}**" not in text} == set()
    assert text.count("\n") <= LINES, "details belong into the rooms within"


def test_folders_are_counted_with_those_within() -> None:
    paths = frozenset(
        {"engine/a.py", "engine/__init__.py", "engine/b/c.py", "docs/x.md", "engine/b/README.md"}
    )
    assert folders(paths, ("engine",)) == {"engine": {"a.py", "b"}, "engine/b": {"c.py"}}
