"""Operators over every pair of types, of columns and of constants, each row with each."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, Final

import pyarrow as pa

from tests.sql.randomized.casts.compare import Pair, type_of, values_agree
from tests.sql.randomized.casts.compare import answer_kind as said_of
from tests.sql.randomized.casts.extremes import TYPES, Value, column, draw_value, extremes
from tests.sql.randomized.casts.findings import (
    Class,
    Findings,
    example_of,
    group,
    has_39_digits,
    kind_of_value,
    value_kind,
)
from tests.values import plain

BINARY: Final = (
    *("a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "a ** b", "a || b"),
    *("a = b", "a <> b", "a < b", "a <= b", "a > b", "a >= b"),
    *("a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b", "a BETWEEN b AND b", "b NOT BETWEEN a AND b"),
    *("a & b", "a | b", "xor(a, b)", "a << b", "a >> b", "a IN (b)", "coalesce(a, b)", "nullif(a, b)"),
)
UNARY: Final = ("-a", "+a", "~a", "NOT a", "a IS NULL", "a IS NOT NULL")

_ALIKE: Final = {
    "comparisons": {operator for operator in BINARY if set(operator) & set("=<>") and ">>" not in operator}
    | {"a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b", "a BETWEEN b AND b", "b NOT BETWEEN a AND b"}
    | {"a IN (b)", "nullif(a, b)"},
    "arithmetic": {"a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "a ** b"},
    "bits": {"a & b", "a | b", "xor(a, b)", "a << b", "a >> b"},
}
"""Operators that are named as one where one of the two refuses them."""

_EACH: Final = 20
"""Values of each side: all pairs of them are asked about."""
_DRAWN: Final = 6
_FAILING: Final = 3
_CONSTANTS: Final = 12
_MOST_MICROSECONDS: Final = (2**63 - 1) // 1000 - 86_400 * 10**6
"""Of an interval, but for a day, which what is left of months and days may add."""
_MILLISECOND: Final = 1000
_CUT: Final = "part of a millisecond before 1970"
_TOLERANCE: Final = 1e-12
"""Of `**` and of quotients, which the libraries of two programs may round otherwise."""


class Operators:
    """What one seed asks: all operators over two types, in whichever order."""

    def __init__(self, pair: Pair, seed: int, findings: Findings) -> None:
        self._pair = pair
        self._seed = seed
        self._findings = findings
        self._choose = random.Random(seed)
        names = list(TYPES)
        place = self._choose.randrange(len(names) ** 2)
        self.types = names[place // len(names)], names[place % len(names)]
        sides = [self._values(name) for name in self.types]
        self.rows: list[tuple[Value, Value]] = list(product(*sides))
        self._table = "spans" if "INTERVAL" in self.types else "given"

    def _values(self, name: str) -> list[Value]:
        found = list(extremes(name)) if name != "VARCHAR" else list(extremes(name))[:1]
        self._choose.shuffle(found)
        kept = found[: _EACH - _DRAWN]
        return kept + [draw_value(self._choose, name) for _ in range(_EACH - len(kept))]

    def ask(self) -> None:
        """All of it."""
        columns = {
            side: (name, column(name, [row[place] for row in self.rows]))
            for place, (side, name) in enumerate(zip("ab", self.types, strict=True))
        }
        numbers = pa.array(range(len(self.rows)), pa.int32())
        self._pair.load(self._table, {**columns, "row": ("INTEGER", numbers)})
        for operator in (*BINARY, *UNARY):
            if operator != "a || b" or "FLOAT" not in self.types:  # its digits are looked at where it is cast
                self._operator(operator)

    def _operator(self, operator: str) -> None:
        sql = f"SELECT {operator} AS x FROM {self._table}"
        ours, theirs = (
            ask(f"{sql} WHERE row < 0") for ask in (self._pair.our_answer, self._pair.their_answer)
        )
        if not (isinstance(ours, pa.Table) and isinstance(theirs, pa.Table)):
            mine, other = said_of(ours), said_of(theirs)
            if isinstance(theirs, pa.Table) and not self._pair.is_duckdb and mine == "refused":
                self._findings.refused[str(ours).splitlines()[0]] += 1
            elif mine.startswith("a foreign") or (mine == "rows") != (other == "rows"):
                self._refused(operator, mine, other)
            return
        if type_of(ours.schema[0].type) != type_of(theirs.schema[0].type):
            kinds = [type_of(answer.schema[0].type).partition("(")[0] for answer in (ours, theirs)]
            if kinds[0] == kinds[1]:
                kinds = [f"other digits: {kind}" for kind in kinds]
            self._note(operator, "type", *kinds, None)
            return
        known = self._their_values(operator)
        if known is None:
            return
        answers, failing = known
        fine = [row for row in range(len(self.rows)) if row not in failing]
        self._findings.counts["operators over columns"] += len(self.rows)
        self._compare(operator, fine, answers)
        for row in self._choose.sample(sorted(failing), min(_FAILING, len(failing))):
            answer = self._pair.our_answer(f"{sql} WHERE row = {row}")
            if said_of(answer) != "an error":
                self._note(operator, self._kind(operator, row), self._word(answer), "an error", row)
        self._constants(operator, answers, failing)

    def _their_values(self, operator: str) -> tuple[list[Any], set[int]] | None:
        """The other's answers, and the rows in which it fails."""
        sql = f"SELECT {operator} AS x FROM {self._table}"
        whole = self._pair.their_answer(f"{sql} ORDER BY row")
        if isinstance(whole, pa.Table):
            return plain(whole.column(0)), set()
        if not self._pair.is_duckdb:
            return None
        tried = self._pair.their_answer(f"SELECT TRY({operator}) AS x FROM {self._table} ORDER BY row")
        if not isinstance(tried, pa.Table):
            return None
        answers = plain(tried.column(0))
        doubtful = [row for row, value in enumerate(answers) if value is None]
        return answers, set(self._failing(sql, doubtful))

    def _failing(self, sql: str, rows: Sequence[int]) -> list[int]:
        """Those of these rows in which the other fails, by halves."""
        if not rows:
            return []
        among = ", ".join(map(str, rows))
        if isinstance(self._pair.their_answer(f"{sql} WHERE row IN ({among})"), pa.Table):
            return []
        if len(rows) == 1:
            return list(rows)
        middle = len(rows) // 2
        return self._failing(sql, rows[:middle]) + self._failing(sql, rows[middle:])

    def _compare(self, operator: str, rows: Sequence[int], answers: Sequence[Any]) -> None:
        """Rows in which the other has a value, or NULL; by halves where we fail."""
        if not rows:
            return
        among = f" WHERE row IN ({', '.join(map(str, rows))})" if len(rows) < len(self.rows) else ""
        sql = f"SELECT {operator} AS x FROM {self._table}{among} ORDER BY row"
        ours = self._pair.our_answer(sql)
        if isinstance(ours, pa.Table):
            for row, mine in zip(rows, plain(ours.column(0)), strict=True):
                self._compare_values(operator, row, mine, answers[row])
            return
        if len(rows) == 1:
            kind = self._kind(operator, rows[0], answers[rows[0]])
            self._note(operator, kind, said_of(ours), value_kind(answers[rows[0]]), rows[0])
            return
        middle = len(rows) // 2
        self._compare(operator, rows[:middle], answers)
        self._compare(operator, rows[middle:], answers)

    def _compare_values(self, operator: str, row: int, mine: Any, other: Any) -> None:
        if values_agree(mine, other):
            return
        if values_agree(mine, other, _TOLERANCE):
            if operator in ("a ** b", "a / b", "a // b", "a % b"):
                return
            self._note(operator, "last digits", "a value", "another value", row)
            return
        both = mine is not None and other is not None
        words = ("a value", "another value") if both else (value_kind(mine), value_kind(other))
        self._note(operator, self._kind(operator, row, other), *words, row)

    def _constants(self, operator: str, answers: Sequence[Any], failing: set[int]) -> None:
        """Expressions of constants are computed when a query is planned."""
        if operator == "-a":  # of constants it gives the smallest value's negative in a wider type
            return
        usable = [row for row, sides in enumerate(self.rows) if not any("\0" in side.sql for side in sides)]
        fine = [row for row in usable if row not in failing]
        rows = self._choose.sample(fine, min(_CONSTANTS, len(fine)))
        if not rows:
            return
        self._findings.counts["operators over constants"] += len(rows)
        self._compare_constants(operator, rows, answers)
        bad = [row for row in usable if row in failing]
        for row in bad[:1]:
            answer = self._pair.our_answer(f"SELECT {self._written(operator, row)}")
            if said_of(answer) != "an error":
                self._note(operator, self._kind(operator, row), self._word(answer), "an error", row)

    def _compare_constants(self, operator: str, rows: Sequence[int], answers: Sequence[Any]) -> None:
        """As `_compare`, of constants."""
        ours = self._pair.our_answer("SELECT " + ", ".join(self._written(operator, row) for row in rows))
        if isinstance(ours, pa.Table):
            for row, mine in zip(rows, ours.columns, strict=True):
                self._compare_values(operator, row, plain(mine)[0], answers[row])
        elif len(rows) == 1:
            kind = self._kind(operator, rows[0], answers[rows[0]])
            self._note(operator, kind, said_of(ours), value_kind(answers[rows[0]]), rows[0])
        else:
            middle = len(rows) // 2
            self._compare_constants(operator, rows[:middle], answers)
            self._compare_constants(operator, rows[middle:], answers)

    def _refused(self, operator: str, mine: str, other: str) -> None:
        """One of them has no such operator: named by families, since nothing is wrong then."""
        if other == "rows" and self._is_absent(operator):
            return
        if operator in UNARY:
            what = operator
        else:
            what = next((name for name, operators in _ALIKE.items() if operator in operators), operator)
        groups = {group(name) for name in self.types[: self._sides(operator)]}
        if operator in UNARY:
            given = "what is no number or BOOLEAN"
        else:
            given = ", ".join(sorted(groups)) if len(groups) == 1 else "types of different kinds"
            if len(groups) > 1 and "VARCHAR" in groups:
                given = "VARCHAR and another type"
        words = {"rows": "a value", "an error": "refused"}
        answers = words.get(mine, mine), words.get(other, other)
        found = Class(what, given, "", "any", *answers)
        shown = f"{operator} of {', '.join(self.types[: self._sides(operator)])}"
        self._findings.note(found, example_of(shown), self._seed)

    def _is_absent(self, operator: str) -> bool:
        """Whether DuckDB has no such operator, and says so only when a row is to be computed."""
        given = "a IS NOT NULL AND b IS NOT NULL"
        sql = f"SELECT {operator} AS x FROM {self._table} WHERE {given} LIMIT 1"
        return "Unimplemented type for cast" in str(self._pair.their_answer(sql))

    def _sides(self, operator: str) -> int:
        return 1 if operator in UNARY else 2

    def _word(self, answer: Any) -> str:
        return value_kind(plain(answer.column(0))[0]) if isinstance(answer, pa.Table) else said_of(answer)

    def _kind(self, operator: str, row: int, answer: Any = None) -> str:
        """What kind of values these are, and the other's answer."""
        if isinstance(answer, Decimal) and has_39_digits(answer):
            return "39 digits"
        if "INTERVAL" in self.types and operator in _ALIKE["arithmetic"]:
            sides = self.rows[row]
            if _is_beyond_a_span(operator, sides):
                return "more than 292 years"
            factors = [side.scalar.as_py() for side in sides if pa.types.is_integer(side.scalar.type)]
            if operator == "a * b" and any(factor and abs(factor) >= 2**31 for factor in factors):
                return "a factor beyond INTEGER"
        if operator == "a - b" and "TIMESTAMPTZ" in self.types and any(map(_is_cut, self.rows[row])):
            return _CUT
        kinds = {kind_of_value(side) for side in self.rows[row]} - {"any"}
        return " and ".join(sorted(kinds)) or "any"

    def _written(self, operator: str, row: int) -> str:
        sides = dict(zip("ab", (f"({side.sql})" for side in self.rows[row]), strict=True))
        return "".join(sides.get(word, word) if len(word) == 1 else word for word in _words(operator))

    def _note(self, operator: str, kind: str, ours: str, theirs: str, row: int | None) -> None:
        groups = [group(name) for name in self.types[: self._sides(operator)]]
        given = ", ".join(groups)
        shown = self._written(operator, row) if row is not None else f"{operator} of {given}"
        what = operator
        if kind == "39 digits":
            what, given = "arithmetic, bits", "HUGEINT"
        elif kind == _CUT:
            given = "TIMESTAMPTZ and a moment"
        elif kind == "more than 292 years":
            what, given = "arithmetic", "INTERVAL"
        elif operator in _ALIKE["comparisons"] and {*groups} <= {"DATE", "a timestamp"} and ours == "a value":
            what, given = "comparisons", "DATE, a timestamp"  # a value that the common type does not hold
        self._findings.note(Class(what, given, "", kind, ours, theirs), example_of(shown), self._seed)


