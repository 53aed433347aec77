"""Where a database is that a user names, and whether a new one was meant where there is none."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bamquery.errors import StorageError
from bamquery.storage.database.folder import MARKER
from bamquery.text.identifiers import fold_case, nearest, suggestion

MEMORY: Final = ":memory:"
_SHORTEST: Final = 4
"""Shorter names are all alike: `db1` is no slip for `db2`."""


def resolve_database_path(path: str | os.PathLike[str], create: bool | None) -> tuple[str | Path, bool]:
    """The folder to open, `~` expanded, and whether a database that stays is to be made there.

    Args:
        path: as the user names it, or `:memory:`.
        create: True makes one where there is none, False never; None makes one unless its name looks like a
            slip for that of a database beside it.

    Raises:
        TypeError: it is no path.
        StorageError: there is no such database and none is to be made, or the folder around it is missing.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"path is a str or a pathlib.Path, not {type(path).__name__}")
    if text == MEMORY:
        return text, False  # made anew each time, which nobody need be told
    if not text:
        raise StorageError("the path is empty: name the database's folder, or . for this one")
    folder = Path(os.path.expanduser(text)).absolute()
    if "\0" in text:
        raise StorageError("a path has no character NUL: name another folder", folder)
    try:
        return _locate(folder, create)
    except OSError as error:  # of a folder that may not be searched, or too long a name
        raise StorageError(f"cannot open the database: {error.strerror or error}", folder) from error


def _locate(folder: Path, create: bool | None) -> tuple[Path, bool]:
    if os.path.lexists(folder):  # another thing than a database is the storage's to refuse
        made = create is not False and folder.is_dir() and not (folder / MARKER).exists()
        return folder, made
    _require_parent(folder)
    similar = None if create else _similar(folder)
    if similar is not None:
        way_out = "" if create is False else ", or pass create=True to make a new one"
        raise StorageError(f'there is no database, but "{similar}" beside it: open that{way_out}', folder)
    if create is False:
        raise StorageError("there is no database, and create=False makes none", folder)
    return folder, True


def _require_parent(folder: Path) -> None:
    """See that the folder around it exists; names the nearest one where it does not."""
    parent = folder.parent
    if parent.is_dir():
        return
    if os.path.lexists(parent):
        raise StorageError(f"{parent} is a file, so no database can be in it: name a folder", folder)
    missing = parent
    while not missing.parent.is_dir():
        missing = missing.parent
    hint = suggestion(missing.name, _names(missing.parent, lambda entry: entry.is_dir()))
    raise StorageError(
        f"there is no folder {missing} to make a database in.{hint} Make it first: mkdir -p {parent}", folder
    )


def _similar(folder: Path) -> str | None:
    """A database beside the folder, of which its name is likely a misspelling."""
    names = _names(folder.parent, lambda entry: (Path(entry.path) / MARKER).is_file())
    slips = [name for name in names if _is_slip(fold_case(folder.name), fold_case(name))]
    return nearest(folder.name, slips) or next(iter(sorted(slips)), None)


def _names(folder: Path, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if wanted(entry)]
    except OSError:
        return []  # a folder that cannot be listed has no names to offer


def _is_slip(name: str, other: str) -> bool:
    """Whether two names differ as a slip of the finger makes them differ: one letter, or the suffix.

    Names in a row (`sales_2023` and `sales_2024`, `part_a` and `part_b`) differ on purpose.
    """
    (stem, suffix), (other_stem, other_suffix) = os.path.splitext(name), os.path.splitext(other)
    if stem == other_stem:
        return True
    if suffix != other_suffix or min(len(stem), len(other_stem)) < _SHORTEST:
        return False
    words, others = re.split(r"[\W_]+|(?<=\D)(?=\d)", stem), re.split(r"[\W_]+|(?<=\D)(?=\d)", other_stem)
    if len(words) == len(others):
        pairs = [(word, with_) for word, with_ in zip(words, others, strict=True) if word != with_]
        if len(pairs) == 1 and max(len(part) for part in pairs[0]) == 1:
            return False
    return _one_letter_apart(stem, other_stem)


def _one_letter_apart(name: str, other: str) -> bool:
    """One letter more, less or another one, or two neighbours swapped; digits differ on purpose."""
    start = _common_prefix_length(name, other)
    end = _common_prefix_length(name[start:][::-1], other[start:][::-1])
    left, right = name[start : len(name) - end], other[start : len(other) - end]
    if any(character.isdigit() for character in left + right):
        return False
    return max(len(left), len(right)) == 1 or (len(left) == 2 and left == right[::-1])


def _common_prefix_length(name: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    return next(
        (place for place, (a, b) in enumerate(zip(name, other, strict=False)) if a != b),
        min(len(name), len(other)),
    )
