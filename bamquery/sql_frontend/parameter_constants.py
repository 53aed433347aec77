"""The values of a text's parameters, as the constants that one plan may serve many of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bamquery.plan.expressions import Literal
from bamquery.sql_frontend import parameter_values
from bamquery.sql_frontend.functions.operators import integer_literal
from bamquery.sql_frontend.parameter_values import ParameterValue
from bamquery.sql_frontend.text_constants import TextConstants, literal

_MOST_VALUES: Final = 256
"""Of a statement with more nobody looks at each."""
_MOST_CHARACTERS: Final = 1 << 16
_NUMBERS: Final = (parameter_values.NUMBER, parameter_values.NEGATIVE)


@dataclass(frozen=True, slots=True)
class ParameterConstants:
    """A text with values for its parameters; its own constants are not told apart from the text.

    Attributes:
        shape: the text, and of each value the parameter's name and type. NULL, TRUE and FALSE are types.
        spans: none, as no value stands in the text.
        written: what values are made of, by number.
    """

    shape: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    written: tuple[str, ...]
    _strings: tuple[bool, ...]

    @classmethod
    def of_values(cls, text: str, values: Mapping[str, Any]) -> ParameterConstants | None:
        """Of values by name; None where one is of no type of SQL, or they are too many or long to keep."""
        if len(values) > _MOST_VALUES:
            return None
        try:
            found = [ParameterValue.from_python(value) for value in values.values()]
        except ValueError:  # whoever puts it in its place says where that is
            return None
        if sum(len(one.words) for one in found) > _MOST_CHARACTERS:
            return None
        kinds = (part for name, one in zip(values, found, strict=True) for part in (name, _type_of(one)))
        written = tuple(one.words for one in found)
        return cls((text, *kinds), (), written, tuple(one.kind not in _NUMBERS for one in found))

    def literals(self) -> list[Literal]:
        """What the binder makes of the words, before it makes negative numbers and other types of them."""
        return [
            literal(words, words, is_string=is_string)
            for words, is_string in zip(self.written, self._strings, strict=True)
        ]


Constants: TypeAlias = TextConstants | ParameterConstants


def _type_of(value: ParameterValue) -> str:
    """The kind; of whole numbers with the type that holds them."""
    if value.kind not in _NUMBERS:
        return value.kind
    return f"{value.kind} {integer_literal(int(value.words)).type}"
