"""Files that are there once all of them is: written under another name, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bamquery.errors import StorageError


@contextmanager
def whole_file(target: Path, name: Path | None = None) -> Iterator[BinaryIO]:
    """A stream to write the file by; what was there before stays until the end, or where that is not reached.

    Devices and pipes are written in place. Errors call it `name`, where that is not `target`.

    Raises:
        StorageError: it cannot be written.
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
        if not in_place:
            draft.replace(target)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise StorageError(f"the output cannot be written: {error.strerror or error}", name) from error
    finally:
        if not in_place:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
