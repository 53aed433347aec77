"""Conditions as programs that scans run over packed columns: the seam to a device that has such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from bamquery.plan.expressions import Expression, Members


@dataclass(frozen=True, slots=True, eq=False)
class ConditionProgram:
    """A condition as a program of the native interpreter.

    Attributes:
        native: the program.
        columns: those of the condition's frame that are its inputs.
        types: of the inputs.
        note_failure: to be called where it could not compute some rows.
    """

    native: Any
    columns: tuple[int, ...]
    types: tuple[pa.DataType, ...]
    note_failure: Callable[[], None]


@runtime_checkable
class ProgramDevice(Protocol):
    """A device whose programs run in the host's native interpreter."""

    def condition_program(self, condition: Expression) -> ConditionProgram | None:
        """The condition's program; None where it has none that reads nothing but columns."""
        ...

    def number_set(self, members: Members) -> Any:
        """A native set of them; None where they are no whole numbers."""
        ...
