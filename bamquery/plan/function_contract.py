"""What a device owes of a function that plans call, and what it may refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

NO_INTERVALS: Final = "libcudf has no intervals of months"
"""Why a GPU refuses what is of intervals."""


@dataclass(frozen=True, slots=True)
class FunctionContract:
    """A function of plans.

    Attributes:
        text: the types of arguments and answer, and the errors.
        strict: of scalar functions: null where an argument that differs from row to row is null.
        cuda_refusal: why a GPU cannot compute it as the CPU does; empty where it can.
        cuda_constants_from: the first argument that must be a literal on a GPU; None where none must.
        row_by_row: whether the CPU calls Python for every value, which takes far longer than a kernel.
    """

    text: str
    strict: bool = field(default=True, kw_only=True)
    cuda_refusal: str = field(default="", kw_only=True)
    cuda_constants_from: int | None = field(default=None, kw_only=True)
    row_by_row: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AggregateContract(FunctionContract):
    """An aggregate of plans.

    Attributes:
        distinct: whether repeated arguments change the answer, so that DISTINCT means something.
        ordered: whether the order of rows does, whatever the arguments' types.
    """

    distinct: bool = field(default=True, kw_only=True)
    ordered: bool = field(default=False, kw_only=True)
