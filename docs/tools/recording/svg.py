"""Screens of a terminal as one SVG that plays them: text, without fonts from elsewhere or scripts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Final

CELL_WIDTH: Final = 8.4
LINE_HEIGHT: Final = 18
_MARGIN: Final = 16
_BAR: Final = 28
_PALETTE: Final = {
    "default": "#d4d4d4",
    "black": "#3b3b3b",
    "red": "#f47067",
    "green": "#8ddb8c",
    "brown": "#e0b354",
    "blue": "#6cb6ff",
    "magenta": "#dcbdfb",
    "cyan": "#76e3ea",
    "white": "#d4d4d4",
    "brightblack": "#808080",
    "brightred": "#ff938a",
    "brightgreen": "#8ddb8c",
    "brightbrown": "#f2cc60",
    "brightblue": "#96d0ff",
    "brightmagenta": "#dcbdfb",
    "brightcyan": "#b3f0ff",
    "brightwhite": "#ffffff",
}
_BACKGROUND: Final = "#1e1e1e"


@dataclass(frozen=True)
class Style:
    """How a run of characters looks."""

    colour: str
    background: str
    bold: bool


@dataclass(frozen=True)
class Frame:
    """A screen: runs of characters of one style by line, and for how many seconds it is shown."""

    lines: tuple[tuple[tuple[int, str, Style], ...], ...]
    cursor: tuple[int, int] | None
    seconds: float


def frame(screen: Any, seconds: float) -> Frame:
    """What a pyte screen shows."""
    lines = []
    for row in range(screen.lines):
        runs: list[tuple[int, str, Style]] = []
        for column in range(screen.columns):
            character = screen.buffer[row][column]
            style = _style(character)
            text = character.data or ""
            if runs and runs[-1][2] == style and text:
                start, before, _ = runs[-1]
                runs[-1] = (start, before + text, style)
            elif text:
                runs.append((column, text, style))
        lines.append(tuple(run for run in runs if run[1].strip() or run[2].background != _BACKGROUND))
    cursor = None if screen.cursor.hidden else (screen.cursor.x, screen.cursor.y)
    return Frame(tuple(lines), cursor, seconds)


def _style(character: Any) -> Style:
    foreground = _PALETTE.get(character.fg, f"#{character.fg}")
    background = _BACKGROUND if character.bg == "default" else _PALETTE.get(character.bg, f"#{character.bg}")
    if character.reverse:
        foreground, background = background, foreground
    return Style(foreground, background, character.bold)


def svg(frames: list[Frame], columns: int, rows: int, title: str) -> str:
    """The frames one after the other, again and again; who asked for less motion sees the last one."""
    width = columns * CELL_WIDTH + 2 * _MARGIN
    height = rows * LINE_HEIGHT + 2 * _MARGIN + _BAR
    total = sum(one.seconds for one in frames)
    rules, groups = [], []
    begin = 0.0
    for number, one in enumerate(frames):
        end = begin + one.seconds
        rules.append(
            f"@keyframes f{number}{{0%{{visibility:{'visible' if number == 0 else 'hidden'}}}"
            + (f"{100 * begin / total:.3f}%{{visibility:visible}}" if number else "")
            + (f"{100 * end / total:.3f}%{{visibility:hidden}}" if number < len(frames) - 1 else "")
            + f"}}#f{number}{{animation:f{number} {total:.1f}s step-end infinite}}"
        )
        shown = "visible" if number == len(frames) - 1 else "hidden"
        groups.append(f'<g id="f{number}" visibility="{shown}">{_frame(one)}</g>')
        begin = end
    dots = "".join(
        f'<circle cx="{_MARGIN + 6 + 18 * n}" cy="{_BAR / 2 + 4}" r="5.5" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
            "white-space:pre}.b{font-weight:bold}@media (prefers-reduced-motion:no-preference){",
            *rules,
            "}</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>{dots}',
            f'<g transform="translate({_MARGIN} {_MARGIN + _BAR})">',
            *groups,
            "</g></svg>",
        ]
    )


def _frame(one: Frame) -> str:
    pieces = []
    for row, line in enumerate(one.lines):
        for column, text, style in line:
            x, y = column * CELL_WIDTH, row * LINE_HEIGHT
            size = len(text) * CELL_WIDTH
            if style.background != _BACKGROUND:
                pieces.append(_rectangle(x, y, size, style.background))
            shown = text.rstrip()
            if shown:
                bold = ' class="b"' if style.bold else ""
                pieces.append(
                    f'<text x="{x:.1f}" y="{y + 13}" fill="{style.colour}"{bold} '
                    f'textLength="{len(shown) * CELL_WIDTH:.1f}">{escape(shown, quote=False)}</text>'
                )
    if one.cursor is not None:
        pieces.append(
            _rectangle(one.cursor[0] * CELL_WIDTH, one.cursor[1] * LINE_HEIGHT, CELL_WIDTH, "#d4d4d488")
        )
    return "".join(pieces)


def _rectangle(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LINE_HEIGHT}" fill="{colour}"/>'
