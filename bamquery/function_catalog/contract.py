"""What a device owes of a function that plans call, and what it may refuse."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, Self, TypeAlias

NO_INTERVALS: Final = "libcudf has no intervals of months"
"""Why a GPU refuses what is of intervals."""

RowByRow: TypeAlias = Literal["never", "always", "columns", "hugeint"]
"""Never, always, where an argument after the first is a column, or of HUGEINT."""


@dataclass(frozen=True, slots=True)
class FunctionContract:
    """A function of plans.

    Attributes:
        text: of types, nulls and errors what its signatures and description leave open.
        strict: of scalar functions: null where an argument that differs from row to row is null.
        cuda_refusal: why a GPU cannot compute it as the CPU does; empty where it can.
        cuda_constants_from: the first argument that must be a literal on a GPU; None where none must.
        row_by_row: when the CPU calls Python for every row, which takes far longer than a kernel.
    """

    text: str = ""
    strict: bool = field(default=True, kw_only=True)
    cuda_refusal: str = field(default="", kw_only=True)
    cuda_constants_from: int | None = field(default=None, kw_only=True)
    row_by_row: RowByRow = field(default="never", kw_only=True)

    def with_text(self, text: str) -> Self:
        """The contract with that text."""
        return replace(self, text=text)


@dataclass(frozen=True, slots=True)
class AggregateContract(FunctionContract):
    """An aggregate of plans.

    Attributes:
        distinct: whether repeated arguments change the answer, so that DISTINCT means something.
        ordered: whether the order of rows does, whatever the arguments' types.
        rounds: whether it rounds floats from row to row, so that the order of theirs does.
        holds_values: whether its state grows with the rows.
    """

    distinct: bool = field(default=True, kw_only=True)
    ordered: bool = field(default=False, kw_only=True)
    rounds: bool = field(default=False, kw_only=True)
    holds_values: bool = field(default=False, kw_only=True)


NULLS_COUNT: Final = FunctionContract(strict=False)
CONSTANTS: Final = FunctionContract(cuda_constants_from=1, row_by_row="columns")
CPU_ONLY: Final = FunctionContract(cuda_refusal="libcudf has no such function")
PYTHON: Final = replace(CPU_ONLY, row_by_row="always")
WITH_ERRORS: Final = FunctionContract(cuda_refusal="it has errors that libcudf would pass over")
OF_INTERVALS: Final = FunctionContract(cuda_refusal=NO_INTERVALS)
