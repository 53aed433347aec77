"""Colours of the shell: for dark and light terminals, any style of Pygments, or none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from prompt_toolkit.styles import BaseStyle, DummyStyle, Style, merge_styles
from prompt_toolkit.styles.pygments import style_from_pygments_cls

from bamquery.errors import BamQueryError
from bamquery.text.identifiers import suggestion

PLAIN: Final = "plain"
_PYGMENTS: Final[Mapping[str, str]] = MappingProxyType({"dark": "monokai", "light": "friendly"})
_FIRST_LIGHT: Final = 7
"""COLORFGBG's numbers of the palette: white and bright white, of 16 colours, are light."""

_CHROME: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "dark": {
            "prompt": "bold ansibrightgreen",
            "continuation": "ansibrightblack",
            "bottom-toolbar": "noreverse bg:#262626 #a8a8a8",
            "bottom-toolbar.warning": "bg:#262626 ansiyellow",
            "completion-menu.completion": "bg:#303030 #d0d0d0",
            "completion-menu.completion.current": "bg:#5f87af #ffffff",
            "completion-menu.meta.completion": "bg:#262626 #8a8a8a",
            "completion-menu.meta.completion.current": "bg:#4e6f8f #ffffff",
        },
        "light": {
            "prompt": "bold ansigreen",
            "continuation": "ansibrightblack",
            "bottom-toolbar": "noreverse bg:#e4e4e4 #444444",
            "bottom-toolbar.warning": "bg:#e4e4e4 #875f00",
            "completion-menu.completion": "bg:#e4e4e4 #303030",
            "completion-menu.completion.current": "bg:#5f87af #ffffff",
            "completion-menu.meta.completion": "bg:#d0d0d0 #585858",
            "completion-menu.meta.completion.current": "bg:#4e6f8f #ffffff",
        },
    }
)
_SEMANTIC_CODES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "dark": {"error": "91", "note": "33", "dim": "2"},
        "light": {"error": "31", "note": "33", "dim": "2"},
        PLAIN: {},
    }
)


@dataclass(frozen=True, slots=True)
class Theme:
    """What a theme's name stands for.

    Attributes:
        name: as `.theme` takes it.
        background: `dark`, `light`, or `plain` for no colours at all.
    """

    name: str
    background: str

    def style(self) -> BaseStyle:
        """For prompt_toolkit."""
        if self.background == PLAIN:
            return DummyStyle()
        from pygments.styles import get_style_by_name  # noqa: PLC0415 (not where there are no colours)

        chrome = Style.from_dict(dict(_CHROME[self.background]))
        pygments = get_style_by_name(_PYGMENTS.get(self.name, self.name))
        return merge_styles([style_from_pygments_cls(pygments), chrome])

    def paint(self, text: str, meaning: str) -> str:
        """The text in the colour of an `error`, a `note`, or what is `dim`."""
        code = _SEMANTIC_CODES[self.background].get(meaning)
        return f"\x1b[{code}m{text}\x1b[0m" if code is not None else text


def theme(name: str) -> Theme:
    """The theme of that name: `dark`, `light`, `plain`, or a style of Pygments.

    Raises:
        BamQueryError: there is none; suggests the nearest.
    """
    name = name.lower()
    if name in _SEMANTIC_CODES:
        return Theme(name, name)
    from pygments.styles import get_all_styles, get_style_by_name  # noqa: PLC0415 (as above)

    known = sorted(get_all_styles())
    if name not in known:
        names = ["dark", "light", PLAIN, *known]
        raise BamQueryError(
            f'there is no theme "{name}".{suggestion(name, names)} Themes: {", ".join(names)}'
        )
    background = get_style_by_name(name).background_color.lstrip("#")
    bright = sum(int(digit, 16) for digit in background[:: len(background) // 3]) > 3 * 7
    return Theme(name, "light" if bright else "dark")


def theme_for(environment: Mapping[str, str] = os.environ) -> Theme:
    """No colours where NO_COLOR or TERM=dumb ask for none; else by what COLORFGBG says of the background."""
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return theme(PLAIN)
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    light = background.isdecimal() and int(background) in (_FIRST_LIGHT, 15)
    return theme("light" if light else "dark")
