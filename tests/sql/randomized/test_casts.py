"""The generator of casts and operators: its values, a short run of it, and faults that it has to find."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from bamquery.engine.cpu.casts import from_string, temporal
from bamquery.plan.literals import number_strings as parsing
from bamquery.plan.literals import time_strings
from tests.sql.randomized.casts import findings as listed
from tests.sql.randomized.casts.compare import FOREIGN, Pair, values_agree
from tests.sql.randomized.casts.extremes import TYPES, column, draw_value, extremes
from tests.sql.randomized.casts.findings import Class, Findings
from tests.sql.randomized.casts.run import ask
from tests.values import plain

PIECES = ((1, "casts"), (2, "casts"), (1, "operators"))
"""Texts, another type, and all operators over two types."""


@pytest.mark.parametrize("name", TYPES)
def test_a_value_is_the_same_as_text_and_as_scalar(name: str) -> None:
    choose = random.Random(name)
    values = [*extremes(name), *(draw_value(choose, name) for _ in range(50))]
    scalars = column(name, values)
    assert scalars.type == TYPES[name]
    with Pair() as pair:
        table = "spans" if name == "INTERVAL" else "t"
        pair.load(table, {"x": (name, scalars)})
        assert pair.differences(f"SELECT x FROM {table}") == []
        texts = [value for value in values if "\0" not in value.sql]
        answer = pair.their_answer("SELECT " + ", ".join(value.sql for value in texts))
        for value, written in zip(texts, answer.columns, strict=True):
            assert values_agree(plain(written)[0], plain(column(name, [value]))[0]), value


@pytest.mark.parametrize("piece", PIECES)
def test_nothing_differs_that_is_not_listed(piece: tuple[int, str]) -> None:
    found = ask(piece)
    assert found.total > 1000
    assert {new: found.examples[new] for new in found.new(listed.known_classes())} == {}


def test_no_foreign_exception_is_listed() -> None:
    assert [found for found in listed.known_classes() if FOREIGN in found.ours] == []


def test_the_table_reads_as_it_was_written(tmp_path: Any) -> None:
    page = tmp_path / "sql.md"
    page.write_text("before\n" + listed._BEGIN + "\n" + listed._END + "\nbehind\n")
    classes = {
        Class("a || b", "BLOB, BLOB", "", "any", "refused", "a value"): "`a || b of BLOB, BLOB`",
        Class("cast", "VARCHAR", "DATE", "infinite", "NULL", "a value"): "`CAST('inf' AS DATE)`",
        Class("cast", "VARCHAR", "a timestamp", "infinite", "NULL", "a value"): "`CAST('inf' AS TIMESTAMP)`",
    }
    with mock.patch.object(listed, "DOCUMENT", page):
        listed.write(classes)
        assert set(listed.known_classes()) == set(classes)
        assert page.read_text().count("infinite") == 1  # one line for both types
    assert page.read_text().startswith("before")
    assert page.read_text().endswith("behind\n")


def _half_to_even(number: Any, scale: int) -> Any:
    unit = parsing.Decimal(1).scaleb(-scale)
    return number.quantize(unit, rounding="ROUND_HALF_EVEN", context=parsing.EXACT)


def _wrong_way(match: Any, local: int) -> int:
    return -(_offset(match, local) or 0)


def _one_short(kind: Any) -> tuple[int, int]:
    low, high = _range(kind)
    return low, high - 1


def _down(values: Any, divisor: int) -> Any:
    return values // divisor


class _FoundError(Exception):
    """A difference that is not listed."""


_range, _offset = from_string.integer_range, time_strings._offset


@pytest.mark.parametrize(
    ("seed", "module", "name", "fault"),
    [
        pytest.param(1, from_string, "integer_range", _one_short, id="an integer's bound is one short"),
        pytest.param(1, parsing, "round_number", _half_to_even, id="texts are rounded half to even"),
        pytest.param(3, time_strings, "_offset", _wrong_way, id="a zone's offset has the wrong sign"),
        pytest.param(50, temporal, "rounded_quotient", _down, id="nanoseconds are cut off"),
        pytest.param(1, from_string, "_holds", lambda *_: False, id="0xFF is -1"),
    ],
)
def test_a_planted_fault_is_found(seed: int, module: Any, name: str, fault: Callable[..., Any]) -> None:
    known, noted = set(listed.known_classes()), Findings.note

    def note(findings: Findings, found: Class, example: str, origin: int) -> None:
        if found not in known:
            raise _FoundError(found)  # what is asked behind it says no more
        noted(findings, found, example, origin)

    with (
        mock.patch.object(module, name, fault),
        mock.patch.object(Findings, "note", note),
        pytest.raises(_FoundError),
    ):
        ask((seed, "casts"))
