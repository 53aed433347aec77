"""Contracts say for which functions Python works row by row: more rows take more of its lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import product
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.function_catalog.contract import RowByRow
from bamquery.function_catalog.entry import Entry
from bamquery.function_catalog.function_reference import SECTIONS, row_by_row
from bamquery.function_catalog.plan_functions import SCALAR_FUNCTIONS
from bamquery.plan.bound_statements import Query
from bamquery.plan.expressions import Call, Expression, walk
from bamquery.plan.functions import called_row_by_row
from bamquery.plan.nodes import Project
from bamquery.sql_frontend.statement_binder import bind
from tests.plans import MemoryCatalog, SchemaOnly
from tests.selection.effort import spread

FEW, MANY = 300, 600


@cache
def batch(rows: int) -> pa.RecordBatch:
    """A column of each type, named by it, with other values in each row."""
    numbers = range(1, rows + 1)
    moments = [datetime(2000, 1, 1) + timedelta(i, i * 1000) for i in numbers]
    return pa.record_batch(
        {
            "word": pa.array([f"{i:016b}" for i in numbers], pa.large_string()),
            "year_text": pa.array([f"{1000 + i}" for i in numbers], pa.large_string()),
            "blob": pa.array([f"{i:016b}".encode() for i in numbers], pa.large_binary()),
            "bigint": pa.array(numbers, pa.int64()),
            "integer": pa.array(numbers, pa.int32()),
            "few": pa.array([i % 5 + 1 for i in numbers], pa.int32()),
            "double": pa.array([i / 1000 for i in numbers], pa.float64()),
            "float": pa.array([i / 1000 for i in numbers], pa.float32()),
            "decimal": pa.array([Decimal(i) / 100 for i in numbers], pa.decimal128(9, 2)),
            "hugeint": pa.array([Decimal(i) for i in numbers], HUGEINT),
            "date": pa.array([moment.date() for moment in moments]),
            "few_dates": pa.array([date(2000, 1, i % 5 + 1) for i in numbers]),
            "timestamp": pa.array(moments, pa.timestamp("us")),
            "time": pa.array([time(i // 60 % 24, i % 60) for i in numbers], pa.time64("us")),
            "interval": pa.array([(0, i, i * 1000) for i in numbers], pa.month_day_nano_interval()),
            "boolean": pa.array([i % 2 == 0 for i in numbers]),
        }
    )


TYPES = {
    "ANY": ("word",),
    "VARCHAR": ("word",),
    "NUMERIC": ("bigint", "double", "decimal", "hugeint"),
    "INTEGRAL": ("bigint", "hugeint"),
    "TEMPORAL": ("date", "timestamp", "time", "interval"),
}
CONSTANTS = {
    "VARCHAR": "'01'",
    "ANY": "'01'",
    "DOUBLE": "2::DOUBLE",
    "FLOAT": "2::FLOAT",
    "HUGEINT": "2::HUGEINT",
    "DATE": "DATE '2001-02-03'",
    "TIMESTAMP": "TIMESTAMP '2001-02-03'",
    "TIME": "TIME '10:00'",
    "INTERVAL": "INTERVAL 1 DAY",
    "BOOLEAN": "true",
}
"""Of types; 2 of others."""
BY_NAME = {
    "digits": "2",
    "options": "''",
    "group": "0",
    "escape": "'!'",
    "base": "16",
    "month": "few",
    "day": "few",
    "hour": "few",
    "minute": "few",
    "least": "0::DOUBLE",
    "most": "1000::DOUBLE",
    "trim": "true",
    "width": "INTERVAL 1 DAY",
}
BY_FUNCTION = {
    ("factorial", "n"): "few",
    ("repeat", "n"): "few",
    ("lpad", "n"): "20",
    ("rpad", "n"): "20",
    **{(name, "part"): "'hour'" for name in ("date_part", "date_trunc", "date_diff", "date_sub")},
    **{(name, "pattern"): "'%Y'" for name in ("strftime", "strptime", "try_strptime")},
    ("strptime", "text"): "year_text",
    ("try_strptime", "text"): "year_text",
    ("strftime", "x"): "few_dates",  # what is written of a day is made once
    ("bar", "width"): "10::DOUBLE",
    ("hamming", "b"): "word",
    ("to_base", "length"): "10",
}
"""What parameters of some names, and of some functions, take: other values would be errors."""

_OPERATORS = """
    -integer; integer / integer; integer = integer; integer <> 1; integer < 1; integer <= 1; integer > 1
    integer >= 1; integer IS DISTINCT FROM 1; integer IS NOT DISTINCT FROM 1; integer IN (1, 2)
    boolean AND integer = 1; boolean OR integer = 1; NOT boolean; integer IS NULL; integer IS NOT NULL
    CASE WHEN boolean THEN 1 ELSE integer END; bigint & bigint; hugeint & hugeint; bigint | 2; hugeint | 2
    ~bigint; ~hugeint; 1::BIGINT << few; hugeint << 2; bigint >> few; hugeint >> 2; word || word
    word LIKE '%1_'; word LIKE word; word ILIKE '%a_'; word ILIKE word; word GLOB '*1'
    word GLOB word; word[2]; word[integer]; word[2:3]; word[integer:integer]
    position('1' IN word); position(word IN word)
    trim(word); ltrim(word); rtrim(word); left(word, -2); substring(word, 2)
    date + integer; date - date; date + time; timestamp + INTERVAL 1 DAY; timestamp + interval
    timestamp - interval; timestamp - timestamp; interval + interval; interval - interval; -interval
    interval * integer; interval * double; interval / 2; interval / double; interval < interval
    age(timestamp, timestamp); date_trunc('month', interval); epoch(interval)
    epoch_ms(interval); epoch_us(interval)
