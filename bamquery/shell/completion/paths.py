"""Files whose names begin with what was typed."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from bamquery.shell.completion.ranking import Candidate

_DATA: Final = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".arrow", ".feather", ".gz", ".zst")
_MOST: Final = 500


def paths(typed: str, *, folders_only: bool = False) -> list[Candidate]:
    """Files and folders; of hidden ones those that are asked for by a dot. Data files come first.

    A folder that cannot be read has none.
    """
    folder, slash, beginning = typed.rpartition("/")
    place = os.path.expanduser(folder + slash) if slash else "."
    found: list[Candidate] = []
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            name = entry.name
            if not name.startswith(beginning) or (name.startswith(".") and not beginning.startswith(".")):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False
            if folders_only and not is_folder:
                continue
            if not name.isprintable():
                continue  # typing it would steer the terminal
            kind = 1 if is_folder else 0 if name.lower().endswith(_DATA) else 2
            shown = name + "/" * is_folder
            found.append(Candidate(folder + slash + shown, shown, "folder" if is_folder else "", kind))
            if len(found) >= _MOST:
                break
    return sorted(found, key=lambda one: (one.kind, one.name))
