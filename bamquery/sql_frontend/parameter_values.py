"""Python values as what they are in a text: a type of SQL and words."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from bamquery.plan.literals import interval_strings
from bamquery.sql_frontend.sql_text import require_whole

NULL: Final = "NULL"
TRUE: Final = "TRUE"
FALSE: Final = "FALSE"
NUMBER: Final = "number"
NEGATIVE: Final = "negative number"
STRING: Final = "string"
_MOST_DIGITS: Final = 38
_NULLS: Final = ("NaTType", "NAType")  # of pandas, which need not be there


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """A constant.

    Attributes:
        kind: one of the above, or a type's name, of which the words are a string.
        words: a number's digits, a string's characters; empty where the kind says all.
    """

    kind: str
    words: str = ""

    @classmethod
    def from_python(cls, value: Any) -> ParameterValue:
        """The value's: of an int the digits, of a str its characters, of others a string and a type.

        Raises:
            ValueError: no type of SQL holds it.
        """
        if value is None or type(value).__name__ in _NULLS:
            return _NULL
        if isinstance(value, bool):
            return _TRUE if value else _FALSE
        if hasattr(value, "as_py"):  # a pyarrow scalar
            return cls.from_python(value.as_py())
        for kind, convert in _CONVERT.items():
            if isinstance(value, kind):
                return convert(value)
        if type(value).__module__.split(".")[0] == "numpy" and getattr(value, "shape", None) == ():
            return _from_numpy(value)
        raise _unknown(value)


_NULL: Final = ParameterValue(NULL)
_TRUE: Final = ParameterValue(TRUE)
_FALSE: Final = ParameterValue(FALSE)


def _unknown(value: Any, way_out: str = "") -> ValueError:
    return ValueError(f"a parameter cannot be of Python's type {type(value).__name__}{way_out}")


def _from_numpy(value: Any) -> ParameterValue:
    """The Python value of a scalar of numpy's, whose units may be finer, or longer, than Python's."""
    found, kind = value.item(), value.dtype.kind
    if isinstance(found, type(value)):
        raise _unknown(value)
    if kind == "M" and isinstance(found, int):
        if value.dtype.name != "datetime64[ns]":
            raise ValueError(
                f"a parameter cannot be a {value.dtype.name} that Python's datetime does not hold"
            )
        return ParameterValue("TIMESTAMP_NS", str(value).replace("T", " "))
    if kind == "m" and isinstance(found, int):
        raise ValueError(
            f"a parameter cannot be a {value.dtype.name}: astype('timedelta64[us]') makes one that can"
        )
    return ParameterValue.from_python(found)


def _integer(value: int) -> ParameterValue:
    digits = str(abs(value))
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a parameter's number cannot have more than {_MOST_DIGITS} digits")
    return ParameterValue(NEGATIVE if value < 0 else NUMBER, digits)


def _float(value: float) -> ParameterValue:
    # numpy's are floats that show their type
    return ParameterValue("DOUBLE", "nan" if math.isnan(value) else repr(float(value)))


def _decimal(value: Decimal) -> ParameterValue:
    if not value.is_finite():
        raise ValueError(f"a parameter cannot be the Decimal {value}")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    width = len(digits) + max(exponent, 0)
    width = width if width >= scale else scale + 1
    if width > _MOST_DIGITS:
        raise ValueError(f"a parameter's number cannot have more than {_MOST_DIGITS} digits")
    return ParameterValue(f"DECIMAL({width}, {scale})", format(value, "f"))


def _datetime(value: datetime.datetime) -> ParameterValue:
    if value.tzinfo is None:
        return ParameterValue("TIMESTAMP", value.isoformat(" "))
    return ParameterValue("TIMESTAMPTZ", value.astimezone(datetime.UTC).isoformat(" "))


def _time(value: datetime.time) -> ParameterValue:
    if value.tzinfo is not None:
        raise ValueError("a parameter cannot be a time with a zone")
    return ParameterValue("TIME", value.isoformat())


def _timedelta(value: datetime.timedelta) -> ParameterValue:
    if getattr(value, "nanoseconds", 0):
        raise ValueError("a parameter cannot be a Timedelta with nanoseconds: round('us') makes one that can")
    micros = value.seconds * 10**6 + value.microseconds
    return ParameterValue("INTERVAL", interval_strings.write(0, value.days, micros))


def _bytes(value: bytes | bytearray | memoryview) -> ParameterValue:
    return ParameterValue("BLOB", "".join(f"\\x{byte:02X}" for byte in bytes(value)))


def _uuid(value: uuid.UUID) -> ParameterValue:
    raise _unknown(value, ", there is no type for it: pass str() of it")


def _text(value: str) -> ParameterValue:
    require_whole(value)
    return ParameterValue(STRING, value)


_CONVERT: Final[Mapping[type[Any], Callable[[Any], ParameterValue]]] = MappingProxyType(
    {
        int: _integer,
        float: _float,
        str: _text,
        Decimal: _decimal,
        datetime.datetime: _datetime,  # before date, of which it is a kind
        datetime.date: lambda value: ParameterValue("DATE", value.isoformat()),
        datetime.time: _time,
        datetime.timedelta: _timedelta,
        bytes: _bytes,
        bytearray: _bytes,
        memoryview: _bytes,
        uuid.UUID: _uuid,
    }
)