"""

OPERATORS = [text.strip() for line in _OPERATORS.strip().splitlines() for text in line.split(";")]

UNSEEN = {"now", "interpolate", "interval_order"}
"""Functions that no call over columns becomes: a constant, and what quantiles and keys become."""


def calls(entry: Entry, *, columns: bool) -> Iterator[str]:
    """Calls of columns, or of one column and constants."""
    for signature in entry.parsed_signatures():
        choices: list[Sequence[str]] = []
        with_column = False
        for parameter in signature.parameters:
            given = BY_FUNCTION.get((entry.name, parameter.name)) or BY_NAME.get(parameter.name)
            if given is not None:
                choices.append((given,))
            elif with_column and not columns:
                choices.append((CONSTANTS.get(parameter.type, "2"),))
            else:
                choices.append(TYPES.get(parameter.type, (parameter.type.lower(),)))
                with_column = True
        for values in product(*choices, *choices[-1:] * signature.repeated):
            yield f"{entry.name}({', '.join(values)})"


def bound(text: str) -> Expression:
    (statement,) = bind(f"SELECT {text} FROM data", MemoryCatalog(SchemaOnly("data", batch(FEW).schema)))
    assert isinstance(statement, Query)
    assert isinstance(statement.plan, Project)
    return statement.plan.expressions[0]


def lines(expression: Expression, rows: int) -> int:
    """How many lines of Python it takes to compute it."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    evaluate_columns([expression], batch(rows))  # imports what it needs
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        evaluate_columns([expression], batch(rows))
    finally:
        sys.settrace(before)
    return count


def loops(expression: Expression) -> bool:
    return lines(expression, MANY) - lines(expression, FEW) >= (MANY - FEW) / 2


ENTRIES = [
    entry
    for section in SECTIONS
    if section.kind == "scalar" and section.title != "The connection"
    for entry in section.entries
    if entry.name not in ("age", "position")
    and all(signature.parameters for signature in entry.parsed_signatures())
]


@pytest.mark.long
@pytest.mark.parametrize("entry", spread(ENTRIES, 3), ids=lambda entry: entry.name)
def test_entries(entry: Entry) -> None:
    """What is said of a call is so, and what is said of the function is so of some of its calls."""
    slow: set[RowByRow] = {"never"}
    for columns in (False, True):
        for text in calls(entry, columns=columns):
            expression = bound(text)
            assert loops(expression) == bool(called_row_by_row([expression])), text
            if loops(expression):
                slow.add("hugeint" if "hugeint" in text else "columns" if columns else "always")
    order: Sequence[RowByRow] = ("always", "columns", "hugeint", "never")
    assert row_by_row(entry, "scalar") == next(one for one in order if one in slow)


@pytest.mark.parametrize("text", OPERATORS)
def test_operators(text: str) -> None:
    expression = bound(text)
    assert loops(expression) == bool(called_row_by_row([expression]))


def test_no_function_is_left_out() -> None:
    texts = [*OPERATORS, *(text for entry in ENTRIES for text in calls(entry, columns=True))]
    found = {part.function for text in texts for part in walk(bound(text)) if isinstance(part, Call)}
    assert set(SCALAR_FUNCTIONS) - found == UNSEEN
