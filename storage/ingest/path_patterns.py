"""Files that a pattern matches. Python's own glob cannot be stopped before it finds something."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from bamquery.storage.ingest.paths import is_pattern


def matching_paths(pattern: Path, check: Callable[[str], None]) -> Iterator[str]:
    """Files and folders whose paths match a pattern: `*`, `?` and `[…]` within a name, `**` for any folders.

    Names that begin with a point are matched by patterns that do. What cannot be listed has nothing. Some may
    come twice. `check` is called with each folder, from the one where the first part that is a pattern is
    looked for, and each match before anything is looked for there; what it raises ends the search.
    """
    parts = pattern.parts
    fixed = list(takewhile(lambda part: not is_pattern(part), parts))
    return _below(os.path.join("", *fixed), parts[len(fixed) :], check)


def _below(folder: str, parts: Sequence[str], check: Callable[[str], None]) -> Iterator[str]:
    check(folder)
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if not is_pattern(part):
        path = os.path.join(folder, part)
        if rest or os.path.lexists(path):
            yield from _below(path, rest, check)
        return
    entries = _entries(folder)
    if part == "**":
        yield from _below(folder, rest, check) if rest else ()
        for name, is_folder in entries:
            if not name.startswith(".") and is_folder:
                yield from _below(os.path.join(folder, name), parts, check)
            elif not name.startswith(".") and not rest:
                yield os.path.join(folder, name)
        return
    matches = re.compile(fnmatch.translate(part)).match
    for name, is_folder in entries:
        if matches(name) and (part.startswith(".") or not name.startswith(".")) and (is_folder or not rest):
            yield from _below(os.path.join(folder, name), rest, check)


def _entries(folder: str) -> list[tuple[str, bool]]:
    """What is in a folder, and whether it is one, also by a link."""
    try:
        with os.scandir(folder or ".") as entries:
            return [(entry.name, _is_folder(entry)) for entry in entries]
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in circles
        return False