def _is_cut(side: Value) -> bool:
    """Whether it is a moment that DuckDB's calendar of milliseconds takes for the next one."""
    kind: Any = side.scalar.type
    if not (pa.types.is_timestamp(kind) and kind.unit == "us" and side.scalar.is_valid):
        return False
    count = side.scalar.cast(pa.int64()).as_py()
    return count < _MILLISECOND and count % _MILLISECOND != 0


def _is_beyond_a_span(operator: str, sides: tuple[Value, Value]) -> bool:
    """Whether an interval comes out with more microseconds than one has here, or nearly as many."""
    numbers: list[Fraction] = []
    for side in sides:
        number = side.scalar.as_py()
        if isinstance(number, pa.MonthDayNano):
            number = number.nanoseconds // 1000
        if number is None or not math.isfinite(number):
            return False
        numbers.append(Fraction(number))
    a, b = numbers
    match operator:
        case "a + b":
            made = a + b
        case "a - b":
            made = a - b
        case "a * b":
            made = a * b
        case _:
            made = a / b if b else Fraction(0)
    return abs(made) > _MOST_MICROSECONDS


def _words(operator: str) -> list[str]:
    """Names, and what is between them."""
    words, word = [], ""
    for character in operator:
        if character.isalpha() != word[-1:].isalpha() and word:
            words.append(word)
            word = ""
        word += character
    return [*words, word]
