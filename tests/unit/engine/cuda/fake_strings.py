"""What libcudf does with strings: bytes of UTF-8, as it has them."""

# ruff: noqa: PLR0917  (signatures are libcudf's)

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from tests.unit.engine.cuda.fake_columns import (
    INT32,
    UNITS,
    WIDE,
    Column,
    DataType,
    Scalar,
    SideType,
    TypeId,
)

# Strings: bytes of UTF-8, as libcudf has them.


def _texts(function, out=None):
    def apply(column, *args, stream=None, mr=None):
        plain = [a.value if isinstance(a, Scalar) else a for a in args]
        values = [None if v is None else function(v.decode(), *plain) for v in column.values()]
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        return Column.from_values(encoded, out or DataType(TypeId.STRING))

    return apply


def _byte_counts(column, stream=None, mr=None):
    return Column.from_values([None if v is None else len(v) for v in column.values()], INT32)


def _like(text: str, pattern: str) -> bool:
    reached = {0}
    for sign in pattern:
        if sign == "%":
            reached = {j for i in reached for j in range(i, len(text) + 1)}
        else:
            reached = {i + 1 for i in reached if i < len(text) and sign in ("_", text[i])}
    return len(text) in reached


def _stripped(text, side, what):
    what = what.decode()
    strip = {SideType.BOTH: text.strip, SideType.LEFT: text.lstrip, SideType.RIGHT: text.rstrip}
    return strip[side](what)


def _concatenated(table, separator, narep, stream=None, mr=None):
    assert narep.value is None
    return Column.from_values(
        [None if None in row else b"".join(row) for row in table.rows()], DataType(TypeId.STRING)
    )


def _written(column, pattern, names, stream=None, mr=None):
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    kind = column.type().id()
    unit = UNITS.get(kind)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    texts = []
    for value in column.values():
        if value is None:
            texts.append(None)
            continue
        days = value if unit is None else 0
        seconds, fraction = (0, 0) if unit is None else divmod(value, per_second[unit])
        moment = epoch + timedelta(days=days, seconds=seconds)
        text = f"{moment.year:04d}" + moment.strftime("-%m-%d %H:%M:%S")
        date, time = text.split(" ")
        text = pattern.replace("%Y-%m-%d", date).replace("%H:%M:%S", time)
        for digits in (3, 6, 9):
            text = text.replace(f"%{digits}f", f"{fraction:0{digits}d}")
        texts.append(text.encode())
    return Column.from_values(texts, DataType(TypeId.STRING))


def _digits(column, stream=None, mr=None):
    scale = -column.type().scale()
    texts = [None if v is None else f"{Decimal(v).scaleb(-scale, WIDE):f}".encode() for v in column.values()]
    return Column.from_values(texts, DataType(TypeId.STRING))


def _boolean_texts(column, yes, no, stream=None, mr=None):
    texts = [None if v is None else (yes if v else no).value for v in column.values()]
    return Column.from_values(texts, DataType(TypeId.STRING))


def _joined_lists(lists, separator, no_separator, no_text, separate_nulls, policy, stream=None, mr=None):
    assert policy.name == "NULL_ELEMENT"
    texts = [separator.value.join(one) if one else None for one in lists.values()]
    return Column.from_values(texts, DataType(TypeId.STRING))
