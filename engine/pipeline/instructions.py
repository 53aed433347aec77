"""What programs are made of: see `engine/native/pipeline/instruction.hpp`, which says what each one does."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import pyarrow as pa

from bamquery.plan.expressions import Expression


class Operation(enum.IntEnum):
    """What an instruction does; the numbers are those of the native interpreter."""

    LOAD = 0
    CONSTANT = 1
    CONSTANT_FLAG = 2
    ADD = 3
    SUBTRACT = 4
    MULTIPLY = 5
    REQUIRE_RANGE = 6
    DIVIDE_ROUNDING = 7
    QUOTIENT = 8
    REMAINDER = 9
    ABSOLUTE = 10
    ADD_DOUBLES = 11
    SUBTRACT_DOUBLES = 12
    MULTIPLY_DOUBLES = 13
    DIVIDE_DOUBLES = 14
    NEGATE_DOUBLES = 15
    ABSOLUTE_DOUBLES = 16
    TO_DOUBLE = 17
    DECIMAL_TO_DOUBLE = 18
    EQUAL = 19
    NOT_EQUAL = 20
    LESS = 21
    LESS_EQUAL = 22
    EQUAL_DOUBLES = 23
    NOT_EQUAL_DOUBLES = 24
    LESS_DOUBLES = 25
    LESS_EQUAL_DOUBLES = 26
    AND = 27
    OR = 28
    NOT = 29
    IS_NULL = 30
    IS_NOT_NULL = 31
    CHOOSE = 32
    CHOOSE_FLAG = 33
    COALESCE = 34
    FLAG_TO_WORD = 35
    YEAR = 36
    MONTH = 37
    DAY = 38
    FLOOR_DIVIDE = 39
    FLOOR_REMAINDER = 40
    DAY_OF_YEAR = 41


class AggregateKind(enum.IntEnum):
    """What an aggregate gathers; the numbers are those of the native interpreter."""

    COUNT = 0
    SUM = 1
    SUM_DOUBLES = 2
    LEAST = 3
    GREATEST = 4
    LEAST_DOUBLE = 5
    GREATEST_DOUBLE = 6


@dataclass(frozen=True, slots=True)
class Instruction:
    """Operands to a register.

    Attributes:
        out: number of the register that is written.
        operands: numbers of registers that are read, at most three.
        immediate: a constant of the instruction, and `extra` another one.
    """

    operation: Operation
    out: int
    operands: tuple[int, ...] = ()
    immediate: int = 0
    extra: int = 0


@dataclass(frozen=True, slots=True)
class AggregateStep:
    """An aggregate of register `argument` (None: of rows) where flag `filter` is true (None: of all rows)."""

    kind: AggregateKind
    argument: int | None
    filter: int | None


@dataclass(frozen=True, slots=True)
class Input:
    """A column that a program loads: an expression over the rows, most often a column of theirs."""

    expression: Expression
    type: pa.DataType


@dataclass(slots=True)
class Program:
    """Instructions in order, and what is made of their registers.

    Attributes:
        inputs: columns by number.
        outputs: registers that are written as columns.
    """

    steps: list[Instruction] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    aggregates: list[AggregateStep] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
