"""A text in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bamquery.errors import BamQueryError

_VI: Final = frozenset({"vi", "vim", "nvim", "view", "gvim"})


def editor_command(environment: Mapping[str, str] = os.environ) -> str:
    """`$VISUAL`, else `$EDITOR`, else `vi`."""
    return environment.get("VISUAL") or environment.get("EDITOR") or "vi"


def prefers_vi(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user has chosen a vi as the editor."""
    chosen = environment.get("VISUAL") or environment.get("EDITOR") or ""
    return Path(chosen.partition(" ")[0]).name in _VI


def edit_text(text: str) -> str:
    """What the text became in the editor; a file that only the user can read holds it meanwhile.

    Raises:
        BamQueryError: the editor cannot be run or fails, or what it saved is no text.
    """
    command = editor_command()
    with tempfile.TemporaryDirectory(prefix="bamquery-") as folder:
        file = Path(folder) / "statement.sql"
        file.write_text(text + "\n", encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(command), str(file)])
        except (OSError, ValueError) as error:
            raise BamQueryError(f"the editor {command!r} cannot be run: {error}; set EDITOR") from None
        if done.returncode != 0:
            raise BamQueryError(
                f"the editor {command!r} failed with status {done.returncode}: nothing changed"
            )
        try:
            return file.read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BamQueryError(f"what the editor saved cannot be read: {error}") from None
