"""What a run finds: differences by class, and those of them that docs/sql.md lists.

A class is what was asked, the types that went in and came out, what kind of value it was, and both answers in
a word. The table in docs/sql.md between the two marks is what runs take as known: a class that is not there
fails them, and `--write-differences` writes it there.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.type_groups import is_numeric
from tests.sql.randomized.casts.extremes import TYPES, Value

DOCUMENT: Final = Path(__file__).parents[4] / "docs" / "sql.md"
_BEGIN: Final = "<!-- differences: begin (python -m tests.sql.randomized.casts.run --write-differences) -->"
_END: Final = "<!-- differences: end -->"
_HEAD: Final = (
    "| what | of | to | kind of value | BamQuery | DuckDB | for example |",
    "|---|---|---|---|---|---|---|",
)
_SHOWN_CHARACTERS: Final = 80


@dataclass(frozen=True, order=True, slots=True)
class Class:
    """One kind of difference.

    Attributes:
        what: "cast", "read_csv", an operator, a function.
        source: types that went in.
        target: the type wanted or given, "" where the operator decides it.
        kind: of the value.
        ours, theirs: in a word or two.
    """

    what: str
    source: str
    target: str
    kind: str
    ours: str
    theirs: str


@dataclass
class Findings:
    """Counts of what was asked, and an example of each class of difference.

    Attributes:
        counts: of each `what`.
        refused: what BamQuery says that it does not do, by its words.
        examples: the shortest statement of each class.
        numbers: how many of each class.
        seeds: a seed for each class.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: dict[Class, str] = field(default_factory=dict)
    numbers: Counter[Class] = field(default_factory=Counter)
    seeds: dict[Class, int] = field(default_factory=dict)
    first: int = 0
    """After how many there was the first difference that is not known, 0 for none."""

    def note(self, found: Class, example: str, seed: int) -> None:
        """Count a difference."""
        self.numbers[found] += 1
        if found not in self.examples or len(example) < len(self.examples[found]):
            self.examples[found] = example
            self.seeds[found] = seed

    def add(self, other: Findings) -> None:
        """Count another's too."""
        self.counts += other.counts
        self.refused += other.refused
        self.numbers += other.numbers
        for found, example in other.examples.items():
            if found not in self.examples or len(example) < len(self.examples[found]):
                self.examples[found] = example
                self.seeds[found] = other.seeds[found]

    @property
    def total(self) -> int:
        """All that was asked."""
        return sum(self.counts.values())

    def new(self, known: Iterable[Class]) -> list[Class]:
        """Classes that are not listed."""
        return sorted(set(self.examples) - set(known))


def value_kind(value: Any) -> str:
    """An answer in a word: NULL, or "a value"."""
    return "NULL" if value is None else "a value"


_TEXTS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("infinite", re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)),
    ("number with an exponent", re.compile(r"\s*[+-]?[\d_]*\.?[\d_]*[eE][+-]?[\d_]+\s*")),
    ("number", re.compile(r"\s*[+-]?[\d_.]+\s*")),
    # DuckDB looks for a zone behind it, and reads the byte behind the text.
    ("moment with an offset that ends with a colon", re.compile(r".*\d[+-]\d\d?(?::\d\d?)?:\s*", re.DOTALL)),
    ("interval", re.compile(r".*\d\s*[a-z]+.*|.*:.*|\s*-?\d+\s*", re.IGNORECASE | re.DOTALL)),
)


def kind_of_text(text: str) -> str:
    """What a text looks like, as far as differences depend on it."""
    return next((name for name, pattern in _TEXTS if pattern.fullmatch(text)), "another text")


_SEPARATED: Final = (
    ("number with _ behind 8 digits of a fraction", re.compile(r"[\d_]*\.(?:\d{8}){1,2}_\d")),
    ("number with _ among more than 19 digits", re.compile(r"(?=(?:[_.]?\d){20})[\d.]*_")),
)


def kind_of_separated(text: str) -> str | None:
    """Of a number with separators where DuckDB's reader of floats stops, or counts them as digits."""
    number = text.lstrip(" \t\n\r\v\f+-")
    return next((name for name, pattern in _SEPARATED if pattern.match(number)), None)


def kind_of_value(value: Value) -> str:
    """What kind of value it is, as far as differences depend on it."""
    plain = value.scalar.as_py() if pa.types.is_large_string(value.scalar.type) or _is_number(value) else None
    if plain is None:
        return "any"
    if isinstance(plain, str):
        return kind_of_text(plain)
    if isinstance(plain, float) and not math.isfinite(plain):
        return "NaN or infinite"
    return "39 digits" if has_39_digits(plain) else "any"


def has_39_digits(number: Any) -> bool:
    """Whether DuckDB's HUGEINT holds a number that 38 digits do not."""
    return not -_MOST < number < _MOST  # abs() would round a Decimal


_MOST: Final = 10**38


def _is_number(value: Value) -> bool:
    return is_numeric(value.scalar.type)


def group(name: str) -> str:
    """What a type is one of: differences seldom depend on the width."""
    kind = TYPES[name]
    if pa.types.is_integer(kind):
        return "an integer"
    if pa.types.is_floating(kind):
        return "a float"
    if pa.types.is_time(kind):
        return "a time"
    return "a timestamp" if pa.types.is_timestamp(kind) else name.partition("(")[0]


def known_classes() -> dict[Class, str]:
    """The classes that docs/sql.md lists, and their examples."""
    lines = DOCUMENT.read_text().split(_BEGIN)[1].split(_END)[0].strip().splitlines()[len(_HEAD) :]
    found = {}
    for line in lines:
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        what, sources, targets, kind, ours, theirs, example = cells
        for source in sources.split("; "):
            for target in targets.split("; "):
                found[Class(what.strip("`"), source, target, kind, ours, theirs)] = example
    return found


def write(classes: dict[Class, str]) -> None:
    """List these classes in docs/sql.md, and no others; those alike but for their types in one line."""
    by_target: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for found, example in sorted(classes.items()):
        rest = (found.what, found.source, found.kind, found.ours, found.theirs)
        by_target[rest][found.target] = example
    by_source: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for (what, source, kind, ours, theirs), targets in by_target.items():
        example = min(targets.values(), key=len)
        by_source[what, "; ".join(sorted(targets)), kind, ours, theirs][source] = example
    rows = []
    for (what, targets_, kind, ours, theirs), sources in sorted(by_source.items()):
        example = min(sources.values(), key=len)
        cells = (f"`{what}`", "; ".join(sorted(sources)), targets_, kind, ours, theirs, example)
        rows.append("| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in cells) + " |")
    text = DOCUMENT.read_text()
    before, rest_ = text.split(_BEGIN)
    after = rest_.split(_END)[1]
    DOCUMENT.write_text(before + "\n".join((_BEGIN, *_HEAD, *rows, _END)) + after)


def example_of(sql: str) -> str:
    """A statement's part as it stands in the table."""
    shown = sql if len(sql) <= _SHOWN_CHARACTERS else sql[:_SHOWN_CHARACTERS] + "…"
    printable = shown.encode("unicode_escape").decode("ascii") if not shown.isprintable() else shown
    return f"`{printable}`"
