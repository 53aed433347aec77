"""The text of a program's instructions in CUDA C++: one line each, for one row.

Constants are parameters of the kernel, so that programs that differ in nothing else have one text, and are
compiled once. Nothing here needs a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.pipeline.instructions import Instruction, Operation, Program
from bamquery.storage.format.storable_types import value_kind

HEADER: Final = "engine/kernels/pipeline/cells.hpp"
"""What every kernel's text includes, from the package on."""

_LOADED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "int8": "signed char",
        "int16": "short",
        "int32": "int",
        "int64": "Word",
        "uint8": "unsigned char",
        "uint16": "unsigned short",
        "uint32": "unsigned",
        "int128": "Decimal",
        "float32": "Single",
        "float64": "Double",
    }
)
"""Kinds of values, and the types by which `registers.hpp` loads them."""

_CHECKED: Final = frozenset(
    {
        Operation.ADD,
        Operation.SUBTRACT,
        Operation.MULTIPLY,
        Operation.QUOTIENT,
        Operation.REMAINDER,
        Operation.ABSOLUTE,
        Operation.YEAR,
        Operation.MONTH,
        Operation.DAY,
        Operation.DAY_OF_YEAR,
    }
)
"""Operations that lose what does not fit."""
_FLAGS: Final = frozenset(
    {
        Operation.EQUAL,
        Operation.NOT_EQUAL,
        Operation.LESS,
        Operation.LESS_EQUAL,
        Operation.EQUAL_DOUBLES,
        Operation.NOT_EQUAL_DOUBLES,
        Operation.LESS_DOUBLES,
        Operation.LESS_EQUAL_DOUBLES,
        Operation.AND,
        Operation.OR,
        Operation.NOT,
        Operation.IS_NULL,
        Operation.IS_NOT_NULL,
        Operation.CHOOSE_FLAG,
        Operation.CONSTANT_FLAG,
    }
)
"""Operations whose registers are flags; loads may be, too."""
_NAMES: Final = MappingProxyType(
    {
        Operation.AND: "logical_and",
        Operation.OR: "logical_or",
        Operation.NOT: "logical_not",
        Operation.CHOOSE_FLAG: "choose",
    }
)
"""Functions that are not called what the operation is."""
_NULL_BY_VALUE: Final = frozenset({Operation.QUOTIENT, Operation.REMAINDER})
_NEVER_NULL: Final = frozenset({Operation.IS_NULL, Operation.IS_NOT_NULL})


@dataclass(frozen=True, slots=True)
class ProgramKernel:
    """A kernel called `program`.

    Attributes:
        text: its source.
        constants: words that it is given.
        nullable: for each output, whether it may have nulls.
    """

    text: str
    constants: tuple[int, ...]
    nullable: tuple[bool, ...]


class ProgramText:
    """A program over columns of which some have nulls.

    Attributes:
        lines: of the kernel's loop over rows: register n is `r<n>`, row `at` is loaded, `lost` is set where
            something does not fit.
        constants: words, as the kernel is given them.
    """

    def __init__(self, program: Program, nullable: Sequence[bool]) -> None:
        """`nullable`: of each input, whether it has nulls."""
        self._program = program
        self._nullable = tuple(nullable)
        self._nulls: dict[int, bool] = {}
        self.constants: list[int] = []
        self.lines = [self._line(step) for step in program.steps]

    def may_be_null(self, register: int) -> bool:
        """Whether some row of the register may be."""
        return self._nulls[register]

    def structures(self) -> str:
        """Types of the kernel's parameters `inputs` and `constants`."""
        inputs, constants = max(len(self._program.inputs), 1), len(pad_constants(self.constants))
        return (
            f"struct Inputs {{\n  Input column[{inputs}];\n}};\n"
            f"struct Constants {{\n  Word word[{constants}];\n}};\n"
        )

    def _line(self, step: Instruction) -> str:
        operation = step.operation
        given = [self._nulls[operand] for operand in step.operands]
        if operation is Operation.LOAD:
            nullable = self._nullable[step.immediate]
        elif operation in (Operation.CONSTANT, Operation.CONSTANT_FLAG):
            nullable = bool(step.extra)
        elif operation is Operation.COALESCE:
            nullable = all(given)
        elif operation in (Operation.CHOOSE, Operation.CHOOSE_FLAG):
            nullable = any(given[1:])
        else:
            nullable = (any(given) or operation in _NULL_BY_VALUE) and operation not in _NEVER_NULL
        self._nulls[step.out] = nullable
        flag = operation in _FLAGS or (operation is Operation.LOAD and self._is_flag(step.immediate))
        return f"const {'Flag' if flag else 'Value'} r{step.out} = {self._call(step)};"

    def _is_flag(self, number: int) -> bool:
        return pa.types.is_boolean(self._program.inputs[number].type)

    def _call(self, step: Instruction) -> str:
        operands = [f"r{operand}" for operand in step.operands]
        special = _SPECIAL.get(step.operation)
        if special is not None:
            return special(self, step, operands)
        if step.operation in _CHECKED:
            operands.append("lost")
        name = _NAMES.get(step.operation, step.operation.name.lower())
        return f"{name}({', '.join(operands)})"

    def load(self, number: int) -> str:
        """The value of an input in the row."""
        nullable = "true" if self._nullable[number] else "false"
        if self._is_flag(number):
            return f"load_flag<{nullable}>(inputs.column[{number}], at)"
        kind = _LOADED[value_kind(self._program.inputs[number].type)]
        return f"load<{kind}, {nullable}>(inputs.column[{number}], at, lost)"

    def _load(self, step: Instruction, _: Sequence[str]) -> str:
        return self.load(step.immediate)

    def _constant(self, step: Instruction, _: Sequence[str]) -> str:
        if step.extra:
            return "{0, false}"
        self.constants.append(step.immediate)
        return f"{{constants.word[{len(self.constants) - 1}], true}}"

    def _flag(self, step: Instruction, _: Sequence[str]) -> str:
        is_true = "true" if step.immediate and not step.extra else "false"
        return f"{{{is_true}, {'false' if step.extra else 'true'}}}"

    def _range(self, step: Instruction, operands: Sequence[str]) -> str:
        return f"require_range({operands[0]}, {_word(step.immediate)}, {_word(step.extra)}, lost)"

    def _by_constant(self, step: Instruction, operands: Sequence[str]) -> str:
        return f"{step.operation.name.lower()}({operands[0]}, {_word(step.immediate)})"

    def _decimal(self, step: Instruction, operands: Sequence[str]) -> str:
        return f"decimal_to_double({operands[0]}, 1e{step.immediate}, lost)"


