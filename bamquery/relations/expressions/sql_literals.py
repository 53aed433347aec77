"""Names, values and types as SQL, and how tightly operators bind."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.sql_frontend.parameters import literal_text
from bamquery.sql_frontend.sql_text import sql_text

_TYPE: Final = re.compile(r"\s*[A-Za-z_][A-Za-z_0-9 ]*(\(\s*\d+\s*(,\s*\d+\s*)?\))?[A-Za-z_ ]*")
_PYTHON_TYPES: Final[Mapping[type[Any], str]] = MappingProxyType(
    {
        bool: "BOOLEAN",
        int: "BIGINT",
        float: "DOUBLE",
        str: "VARCHAR",
        bytes: "BLOB",
        Decimal: "DECIMAL(38, 10)",
        datetime.date: "DATE",
        datetime.datetime: "TIMESTAMP",
        datetime.time: "TIME",
        datetime.timedelta: "INTERVAL",
    }
)


class Precedence(IntEnum):
    """How tightly an expression's outermost operator binds; a looser operand goes into parentheses."""

    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    WHOLE = 8


def quoted_name(name: str) -> str:
    """A name that means nothing but itself.

    Raises:
        TypeError: it is no string. ValueError: it is empty.
    """
    text = sql_text(name, "name")
    if not text:
        raise ValueError("a name is empty: name a column")
    return '"' + text.replace('"', '""') + '"'


def quoted_value(value: Any) -> str:
    """A Python value as a constant.

    Raises:
        TypeError: SQL has no type for it.
    """
    try:
        return literal_text(value)
    except ValueError as error:
        raise TypeError(f"{value!r} cannot be a constant: {error}") from None


def quoted_type(kind: Any) -> str:
    """A type as SQL spells it: of its spelling, a Python type, or an Arrow type.

    Raises:
        TypeError: it is none of these. ValueError: no type is spelled so.
    """
    if isinstance(kind, pa.DataType):
        return type_name(kind)
    if isinstance(kind, type):
        if kind not in _PYTHON_TYPES:
            raise TypeError(f"SQL has no type for Python's {kind.__name__}: name one, such as 'BIGINT'")
        return _PYTHON_TYPES[kind]
    text = sql_text(kind, "type")
    if not _TYPE.fullmatch(text):
        raise ValueError(f"{text!r} is not how a type is spelled: take 'BIGINT', 'DECIMAL(9, 2)' and such")
    return text.strip()
