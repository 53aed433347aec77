"""Numbers, dollar quotes, bytes and escapes as DuckDB reads them: a sign belongs right behind an `e`."""

from __future__ import annotations

import inspect
import re
from types import MappingProxyType
from typing import Any, Final

from sqlglot.tokenizer_core import TokenizerCore, TokenType

from bamquery.statement_context.cancellation import check_cancelled

_DIGITS: Final = r"\d+(?:_\d+)*"
_EXPONENT: Final = rf"(?:[eE][+-]?{_DIGITS})?"
_NUMBER: Final = re.compile(rf"{_DIGITS}(?:\.(?:{_DIGITS})?)?{_EXPONENT}", re.ASCII)
_BEHIND_POINT: Final = re.compile(_DIGITS + _EXPONENT, re.ASCII)  # sqlglot joins .5 later
# What cannot go on behind a number: an exponent without digits, a second one, or a point after either.
_NO_NUMBER: Final = re.compile(r"(?:[eE][+-]?(?!\w)|(?<=[\d.])\.|(?<=\d)[eE]\d)[\w.]*")
_BYTES: Final = re.compile(r"[xX]'([^']*)'")
_ESCAPED: Final = re.compile(r"[eE]'((?:[^'\\]|\\.|'')*)'", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\([0-7]{1,3})|\\x([0-9a-fA-F]{1,2})|\\(.)|('')|([^'\\]+)", re.DOTALL)
_LETTERS: Final = MappingProxyType({"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"})
_DOLLAR_QUOTE: Final = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_OPTIONS: Final = tuple(inspect.signature(TokenizerCore).parameters)


def _unescape(text: str) -> str:
    """What stands between the quotes of an E'' string; escapes of bytes have to make UTF-8."""
    pieces = (_escaped_bytes(piece) for piece in _ESCAPE.finditer(text))
    data = b"".join(pieces)
    if b"\0" in data:
        raise ValueError("it has a zero byte")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("its bytes are no UTF-8") from None


def _escaped_bytes(piece: re.Match[str]) -> bytes:
    octal, hexadecimal, letter, quote, plain = piece.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes.fromhex(hexadecimal.zfill(2))
    if letter is not None:
        return _LETTERS.get(letter, letter).encode()
    return b"'" if quote is not None else plain.encode()


_MOST_DIGITS: Final = 308
"""Of an integer, which a DOUBLE holds at least nearly."""


class LiteralError(ValueError):
    """A text that begins like a number, or like bytes, and is none."""

    def __init__(self, words: str, offset: int) -> None:
        super().__init__(words)
        self.offset = offset


class NumberScanner(TokenizerCore):
    """sqlglot's tokenizer, which would take `1e3+2` for one number, `$1,$` for a quote and no `x''`."""

    def _add(self, token_type: TokenType, text: str | None = None) -> None:
        check_cancelled()
        super()._add(token_type, text)

    def _scan_string(self, start: str) -> bool:
        if start == "$" and _DOLLAR_QUOTE.match(self.sql, self._start) is None:
            self._add(self.heredoc_string_alternative)
            return True
        written = _BYTES.match(self.sql, self._start)
        if written is not None and start in ("x'", "X'"):
            wrong = re.search("[^0-9a-fA-F]", written[1])
            if wrong is not None or len(written[1]) % 2:
                why = f"{wrong[0]} is no hexadecimal digit" if wrong else "two hexadecimal digits make a byte"
                raise LiteralError(f"{written[0]} is not a BLOB: {why}", self._start)
            self._advance(written.end() - self._current)
            self._add(TokenType.HEX_STRING, written[1])
            return True
        if start in ("e'", "E'"):
            return self._scan_escaped()
        return bool(super()._scan_string(start))

    def _scan_escaped(self) -> bool:
        r"""`E'a\n'`: a string like any other once its backslashes are read."""
        written = _ESCAPED.match(self.sql, self._start)
        if written is None:
            return bool(super()._scan_string(self.sql[self._start : self._start + 2]))  # it is not closed
        try:
            text = _unescape(written[1])
        except ValueError as error:
            raise LiteralError(f"{written[0]} is not a string: {error}", self._start) from None
        self._advance(written.end() - self._current)
        self._add(TokenType.STRING, text)
        return True

    def _scan_number(self) -> None:
        before = self.sql[self._start - 1 : self._start]
        number = (_BEHIND_POINT if before in (".", "$") else _NUMBER).match(self.sql, self._start)
        assert number is not None, "sqlglot has seen a digit"
        wrong = _NO_NUMBER.match(self.sql, number.end())
        if wrong is not None:
            raise LiteralError(f"{self.sql[self._start : wrong.end()]} is not a number", self._start)
        written = number[0].replace("_", "")
        if written.isdigit() and len(written.lstrip("0")) > _MOST_DIGITS:
            words = f"an integer of {len(written)} digits is more than any type holds: write it as a text"
            raise LiteralError(words, self._start)
        self._advance(number.end() - self._current)
        self._add(TokenType.NUMBER, written)


def number_scanner(core: Any) -> NumberScanner:
    """With what sqlglot has prepared for a core of its own."""
    return NumberScanner(**{name: getattr(core, name) for name in _OPTIONS})
