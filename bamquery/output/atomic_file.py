"""Files that are there once all of them is: written under another name, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bamquery.errors import StorageError


@contextmanager
def whole_file(target: Path, name: Path | None = None, *, replace: bool = True) -> Iterator[BinaryIO]:
    """A stream to write the file by; what was there before stays until the end, or where that is not reached.

    Devices and pipes are written in place. Errors call it `name`, where that is not `target`. Without
    `replace`, a file that is there by the end stays.

    Raises:
        StorageError: it cannot be written.
        FileExistsError: it may not be replaced, and is there; it may have come while it was being written.
    """
    name = name or target
    in_place = target.exists() and not target.is_file()
    if target.is_dir():
        raise StorageError("is a folder: name a file", name)
    draft = (
        target if in_place else target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    )
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            if not in_place:
                os.fsync(file.fileno())
        if replace and not in_place:
            draft.replace(target)
        elif not in_place:
            _rename_new(draft, target)
    except OSError as error:
        if isinstance(error, BrokenPipeError) or (not replace and isinstance(error, FileExistsError)):
            raise
        raise StorageError(f"the output cannot be written: {error.strerror or error}", name) from error
    finally:
        if not in_place:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _rename_new(draft: Path, target: Path) -> None:
    """In one step where the file system has hard links.

    Raises:
        FileExistsError: there is something of the name.
    """
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        draft.rename(target)
