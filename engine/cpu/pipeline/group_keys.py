"""Keys of groups as registers of programs, and what these stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.kernels import Column, boolean_column, booleans, from_values, take, take_shared
from bamquery.engine.cpu.keys.hashing import string_words
from bamquery.engine.cpu.temporal.instants import NAMES, column_of_names
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal

if TYPE_CHECKING:
    from bamquery.engine.cpu.stored_frame import StoredFrame

_NAME_PLACES = {"dayname": ("dayofweek", 0), "monthname": ("month", 1)}
"""Parts of dates that names of `NAMES` go by, and that of the first one."""

_PLACE: Final = pa.int32()
"""The type of places in a dictionary, as columns are stored."""

_MOST_VALUES: Final = 1 << 12
"""Of a dictionary up to which groups by places in it are likely to be few."""

_LONGEST = 128
"""Characters of a string that all groups have a copy of at once: others come in portions that fit memory."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A key.

    Attributes:
        type: of what registers hold.
        values: what its numbers are places among; None: they are the key, or places in a dictionary.
        encoded: the column whose dictionary that is.
    """

    type: pa.DataType
    values: Column | None
    encoded: int | None = None

    def values_in(self, frame: pa.RecordBatch | StoredFrame) -> Column | None:
        """What its numbers are places among in a frame; None where groups of such are none of keys."""
        if self.encoded is None:
            return self.values
        column = frame.column(self.encoded)
        if not isinstance(column, pa.DictionaryArray) or column.type.index_type != self.type:
            return None
        return column.dictionary if _are_different(column.dictionary) else None

    def column(self, words: NDArray[np.int64], valid: NDArray[np.uint8], values: Column | None) -> Column:
        """The keys of groups; `values`: see `values_in`.

        Raises:
            LargeStringError: strings of a dictionary take too much memory beside each group.
        """
        known = None if valid.all() else boolean_column(valid.view(np.bool_))
        if pa.types.is_boolean(self.type):
            return booleans(words != 0, known)
        numbers = from_values(words, self.type, known)
        if values is None:
            return numbers
        return take(values, numbers) if self.encoded is None else take_shared(values, numbers)


def add_group_keys(builder: ProgramBuilder, keys: Sequence[Expression]) -> list[GroupKey] | None:
    """Keys as outputs of the builder's program; None where one is no whole number, nor stands for such.

    A column of strings stands for places in its dictionary, of which only a frame says whether there is one.
    """
    found = []
    for key in keys:
        encoded = None
        numbers, values = _places_of(key)
        if isinstance(key, ColumnRef) and pa.types.is_large_string(key.type):
            encoded, numbers = key.index, ColumnRef(key.index, key.name, _PLACE)
        kind = numbers.type
        whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        moment = pa.types.is_date32(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind)
        value = builder.add(numbers) if whole or moment else None
        if value is None:
            return None
        builder.program.outputs.append(value.register)
        found.append(GroupKey(kind, values, encoded))
    return found


def _are_different(values: Column) -> bool:
    """Whether strings, few enough to be places of groups, are known to be different; none is null then."""
    if values.null_count or not 0 < len(values) <= _MOST_VALUES:
        return False
    _, firsts = native.group_rows([string_words(values)])
    return len(firsts) == len(values)


def _places_of(key: Expression) -> tuple[Expression, Column | None]:
    """A key of a few strings as their places among these; any other one as it is."""
    match key:
        case Call(function=name, arguments=(argument,)) if name in NAMES:
            part, first = _NAME_PLACES[name]
            number: Any = pa.int64()
            place = Call("date_part", (Literal(pa.scalar(part, pa.large_string())), argument), number)
            if first:
                place = Call("subtract", (place, Literal(pa.scalar(first, number))), number)
            return place, column_of_names(NAMES[name][0])
        case Call(function="case", arguments=arguments, type=kind) if pa.types.is_large_string(kind):
            return _places_of_results(key, arguments)
    return key, None


def _places_of_results(key: Expression, arguments: Sequence[Expression]) -> tuple[Expression, Column | None]:
    """CASE whose results are short strings of the statement, each of which has one place."""
    results = [*arguments[1::2], arguments[-1]]
    strings = [result.value for result in results if isinstance(result, Literal) and result.type == key.type]
    if len(strings) < len(results):
        return key, None
    number: Any = pa.int32()
    different = list(dict.fromkeys(string.as_py() for string in strings if string.is_valid))
    if any(len(value) > _LONGEST for value in different):
        return key, None
    places = [
        Literal(pa.scalar(different.index(string.as_py()) if string.is_valid else None, number))
        for string in strings
    ]
    branches = [part for pair in zip(arguments[:-1:2], places[:-1], strict=True) for part in pair]
    values: Column = pa.array(different, key.type)
    return Call("case", (*branches, places[-1]), number), values
