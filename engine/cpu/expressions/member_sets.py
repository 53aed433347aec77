"""Whether values are among many: numbers by a set of theirs, others by hashes."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.comparisons import is_in_set
from bamquery.engine.cpu.kernels import Column, from_buffer, stored_values, valid_rows
from bamquery.plan.expressions import Members

_sets: WeakKeyDictionary[Members, native.NumberSet | None] = WeakKeyDictionary()


def is_member(column: Column, members: Members) -> Column:
    """Whether each value of a column of the members' type is one of them; null where it is null."""
    numbers = number_set(members)
    if numbers is None:
        return is_in_set(column, members.values)
    bits: NDArray[np.uint8] = numbers.contains(stored_values(column))
    return from_buffer(pa.py_buffer(bits.data), len(column), pa.bool_(), valid_rows(column))


def number_set(members: Members) -> native.NumberSet | None:
    """The set, made once; None where members are no whole numbers of up to 64 bits."""
    if members not in _sets:
        _sets[members] = _make_set(members)
    return _sets[members]


def _make_set(members: Members) -> native.NumberSet | None:
    kind = members.type
    if not pa.types.is_integer(kind) and not pa.types.is_temporal(kind):
        return None
    present: Any = pc.drop_null(members.values)
    return native.NumberSet(stored_values(present))
