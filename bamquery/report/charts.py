"""Horizontal bars: one line a thing, its figure written behind its bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from bamquery.text.html_elements import element


@dataclass(frozen=True)
class Bar:
    """A line of a chart.

    Attributes:
        label: what it is.
        parts: how much, as (class of the style sheet, amount), end to end.
        figure: the amounts as text.
    """

    label: str
    parts: tuple[tuple[str, float], ...]
    figure: str


def bars(lines: Sequence[Bar]) -> ET.Element:
    """All lines on one scale, the longest as wide as there is room."""
    most = max((sum(amount for _, amount in line.parts) for line in lines), default=0) or 1
    table = element("div", class_="bars")
    for line in lines:
        track = element("span", class_="track")
        for name, amount in line.parts:
            track.append(element("i", class_=name, style=f"width:{100 * amount / most:.3f}%"))
        table.append(element("span", line.label, class_="label"))
        table.append(track)
        table.append(element("span", line.figure, class_="figure"))
    return table
