"""The constants of a text: what two texts have in common that differ in nothing else, and their literals.

A text is taken apart without a parser, so that one that was planned with other constants needs none. What
might be read in another way than it looks here is no constant: it is part of what texts have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
from sqlglot import exp

from bamquery.plan.assumptions import Assumptions, SpelledName
from bamquery.plan.expressions import Literal
from bamquery.plan.literals.scalars import scalar
from bamquery.sql_frontend.functions.operators import STRING, integer_literal
from bamquery.sql_frontend.syntax.positions import line_and_column
from bamquery.sql_frontend.syntax.walking import walk
from bamquery.text.statement_text import Place

_MAX_WIDTH: Final = 38
_MOST_DIGITS: Final = 308
"""What every DOUBLE can have before its point."""
_MOST_CONSTANTS: Final = 256
"""Of a text with more nobody looks at each."""
_GIVEN: Final = "given"
MARK: Final = "\0"
"""Stands in no text that has constants."""

_PIECE: Final = re.compile(
    r"""
    (?P<string>'[^']*(?:''[^']*)*')
    | (?P<word>[\w.]+)
    | "[^"]*(?:""[^"]*)*"
    | --[^\n]*
    | /\*(?:(?!/\*|\*/).)*\*/
    | (?P<unclear>['"$?{}\\] | /\* )
    """,
    re.DOTALL | re.VERBOSE,
)
"""Whatever has constants in it, or what looks like one, or from which on nothing is clear."""
_NUMBER: Final = re.compile(r"\d{1,18}(\.\d{1,18})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TextConstants:
    """A text in two parts.

    Attributes:
        shape: the text with marks in the places of its constants, which say of which kind they are.
        spans: where the constants begin and end.
        written: the constants as they are written.
    """

    shape: str
    spans: tuple[tuple[int, int], ...]
    written: tuple[str, ...]

    @classmethod
    def split(cls, text: str) -> TextConstants:
        """The text's; no constants where it is not clear what is one."""
        if MARK in text:
            return cls(text, (), ())
        shape: list[str] = []
        spans: list[tuple[int, int]] = []
        done = 0
        for piece in _PIECE.finditer(text):
            kind = piece.lastgroup
            if kind is None:
                continue
            start, end = piece.span()
            if kind == "unclear":
                return cls(text, (), ())
            if kind == "string":
                if "\\" in piece[0]:
                    continue
                if start and (text[start - 1].isalnum() or text[start - 1] in "_&'"):
                    return cls(text, (), ())  # E'...', x'...' and the like
                mark = f"{MARK}s"
            else:
                number = _NUMBER.fullmatch(text, start, end)
                if number is None:
                    continue
                mark = f"{MARK}i" if number[1] is None else f"{MARK}d"
            shape += (text[done:start], mark)
            spans.append((start, end))
            if len(spans) > _MOST_CONSTANTS:
                return cls(text, (), ())
            done = end
        shape.append(text[done:])
        return cls("".join(shape), tuple(spans), tuple(text[start:end] for start, end in spans))

    def literals(self) -> list[Literal]:
        """What the binder makes of them."""
        return [
            literal(_unquote(written), written, is_string=True)
            if written[0] == "'"
            else literal(written, written, is_string=False)
            for written in self.written
        ]


def literal(text: str, written: str, *, is_string: bool) -> Literal:
    """A constant.

    Args:
        text: as sqlglot has it.
        written: as the statement has it: 0.5 is DECIMAL(2, 1), .5 is DECIMAL(1, 1).
        is_string: whether it is in quotes.

    Raises:
        ValueError: it is a number of too many digits.
    """
    if is_string:
        return Literal(scalar(text, STRING))
    if "e" in text.lower():
        return Literal(scalar(float(text), pa.float64()))
    if "." not in text:
        if len(text) > _MOST_DIGITS:
            raise ValueError(f"a number of {len(text):,} digits is larger than any type holds")
        return integer_literal(int(text))
    written = written.replace("_", "")
    width, scale = len(written) - 1, len(written.partition(".")[2])
    if width > _MAX_WIDTH:
        return Literal(scalar(float(text), pa.float64()))
    return Literal(scalar(Decimal(text), pa.decimal128(width, scale)))


def _unquote(written: str) -> str:
    return written[1:-1].replace("''", "'")


def mark_constants(trees: Iterable[exp.Expr], constants: TextConstants, assumptions: Assumptions) -> None:
    """Note in a text's trees which literals its constants are.

    Who reads one, but for `given_literal`, makes the plan one for this constant, and so does a constant that
    is no literal's of its own: the parser has read it.
    """
    numbers = {start: number for number, (start, _) in enumerate(constants.spans)}
    unread = set(numbers.values())
    for node in _literals(trees):
        start = node.meta.get("start")
        number = None if start is None else numbers.get(start)
        if number is not None and _is_written(node, *constants.spans[number], constants.written[number]):
            _watch(node, assumptions, number)
            unread.discard(number)
    assumptions.fix(frozenset(unread))


def mark_given(value: exp.Expr, assumptions: Assumptions, number: int) -> None:
    """Note that a value, or what it is made of, is this constant; NULL, TRUE and FALSE are none."""
    node = value if isinstance(value, exp.Literal) else value.args.get("this")
    if isinstance(node, exp.Literal):
        _watch(node, assumptions, number)


def _watch(node: exp.Literal, assumptions: Assumptions, number: int) -> None:
    node.meta[_GIVEN] = given = _Given(assumptions, number)
    node.args = _Watched(node.args, given)


def given_literal(node: exp.Literal, value: Literal) -> Literal:
    """The literal that a node is bound to, with its origin."""
    given: _Given | None = node.meta.get(_GIVEN)
    return value if given is None else given.assumptions.add_constant(value, given.number)


class NamedConstants:
    """The constants of a text that a name is made of; in the name they stand as numbers between marks."""

    def __init__(self) -> None:
        self._words: dict[int, str] = {}
        self._assumptions: Assumptions | None = None

    def mark(self, node: exp.Literal, written: str) -> str:
        """What to put for a literal that is written so."""
        given: _Given | None = node.meta.get(_GIVEN)
        if given is None:
            return written
        self._assumptions = given.assumptions
        self._words[given.number] = written
        return f"{MARK}{given.number}{MARK}"

    def name(self, marked: str) -> str:
        """The name of a text with marks."""
        if self._assumptions is None:
            return marked
        return SpelledName(marked.split(MARK), self._words, self._assumptions)


def text_of(node: exp.Literal) -> str:
    """What a literal's node says, for who makes a literal of it."""
    arguments = node.args
    return str(arguments.unwatched() if isinstance(arguments, _Watched) else arguments["this"])


def _literals(trees: Iterable[exp.Expr]) -> Iterator[exp.Literal]:
    return (node for tree in trees for node in walk(tree) if type(node) is exp.Literal)


def _is_written(node: exp.Literal, start: int, end: int, written: str) -> bool:
    if node.meta.get("end") != end - 1 or bool(node.args["is_string"]) != (written[0] == "'"):
        return False
    return bool(node.args["this"] == (_unquote(written) if written[0] == "'" else written))


class _Given:
    """Which constant of the text a node is; copies of the node are the same."""

    __slots__ = ("assumptions", "number")

    def __init__(self, assumptions: Assumptions, number: int) -> None:
        self.assumptions = assumptions
        self.number = number

    def fix(self) -> None:
        self.assumptions.fix(frozenset((self.number,)))

    def __deepcopy__(self, memo: object) -> _Given:
        return self


class _Watched(dict[str, Any]):
    """Arguments of a literal's node; who reads what it says, to copy it for one, fixes it."""

    __slots__ = ("_given",)

    def __init__(self, arguments: dict[str, Any], given: _Given) -> None:
        super().__init__(arguments)
        self._given = given

    def unwatched(self) -> Any:
        """What the node says, for who makes a literal of it that knows where it comes from."""
        return super().__getitem__("this")

    def __getitem__(self, key: str) -> Any:
        if key == "this":
            self._given.fix()
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        if key == "this":
            self._given.fix()
        return super().get(key, default)

    def items(self) -> Any:
        self._given.fix()
        return super().items()

    def pop(self, *arguments: Any) -> Any:
        self._given.fix()
        return super().pop(*arguments)


Spans: TypeAlias = tuple[tuple[int, int], ...]


def move_place(before: Spans, now: Spans, text: str, old: str, place: Place) -> Place:
    """Where a place of one text is in another one of its shape, by where constants begin and end in them."""
    if place.sql != old:
        return place
    lines = old.splitlines(keepends=True)
    offset = sum(map(len, lines[: place.line - 1])) + place.column - 1
    moved = offset + sum(
        (other_end - other_start) - (end - start)
        for (start, end), (other_start, other_end) in zip(before, now, strict=True)
        if end <= offset
    )
    return Place(text, *line_and_column(text, moved))
