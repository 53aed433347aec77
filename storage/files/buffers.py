"""Bytes of arrays and Arrow buffers, without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def view(buffer: Any) -> memoryview:
    """The bytes of a contiguous numpy array or an Arrow buffer; None is an empty one."""
    return memoryview(b"" if buffer is None else buffer).cast("B")


def concatenate_records(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays of one structured type end to end; numpy compares all members of all pieces, in Python."""
    kind = pieces[0].dtype
    return np.concatenate([piece.view(np.uint8) for piece in pieces]).view(kind)
