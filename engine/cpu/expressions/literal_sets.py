"""Long lists of literals after IN, made into a set once and not for every chunk."""

from __future__ import annotations

from typing import Final, cast

import pyarrow as pa

from bamquery.engine.cpu.kernels import as_column
from bamquery.plan.expressions import Call, Literal, Members

LONG: Final = 8
"""Members from which it is worth it."""
_KEPT: Final = 64

_sets: dict[int, tuple[Call, Members | None]] = {}
"""By the identity of expressions, which are held so that it stays theirs."""


def literal_set(call: Call) -> Members | None:
    """The members of `value IN (...)`, if all are literals, none is null, and equal ones have equal bits."""
    known = _sets.get(id(call))
    if known is not None and known[0] is call:
        return known[1]
    members = _members(call)
    if len(_sets) >= _KEPT:
        _sets.clear()
    _sets[id(call)] = (call, members)
    return members


def _members(call: Call) -> Members | None:
    value, *literals = call.arguments
    kind = value.type
    exact = (pa.types.is_integer, pa.types.is_temporal, pa.types.is_large_string, pa.types.is_decimal)
    if not any(test(kind) for test in exact):
        return None
    if not all(
        isinstance(one, Literal) and one.value.is_valid and one.value.type == kind for one in literals
    ):
        return None
    return Members(pa.concat_arrays([as_column(cast(Literal, one).value, 1) for one in literals]))
