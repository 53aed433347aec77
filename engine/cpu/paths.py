"""Parts of paths, and bars for terminals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bamquery.engine.cpu.kernels import Implementation
from bamquery.engine.cpu.rows import per_value

_SEPARATOR: Final = re.compile(r"[/\\]")
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_WIDEST: Final = 1000


def _last_separator(path: str) -> int:
    return max(path.rfind("/"), path.rfind("\\"))


def _filename(path: str, trim: bool = False) -> str:
    """What comes after the last separator, without its extension if that is asked for."""
    name = path[_last_separator(path) + 1 :]
    return name.rpartition(".")[0] if trim and "." in name else name


def _dirname(path: str) -> str:
    """The first folder."""
    if path[:1] in ("/", "\\"):
        return path[0]
    first = _SEPARATOR.search(path)
    return "" if first is None else path[: first.start()]


def _dirpath(path: str) -> str:
    """All but the last part; of a separator alone, itself."""
    if _SEPARATOR.fullmatch(path):
        return path
    last = _last_separator(path)
    return "" if last < 0 else path[:last]


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
