"""SQLAlchemy's types for those that SQL elsewhere has not, and which type a column's is."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql import sqltypes, type_api
from sqlalchemy.types import TypeEngine

from bamquery.plan.literals import interval_strings


class TINYINT(types.Integer):
    """A signed integer of 8 bits."""

    __visit_name__ = "TINYINT"


class UTINYINT(types.Integer):
    """An unsigned integer of 8 bits."""

    __visit_name__ = "UTINYINT"


class USMALLINT(types.Integer):
    """An unsigned integer of 16 bits."""

    __visit_name__ = "USMALLINT"


class UINTEGER(types.Integer):
    """An unsigned integer of 32 bits."""

    __visit_name__ = "UINTEGER"


class UBIGINT(types.Integer):
    """An unsigned integer of 64 bits."""

    __visit_name__ = "UBIGINT"


class HUGEINT(types.Integer):
    """An integer of 38 digits."""

    __visit_name__ = "HUGEINT"


class TIMESTAMP_S(types.TIMESTAMP):  # noqa: N801 (SQL's name)
    """A timestamp of whole seconds."""

    __visit_name__ = "TIMESTAMP_S"


class TIMESTAMP_MS(types.TIMESTAMP):  # noqa: N801 (SQL's name)
    """A timestamp of milliseconds."""

    __visit_name__ = "TIMESTAMP_MS"


class TIMESTAMP_NS(types.TIMESTAMP):  # noqa: N801 (SQL's name)
    """A timestamp of nanoseconds; Python's values have microseconds."""

    __visit_name__ = "TIMESTAMP_NS"


class TIME_NS(types.TIME):  # noqa: N801 (SQL's name)
    """A time of nanoseconds; Python's values have microseconds."""

    __visit_name__ = "TIME_NS"


class INTERVAL(type_api.NativeForEmulated, sqltypes._AbstractInterval):
    """Months, days and a time, as `timedelta`; in expressions, not in tables."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **kw: Any) -> INTERVAL:
        """In place of SQLAlchemy's own, which keeps timestamps since 1970."""
        return cls()

    @property
    def _type_affinity(self) -> type[types.Interval]:
        return types.Interval

    def as_generic(self, allow_nulltype: bool = False) -> types.Interval:
        """SQLAlchemy's type for any database."""
        return types.Interval(native=True)

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        """To a constant."""
        return _interval

    @property
    def python_type(self) -> type[Any]:
        """`timedelta`."""
        return datetime.timedelta


class ExactNumeric(types.Numeric[Any]):
    """Decimals, also where an expression such as a quotient is a DOUBLE."""

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """To a `Decimal`, or to a float where the type says so."""
        if not self.asdecimal:
            return lambda value: None if value is None else float(value)
        return lambda value: value if value is None or isinstance(value, Decimal) else Decimal(str(value))


class TextUuid(types.Uuid[Any]):
    """UUIDs as strings in lower case with hyphens, as BamQuery takes them in from files and frames."""

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """To text."""
        return lambda value: None if value is None else str(uuid.UUID(str(value)))

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """To a `UUID`, or nothing where the type says that it is a text."""
        if not self.as_uuid:
            return None
        return lambda value: None if value is None else uuid.UUID(value)

    def literal_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        """To a text in quotes."""
        return lambda value: f"'{uuid.UUID(str(value))}'"


def _interval(value: datetime.timedelta) -> str:
    text = interval_strings.write(0, value.days, value.seconds * 10**6 + value.microseconds)
    return f"CAST('{text}' AS INTERVAL)"


_TYPES: Final[Mapping[str, Callable[..., TypeEngine[Any]]]] = MappingProxyType(
    {
        "BOOLEAN": types.BOOLEAN,
        "TINYINT": TINYINT,
        "SMALLINT": types.SMALLINT,
        "INTEGER": types.INTEGER,
        "BIGINT": types.BIGINT,
        "UTINYINT": UTINYINT,
        "USMALLINT": USMALLINT,
        "UINTEGER": UINTEGER,
        "UBIGINT": UBIGINT,
        "FLOAT": types.REAL,
        "DOUBLE": types.DOUBLE,
        "DECIMAL": types.DECIMAL,
        "VARCHAR": types.VARCHAR,
        "BLOB": types.BLOB,
        "DATE": types.DATE,
        "TIME": types.TIME,
        "TIME_NS": TIME_NS,
        "TIMESTAMP": types.TIMESTAMP,
        "TIMESTAMP_S": TIMESTAMP_S,
        "TIMESTAMP_MS": TIMESTAMP_MS,
        "TIMESTAMP_NS": TIMESTAMP_NS,
        "INTERVAL": INTERVAL,
    }
)


def sqlalchemy_type(name: str) -> TypeEngine[Any]:
    """The type for one as SQL spells it, such as `DECIMAL(9,2)`; NullType where there is none."""
    if name == "TIMESTAMP WITH TIME ZONE":
        return types.TIMESTAMP(timezone=True)
    base, _, digits = name.rstrip(")").partition("(")
    if base not in _TYPES:
        return types.NullType()
    return _TYPES[base](*(int(number) for number in digits.split(",") if digits))
