"""Colours for what is typed, line by line: again only where a line or one before it changed.

Pygments' SqlLexer knows neither dollar quotes nor nested comments, and reads a paste of ten thousand lines
anew at each key; its names for kinds of text, and with them all of its styles, are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Final

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from bamquery.shell.input_text import is_command
from bamquery.shell.keywords import CONSTANTS, KEYWORDS, TYPES
from bamquery.shell.scanner import NORMAL, Kind, State, Token, scan

COMMAND: Final = "class:pygments.name.decorator"
_STYLES: Final = {
    Kind.SPACE: "",
    Kind.COMMENT: "class:pygments.comment",
    Kind.NAME: "class:pygments.name.variable",
    Kind.STRING: "class:pygments.literal.string",
    Kind.NUMBER: "class:pygments.literal.number",
    Kind.PARAMETER: "class:pygments.name.variable.global",
    Kind.OPERATOR: "class:pygments.operator",
}
_KEYWORD: Final = "class:pygments.keyword"
_TYPE: Final = "class:pygments.keyword.type"
_CONSTANT: Final = "class:pygments.keyword.constant"
_FUNCTION: Final = "class:pygments.name.function"
_PLAIN: Final = "class:pygments.name"

_REMEMBERED_LINES: Final = 50_000
_LONG_LINE: Final = 20_000
"""Characters of a line beyond which it is shown without colours."""


class SqlHighlighter(Lexer):
    """For prompt_toolkit; a first line that is a dot-command is one as a whole."""

    def __init__(self) -> None:
        self._lines: tuple[str, ...] = ()
        self._states: list[State] = [NORMAL]

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """See prompt_toolkit."""
        lines = tuple(document.lines)
        if lines and is_command(lines[0]):
            return lambda number: [(COMMAND, lines[number])] if number < len(lines) else []
        # The states before lines stay as they are up to the first line that differs.
        same = 0
        for before, now in zip(self._lines, lines, strict=False):
            if before != now:
                break
            same += 1
        self._lines = lines
        del self._states[same + 1 :]

        def line(number: int) -> StyleAndTextTuples:
            if number >= len(lines):
                return []
            states = self._states if self._lines is lines else [NORMAL]
            while len(states) <= number:
                states.append(highlight_line(lines[len(states) - 1], states[-1])[1])
            return highlight_line(lines[number], states[number])[0]

        return line

    def invalidation_hash(self) -> Hashable:
        """See prompt_toolkit."""
        return id(self)


@lru_cache(maxsize=_REMEMBERED_LINES)
def highlight_line(line: str, state: State) -> tuple[StyleAndTextTuples, State]:
    """A line's pieces with their styles, and the state that the next line begins in."""
    tokens, behind = scan(line + "\n", state)
    if len(line) > _LONG_LINE:
        return [("", line)], behind
    pieces: StyleAndTextTuples = []
    for position, token in enumerate(tokens):
        text = token.text.removesuffix("\n") if token.end > len(line) else token.text
        if text:
            pieces.append((_style(tokens, position), text))
    return pieces, behind


def _style(tokens: list[Token], position: int) -> str:
    token = tokens[position]
    if token.kind is not Kind.WORD:
        return _STYLES[token.kind]
    after = tokens[position + 1].text if position + 1 < len(tokens) else ""
    before = tokens[position - 1].text if position else ""
    word = token.text.upper()
    if before == ".":
        return _PLAIN
    if word in CONSTANTS:
        return _CONSTANT
    if word in TYPES and after != "(":
        return _TYPE
    if word in KEYWORDS and not (after == "(" and word in ("LEFT", "RIGHT", "REPLACE", "FIRST", "LAST")):
        return _KEYWORD
    return _FUNCTION if after == "(" else _PLAIN
