"""Numbers in a text, and dollar quotes, read as DuckDB reads them: a sign belongs right behind an `e`."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenizerCore, TokenType

_DIGITS: Final = r"\d+(?:_\d+)*"
_EXPONENT: Final = rf"(?:[eE][+-]?{_DIGITS})?"
_NUMBER: Final = re.compile(rf"{_DIGITS}(?:\.(?:{_DIGITS})?)?{_EXPONENT}", re.ASCII)
_BEHIND_POINT: Final = re.compile(_DIGITS + _EXPONENT, re.ASCII)  # sqlglot joins .5 later
# What cannot go on behind a number: an exponent without digits, a second one, or a point after either.
_NO_NUMBER: Final = re.compile(r"(?:[eE][+-]?(?!\w)|(?<=[\d.])\.|(?<=\d)[eE]\d)[\w.]*")
_DOLLAR_QUOTE: Final = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_OPTIONS: Final = tuple(inspect.signature(TokenizerCore).parameters)


class NumberError(ValueError):
    """A text that begins like a number and is none."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(f"{text} is not a number")
        self.offset = offset


class NumberScanner(TokenizerCore):
    """sqlglot's tokenizer, which would take `1e3+2` for one number, and `$1,$` for a quote."""

    def _scan_string(self, start: str) -> bool:
        if start == "$" and _DOLLAR_QUOTE.match(self.sql, self._start) is None:
            self._add(self.heredoc_string_alternative)
            return True
        return bool(super()._scan_string(start))

    def _scan_number(self) -> None:
        before = self.sql[self._start - 1 : self._start]
        number = (_BEHIND_POINT if before in (".", "$") else _NUMBER).match(self.sql, self._start)
        assert number is not None, "sqlglot has seen a digit"
        wrong = _NO_NUMBER.match(self.sql, number.end())
        if wrong is not None:
            raise NumberError(self.sql[self._start : wrong.end()], self._start)
        self._advance(number.end() - self._current)
        self._add(TokenType.NUMBER, number[0].replace("_", ""))


class NumberTokenizer(DuckDB.Tokenizer):
    """DuckDB's tokens, with numbers of this module."""

    def _init_core(self) -> Any:
        core = super()._init_core()
        return NumberScanner(**{name: getattr(core, name) for name in _OPTIONS})
