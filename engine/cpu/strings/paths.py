"""Parts of paths, and bars for terminals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bamquery.engine.cpu.kernels import Implementation
from bamquery.engine.cpu.value_kernels import per_value

_SEPARATORS: Final = MappingProxyType({"system": "/", "forward_slash": "/", "backslash": "\\"})
"""By their words; every other word, in other letters too, means both."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_WIDEST: Final = 1000


def _separators(words: str) -> str:
    return _SEPARATORS.get(words, "/\\")


def _last_separator(path: str, words: str) -> int:
    return max(path.rfind(one) for one in _separators(words))


def _filename(path: str, trim: bool = False, words: str = "") -> str:
    """What comes after the last separator, without its extension if that is asked for."""
    name = path[_last_separator(path, words) + 1 :]
    return name.rpartition(".")[0] if trim and "." in name else name


def _dirname(path: str, words: str = "") -> str:
    """The first folder."""
    places = [place for one in _separators(words) if (place := path.find(one)) >= 0]
    return path[: max(min(places), 1)] if places else ""


def _dirpath(path: str, words: str = "") -> str:
    """All but the last part; of a separator alone, itself."""
    last = _last_separator(path, words)
    return path if last == 0 == len(path) - 1 else path[: max(last, 0)]


def _bar(value: float, least: float, most: float, width: float = 80.0) -> str:
    """A bar whose length is the value's share of the way."""
    if not 1 <= width <= _WIDEST:
        raise ValueError(f"bar() needs a width from 1 to {_WIDEST}, not {width}")
    length = 0.0
    if value > least:  # which nothing is that is no number
        length = width if value >= most else width * (value - least) / (most - least)
    if math.isnan(most):
        length = 0.0
    if not math.isfinite(length):
        raise ValueError("bar() needs limits whose distance is a number")
    eighths = int(length * 8)
    text = "█" * (eighths // 8)
    if eighths % 8 and len(text) < width:
        text += _EIGHTHS[eighths % 8]
    return text + " " * (int(width) - len(text))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "parse_filename": per_value(_filename),
        "parse_dirname": per_value(_dirname),
        "parse_dirpath": per_value(_dirpath),
        "bar": per_value(_bar),
    }
)
