"""From what a user writes (paths, patterns, lists of both) to files, in natural order."""

from __future__ import annotations

import heapq
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bamquery.errors import IngestError
from bamquery.statement_context.cancellation import check_each
from bamquery.storage.database.file_access import FileAccess
from bamquery.text.identifiers import nearest

_URL = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
_PATTERN = re.compile(r"[*?\[]")
_RUN: Final = 1 << 13
"""Files that are sorted without a look at whether to go on."""
EVERYTHING: Final = FileAccess()
_LIKELY_SUFFIXES = {".parquet", ".csv", ".gz", ".zst", ".tsv", ".json", ".ndjson", ".arrow", ".feather"}


def _go_on() -> None:
    pass


def expand(
    what: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    access: FileAccess = EVERYTHING,
    check: Callable[[], None] = _go_on,
) -> list[Path]:
    """The files that `what` names: a path, a pattern (`*`, `?`, `[…]`, `**`), or a list of them in its order.

    Files that a pattern matches come in natural order, `trips_2.csv` before `trips_10.csv`. A `~` is the home
    folder. A file whose name looks like a pattern is taken by its name. `check` is called before each file
    that is looked at; what it raises ends that.

    Raises:
        IngestError: nothing matches (names the nearest file), a folder (names the pattern to use), a URL.
        AccessError: a file that `access` does not let be read; known before anything is looked for.
    """
    if isinstance(what, (str, os.PathLike)):
        return _expand_one(os.fspath(what), access, check)
    files = [file for one in what for file in _expand_one(os.fspath(one), access, check)]
    if not files:
        raise IngestError("the list of files is empty: name at least one")
    return files


def is_url(text: str) -> bool:
    """Whether it begins as a URL does, such as s3:// or https://: no file of this machine."""
    return _URL.match(text) is not None


def is_pattern(text: str) -> bool:
    """Whether it has `*`, `?` or `[…]`."""
    return _PATTERN.search(text) is not None


def natural_key(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Sorts runs of digits by their value, the rest as text."""
    pieces = re.split(r"(\d+)", str(path))
    return tuple((0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in pieces)


def _expand_one(text: str, access: FileAccess, check: Callable[[], None]) -> list[Path]:
    check()
    if not text:
        raise IngestError("the path is empty: name a file")
    if is_url(text):
        raise IngestError("is a URL, and only files of this machine can be read: download it first", text)
    pattern = Path(os.path.expanduser(text))  # a home that nobody has stays as it is written
    path = access.readable(pattern, text)
    if path.is_dir():
        raise IngestError(_folder_hint(path), path)
    if path.exists():
        if not path.is_file():
            raise IngestError(
                "is a pipe or device, and files are read more than once: copy it to a file first", path
            )
        return [path]
    if not is_pattern(text):
        hint = _nearest_hint(path) if access.lists(path.parent) else ""
        raise IngestError(f"no such file{hint}", path)
    access.check_pattern(pattern, text, is_pattern)
    from bamquery.storage.ingest.sources.path_patterns import matching_paths  # noqa: PLC0415 (few name patterns)

    def look(place: str) -> None:
        check()
        access.check_match(Path(place), text)

    files = []
    for found in check_each(dict.fromkeys(matching_paths(pattern, look))):
        match = access.readable(Path(found), text)
        if not match.is_dir():
            files.append(match)
    files = _sort_naturally(files)
    if not files:
        raise IngestError(f"no file matches this pattern{_nearest_hint(path)}", path)
    return files


def _sort_naturally(files: Sequence[Path]) -> list[Path]:
    """By `natural_key`; runs are sorted, and then merged with a look at the statement before each file."""
    keyed = [(natural_key(file), file) for file in check_each(files)]
    runs = [sorted(keyed[first : first + _RUN]) for first in check_each(range(0, len(keyed), _RUN))]
    return [file for _, file in check_each(heapq.merge(*runs))]


def _folder_hint(folder: Path) -> str:
    """The pattern for the format that most of the folder's files seem to have."""
    suffixes = Counter(file.suffix for file in _visible(folder) if file.suffix in _LIKELY_SUFFIXES)
    suffix = suffixes.most_common(1)[0][0] if suffixes else ".parquet"
    return f'is a folder: name its files with a pattern such as "{folder / f"*{suffix}"}"'


def _visible(folder: Path) -> Iterator[Path]:
    """What no one hid: the others are drafts of files that are being written, for one."""
    return (entry for entry in folder.iterdir() if not entry.name.startswith("."))


def _nearest_hint(path: Path) -> str:
    """The file that was most likely meant, or the folder that is missing."""
    folder = path.parent
    if is_pattern(str(folder)):
        return ""
    if not folder.is_dir():
        return f": there is no folder {folder}"
    try:
        names = sorted(entry.name for entry in _visible(folder) if entry.is_file())
    except OSError:
        return ""
    if not names:
        return f": the folder {folder} has no files"
    found = nearest(_PATTERN.sub("", path.name), names)
    if found is not None:
        return f'. Did you mean "{folder / found}"?'
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"; the folder has {shown}"
