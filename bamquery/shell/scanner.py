"""SQL text as tokens, never as errors: for highlighting, completion, and where statements end.

A parser's tokenizer refuses what is not finished yet, and begins anew at each key; this one goes on from the
state in which the line before ended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """What a token is."""

    SPACE = "space"
    COMMENT = "comment"
    WORD = "word"
    """A keyword or a name without quotes."""
    NAME = "name"
    """A name in double quotes."""
    STRING = "string"
    NUMBER = "number"
    PARAMETER = "parameter"
    """`?`, `$1`, `$name`."""
    OPERATOR = "operator"
    """One character, `;` among them, or an operator of several."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, from `start` up to `end`."""

    kind: Kind
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """What the scanner is in the middle of: nothing, or what a `closing` ends.

    Attributes:
        kind: of the token that is not finished, None between tokens.
        closing: what ends it: `'`, `"`, `*/` or the tag of a dollar quote.
        depth: how many comments are open, as they nest.
        escapes: whether a backslash takes the next character's meaning.
    """

    kind: Kind | None = None
    closing: str = ""
    depth: int = 0
    escapes: bool = False


NORMAL: Final = State()

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*)
    | (?P<open>/\*|[eE]'|'|"|\$(?:[^\W\d]\w*)?\$)
    | (?P<parameter>\$\w+|\?)
    | (?P<number>0[xX][0-9a-fA-F_]+|(?:\d[\d_]*)?\.\d[\d_]*(?:[eE][+-]?\d+)?|\d[\d_]*\.?(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<operator>::|\|\||<>|!=|>=|<=|==|->>|->|\*\*|//|<<|>>|:=|=>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")


def scan(text: str, state: State = NORMAL) -> tuple[list[Token], State]:
    """All tokens of the text, which together are the text, and the state behind it.

    A token that does not end with the text is there as far as it goes.
    """
    tokens: list[Token] = []
    place = 0
    if state.kind is not None:
        place, state = _scan_rest(text, 0, state, tokens, 0)
    while place < len(text) and state.kind is None:
        match = _TOKEN.match(text, place)
        assert match is not None  # the last alternative takes any character
        group = match.lastgroup
        assert group is not None
        if group != "open":
            tokens.append(Token(Kind(group), place, match.end(), match.group()))
            place = match.end()
            continue
        place, state = _scan_rest(text, match.end(), _state_inside(match.group()), tokens, place)
    return tokens, state


def _state_inside(opening: str) -> State:
    if opening == "/*":
        return State(Kind.COMMENT, "*/", 1)
    if opening == '"':
        return State(Kind.NAME, '"')
    if opening[0] == "$":
        return State(Kind.STRING, opening)
    return State(Kind.STRING, "'", escapes=len(opening) > 1)


def _scan_rest(text: str, place: int, state: State, tokens: list[Token], start: int) -> tuple[int, State]:
    """Add the token from `start` whose inside goes on at `place`; where it ends, and the state."""
    end, behind = _scan_inside(text, place, state)
    if end > start:
        assert state.kind is not None
        tokens.append(Token(state.kind, start, end, text[start:end]))
    return end, behind


def _scan_inside(text: str, place: int, state: State) -> tuple[int, State]:
    if state.kind is Kind.COMMENT:
        return _inside_comment(text, place, state)
    closing = state.closing
    while True:
        found = text.find(closing, place)
        if state.escapes:
            escape = text.find("\\", place, found if found >= 0 else len(text))
            if escape >= 0:
                place = min(escape + 2, len(text))
                continue
        if found < 0:
            return len(text), state
        place = found + len(closing)
        # A quote that is doubled stands for itself.
        if closing in "'\"" and text.startswith(closing, place):
            place += 1
            continue
        return place, NORMAL


def _inside_comment(text: str, place: int, state: State) -> tuple[int, State]:
    depth = state.depth
    for edge in _COMMENT_EDGE.finditer(text, place):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end(), NORMAL
    return len(text), State(Kind.COMMENT, "*/", depth)


def meaningful(tokens: Sequence[Token]) -> list[Token]:
    """Without spaces and comments."""
    return [token for token in tokens if token.kind not in (Kind.SPACE, Kind.COMMENT)]