def pad_constants(words: Sequence[int]) -> list[int]:
    """The words of `Constants`: two at least, since a structure of one would be taken for a number."""
    return [*words, *[0] * (2 - len(words))]


def _word(number: int) -> str:
    """A literal; the least word has none of its own."""
    return f"{number}ll" if number > -(2**63) else f"(-{2**63 - 1}ll - 1)"


_SPECIAL: Final[Mapping[Operation, Callable[[ProgramText, Instruction, Sequence[str]], str]]] = (
    MappingProxyType(
        {
            Operation.LOAD: ProgramText._load,
            Operation.CONSTANT: ProgramText._constant,
            Operation.CONSTANT_FLAG: ProgramText._flag,
            Operation.REQUIRE_RANGE: ProgramText._range,
            Operation.DIVIDE_ROUNDING: ProgramText._by_constant,
            Operation.FLOOR_DIVIDE: ProgramText._by_constant,
            Operation.FLOOR_REMAINDER: ProgramText._by_constant,
            Operation.DECIMAL_TO_DOUBLE: ProgramText._decimal,
        }
    )
)

_STORED: Final[Mapping[str, str]] = MappingProxyType({**_LOADED, "float64": "Word"})


def evaluate_text(program: Program, types: Sequence[pa.DataType], nullable: Sequence[bool]) -> ProgramKernel:
    """A kernel that computes a program's outputs, of these types, for each row."""
    text = ProgramText(program, nullable)
    stores, counts, ends = [], [], []
    for number, (register, kind) in enumerate(zip(program.outputs, types, strict=True)):
        column = f"outputs.column[{number}]"
        if pa.types.is_boolean(kind):
            stores.append(f"if (here) store_value<unsigned char>({column}, row, r{register}.is ? 1 : 0);")
        else:
            stored = _STORED[value_kind(kind)]
            stores.append(f"if (here) store_value<{stored}>({column}, row, r{register}.word);")
        if text.may_be_null(register):
            counts.append(f"  unsigned nulls{number} = 0;\n")
            stores.append(f"nulls{number} += store_valid({column}, row, r{register}.valid, here);")
            ends.append(f"  add_up(nulls{number}, status + {1 + number});\n")
    body = "".join(f"    {line}\n" for line in (*text.lines, *stores))
    made = (
        f'#include "{HEADER}"\n\nnamespace bamquery {{\n\n{text.structures()}'
        f"struct Outputs {{\n  Output column[{len(types)}];\n}};\n\n"
        'extern "C" __global__ void __launch_bounds__(256)\n'
        "    program(Inputs inputs, Constants constants, Outputs outputs, Word rows, unsigned* status) {\n"
        "  bool lost = false;\n"
        f"{''.join(counts)}"
        "  const Word step = static_cast<Word>(gridDim.x) * blockDim.x;\n"
        "  const Word first = static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x;\n"
        "  for (Word row = first; (row & ~31ll) < rows; row += step) {\n"
        "    const bool here = row < rows;\n"
        "    const Word at = here ? row : rows - 1;\n"
        f"{body}"
        "  }\n"
        "  if (lost) *status = 1;\n"
        f"{''.join(ends)}"
        "}\n\n}  // namespace bamquery\n"
    )
    has_nulls = tuple(text.may_be_null(register) for register in program.outputs)
    return ProgramKernel(made, tuple(text.constants), has_nulls)
