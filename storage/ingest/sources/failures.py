"""What pyarrow and the operating system raise, in one line that a user can act on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery.errors import IngestError

READ_ERRORS: Final = (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError)
"""Everything that reading a bad file through pyarrow was seen to raise."""


def reason(error: BaseException) -> str:
    """The first line of an error's text; Arrow adds details and stacks that name its own sources."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(error).__name__


def unreadable(path: Path, error: BaseException, place: str = "") -> IngestError:
    """The file, where in it, and why."""
    where = f"{place}: " if place else ""
    return IngestError(f"{where}cannot be read: {reason(error)}", path)
