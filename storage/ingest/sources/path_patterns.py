"""Files that a pattern matches. Python's own glob cannot be stopped before it finds something."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from bamquery.statement_context.cancellation import check_each
from bamquery.storage.ingest.sources.paths import is_pattern


def matching_paths(pattern: Path, check: Callable[[str], None]) -> Iterator[str]:
    """Files and folders whose paths match a pattern: `*`, `?` and `[…]` within a name, `**` for any folders.

    Names that begin with a point are matched by patterns that do. What cannot be listed has nothing. Some may
    come twice. `check` is called with each folder, from the one where the first part that is a pattern is
    looked for, each match and each link before anything is looked for there; what it raises ends the search.
    """
    parts = pattern.parts
    fixed = list(takewhile(lambda part: not is_pattern(part), parts))
    return _walk(os.path.join("", *fixed), parts[len(fixed) :], check)


def _walk(folder: str, parts: Sequence[str], check: Callable[[str], None]) -> Iterator[str]:
    check(folder)
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if not is_pattern(part):
        path = os.path.join(folder, part)
        if rest or os.path.lexists(path):
            yield from _walk(path, rest, check)
        return
    entries = _entries(folder)
    if part == "**":
        yield from _walk(folder, rest, check) if rest else ()
        for entry in check_each(entries):
            path = os.path.join(folder, entry.name)
            if entry.name.startswith("."):
                continue
            if _is_folder(entry, path, check):
                yield from _walk(path, parts, check)
            elif not rest:
                yield path
        return
    matches = re.compile(fnmatch.translate(part)).match
    for entry in check_each(entries):
        path = os.path.join(folder, entry.name)
        is_shown = part.startswith(".") or not entry.name.startswith(".")
        if is_shown and matches(entry.name) and (not rest or _is_folder(entry, path, check)):
            yield from _walk(path, rest, check)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as entries:
            return list(check_each(entries))
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str], path: str, check: Callable[[str], None]) -> bool:
    """Whether it is a folder, also by a link, which is checked first: what it leads to may not be told."""
    if entry.is_symlink():
        check(path)
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in circles
        return False
