"""Casts from one type to all others, over extremes and random values: columns, constants and files."""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.data_types.type_groups import integer_range
from tests.sql.randomized.casts.compare import Pair, differences, is_of_values, values_agree
from tests.sql.randomized.casts.compare import answer_kind as said_of
from tests.sql.randomized.casts.extremes import TYPES, Value, column, draw_value, extremes
from tests.sql.randomized.casts.findings import (
    Class,
    Findings,
    example_of,
    group,
    kind_of_separated,
    kind_of_value,
    value_kind,
)
from tests.values import plain

_EXTREMES: Final = 150
_DRAWN: Final = 150
_CONSTANTS: Final = 40
_CONSTANT_TARGETS: Final = 5
_FAILING: Final = 2
"""Rows of each pair of types that are cast one by one, since they are to fail."""

_NEARLY: Final = 1e-12
"""Floats that differ by no more of their size do so in the last digits."""


class Casts:
    """What one seed asks: the values of one type, cast to every other."""

    def __init__(self, pair: Pair, seed: int, findings: Findings) -> None:
        self._pair = pair
        self._seed = seed
        self._findings = findings
        self._choose = random.Random(seed)
        names = list(TYPES)
        # Texts are what most goes wrong with.
        self.source = "VARCHAR" if seed % 2 else names[seed // 2 % len(names)]
        self.values = self._values()
        self._table = "spans" if self.source == "INTERVAL" else "given"

    def _values(self) -> list[Value]:
        found = list(extremes(self.source))
        self._choose.shuffle(found)
        return found[:_EXTREMES] + [draw_value(self._choose, self.source) for _ in range(_DRAWN)]

    def ask(self) -> None:
        """All of it."""
        rows = pa.array(range(len(self.values)), pa.int32())
        columns = {"x": (self.source, column(self.source, self.values)), "row": ("INTEGER", rows)}
        self._pair.load(self._table, columns)
        constant_targets = self._choose.sample(list(TYPES), _CONSTANT_TARGETS)
        for target in TYPES:
            asked = self._columns(target)
            if asked is None:
                continue
            ours, theirs = asked
            self._failing(target, theirs)
            if target in constant_targets:
                self._constants(target, theirs)
            if self.source == "VARCHAR":
                self._read_by_arrow(target, theirs)
                if target in constant_targets and target != "INTERVAL":
                    self._file(target, ours, theirs)

    def _columns(self, target: str) -> tuple[list[Any], list[Any]] | None:
        """TRY_CAST of the column by both, None where one of them has no such cast."""
        sql = f"SELECT TRY_CAST(x AS {target}) FROM {self._table} ORDER BY row"
        ours, theirs = self._pair.our_answer(sql), self._pair.their_answer(sql)
        if not isinstance(theirs, pa.Table):
            if isinstance(ours, pa.Table):
                self._note("cast", target, "any", "a cast", said_of(theirs), f"{self.source}::{target}")
            return None
        there = plain(theirs.column(0))
        if not isinstance(ours, pa.Table):
            if all(value is None for value in there):  # neither has it
                return None
            if not self._pair.is_duckdb and said_of(ours) == "refused":
                self._findings.refused[str(ours).splitlines()[0]] += 1
                return None
            self._note("cast", target, "any", said_of(ours), "a cast", f"{self.source}::{target}")
            return None
        if all(value is None for value in there) and self._pair.is_duckdb and self._is_absent(target):
            self._note("cast", target, "any", "a cast", "no cast", f"{self.source}::{target}")
            return None
        self._findings.counts["casts of columns"] += len(there)
        for found in differences(ours, theirs):
            if found.row < 0:
                self._note("cast", target, "type", found.ours, found.theirs, f"{self.source}::{target}")
            else:
                self._differ("cast", target, found.row, found.ours, found.theirs)
        return plain(ours.column(0)), there

    def _is_absent(self, target: str) -> bool:
        """Whether DuckDB has no such cast, and says so only when it is to be done."""
        sql = f"SELECT CAST(x AS {target}) FROM {self._table} WHERE x IS NOT NULL LIMIT 1"
        return "Unimplemented type for cast" in str(self._pair.their_answer(sql))

    def _failing(self, target: str, theirs: Sequence[Any]) -> None:
        """CAST: the same values where there are some, an error in each other row."""
        sql = f"SELECT CAST(x AS {target}) FROM {self._table} WHERE TRY_CAST(x AS {target}) IS NOT NULL"
        kept = self._pair.our_answer(sql)
        tried = self._pair.our_answer(sql.replace("SELECT CAST", "SELECT TRY_CAST"))
        self._findings.counts["casts of columns"] += len(theirs)
        if differences(kept, tried):
            self._note("CAST", target, "any", said_of(kept), "what TRY_CAST gives", sql)
        bad = [row for row, value in enumerate(theirs) if value is None and not self.values[row].is_null]
        for row in self._choose.sample(bad, min(_FAILING, len(bad))):
            answer = self._pair.our_answer(f"SELECT CAST(x AS {target}) FROM {self._table} WHERE row = {row}")
            self._findings.counts["casts that fail"] += 1
            if not is_of_values(answer):
                given = plain(answer.column(0))[0] if isinstance(answer, pa.Table) else None
                if given is not None:  # TRY_CAST gave it, too: it is counted there
                    continue
                self._note(
                    "CAST",
                    target,
                    self._kind(row, target),
                    said_of(answer),
                    "an error",
                    self._shown(row, target),
                )

    def _constants(self, target: str, theirs: Sequence[Any]) -> None:
        """Constants are converted when a query is planned."""
        rows = [row for row, value in enumerate(self.values) if "\0" not in value.sql]
        rows = self._choose.sample(rows, min(_CONSTANTS, len(rows)))
        self._findings.counts["casts of constants"] += len(rows)
        self._compare_constants(target, rows, theirs)
        bad = [row for row in rows if theirs[row] is None and not self.values[row].is_null]
        for row in bad[:_FAILING]:
            answer = self._pair.our_answer(f"SELECT CAST({self.values[row].sql} AS {target})")
            self._findings.counts["casts that fail"] += 1
            if said_of(answer) not in ("an error", "rows"):
                self._note(
                    "CAST",
                    target,
                    self._kind(row, target),
                    said_of(answer),
                    "an error",
                    self._shown(row, target),
                )

    def _compare_constants(self, target: str, rows: Sequence[int], theirs: Sequence[Any]) -> None:
        """Those of these rows that differ as constants; by halves where we fail."""
        parts = [f"TRY_CAST({self.values[row].sql} AS {target})" for row in rows]
        ours = self._pair.our_answer("SELECT " + ", ".join(parts))
        if isinstance(ours, pa.Table):
            for row, answer in zip(rows, ours.columns, strict=True):
                mine = plain(answer)[0]
                if not values_agree(mine, theirs[row]):
                    self._differ("cast", target, row, mine, theirs[row])
        elif len(rows) == 1:
            kind = self._kind(rows[0], target)
            self._note("cast", target, kind, said_of(ours), value_kind(theirs[rows[0]]), parts[0])
        else:
            middle = len(rows) // 2
            self._compare_constants(target, rows[:middle], theirs)
            self._compare_constants(target, rows[middle:], theirs)

    def _read_by_arrow(self, target: str, theirs: Sequence[Any]) -> None:
        """Texts that Arrow reads are asked among themselves: then nothing else looks at them."""
        kind = TYPES[target]
        rows = [row for row, value in enumerate(self.values) if _arrow_reads(value.scalar, kind)]
        if not rows:
            return
        among = ", ".join(map(str, rows))
        ours = self._pair.our_answer(
            f"SELECT TRY_CAST(x AS {target}) FROM {self._table} WHERE row IN ({among}) ORDER BY row"
        )
        self._findings.counts["casts of columns"] += len(rows)
        if not isinstance(ours, pa.Table):
            self._note("cast", target, "any", said_of(ours), "values", f"{self.source}::{target}")
            return
        for row, mine in zip(rows, plain(ours.column(0)), strict=True):
            if not values_agree(mine, theirs[row]):
                self._differ("cast", target, row, mine, theirs[row])

    def _file(self, target: str, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
        """Texts of a CSV file that is read as the type."""
        texts = [value.scalar.as_py() for value in self.values]
        fine = [
            row
            for row, text in enumerate(texts)
            if None not in (ours[row], theirs[row]) and text and not set(text) & set("\0\r\n\"'")
        ]
        bad = [row for row, text in enumerate(texts) if theirs[row] is None and text and text.isalnum()]
        groups = [fine, *([row] for row in self._choose.sample(bad, min(_FAILING, len(bad))))]
        for rows in groups:
            if not rows:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "x.csv")
                with path.open("w", newline="") as file:
                    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
                    writer.writerows([["x"], *([texts[row]] for row in rows)])
                sql = (
                    f"SELECT * FROM read_csv('{path}', header = true, delim = ',', quote = '\"', "
                    f"columns = {{'x': '{target}'}})"
                )
                answers = self._pair.our_answer(sql), self._pair.their_answer(sql)
            self._findings.counts["fields of files"] += len(rows)
            for found in differences(*answers):
                if found.row >= 0:
                    self._differ("read_csv", target, rows[found.row], found.ours, found.theirs)
                else:
                    row = rows[0]
                    kind = self._kind(row, target) if len(rows) == 1 else "any"
                    self._note("read_csv", target, kind, found.ours, found.theirs, self._shown(row, target))

    def _differ(self, what: str, target: str, row: int, ours: Any, theirs: Any) -> None:
        kind = self._kind(row, target)
        separated = self._separated(row, target)
        are_floats = isinstance(ours, float) and isinstance(theirs, float)
        if are_floats and values_agree(ours, theirs, _NEARLY) and separated is None:
            mine, other, kind = "nearest", "nearly the nearest", "last digits"
        elif ours is not None and theirs is not None:
            mine, other = "a value", "another value"
            if self.source == "FLOAT" and target == "VARCHAR" and np.float32(ours) == np.float32(theirs):
                kind = "digits beyond the shortest"
        else:
            mine, other = value_kind(ours), value_kind(theirs)
        self._note(what, target, separated or kind, mine, other, self._shown(row, target))

    def _kind(self, row: int, target: str) -> str:
        kind = kind_of_value(self.values[row])
        if kind.startswith("number") and _is_beyond(self.values[row].scalar.as_py(), TYPES[target]):
            return f"{kind} beyond the type"
        return kind

    def _separated(self, row: int, target: str) -> str | None:
        """The kind of a text that DuckDB reads wrongly as a float, None of others."""
        is_text = self.source == "VARCHAR" and not self.values[row].is_null
        if not (is_text and pa.types.is_floating(TYPES[target])):
            return None
        return kind_of_separated(self.values[row].scalar.as_py())

    def _shown(self, row: int, target: str) -> str:
        return f"CAST({self.values[row].sql} AS {target})"

    def _note(self, what: str, target: str, kind: str, *answers: str) -> None:
        ours, theirs, example = answers
        found = Class(what, group(self.source), group(target), kind, ours, theirs)
        self._findings.note(found, example_of(example), self._seed)


def _is_beyond(text: str, kind: Any) -> bool:
    """Whether a text is a number that an exact type does not hold."""
    if pa.types.is_decimal(kind):
        low, high = -(10 ** (kind.precision - kind.scale)), 10 ** (kind.precision - kind.scale)
    elif pa.types.is_integer(kind):
        low, high = integer_range(kind)
        low, high = low - 1, high + 1
    else:
        return False
    try:
        return not low < Decimal(text.strip().replace("_", "")) < high
    except InvalidOperation:
        return False


def _arrow_reads(text: pa.Scalar[Any], kind: pa.DataType) -> bool:
    if not text.is_valid:
        return False
    if pa.types.is_decimal(kind) and "e" in text.as_py().lower():
        return False  # Arrow's reader looks beyond its table of powers, and may end the process
    try:
        text.cast(kind)
    except (pa.ArrowException, NotImplementedError):
        return False
    return True
