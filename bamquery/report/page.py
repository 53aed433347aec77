"""The page of a report, as bytes: one file, light and dark, that asks for nothing from anywhere."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal
from xml.etree import ElementTree as ET

from bamquery.report import sections
from bamquery.report.content import ReportContent
from bamquery.text.html_elements import element, page

Theme = Literal["auto", "light", "dark"]


def report_page(content: ReportContent, *, title: str = "BamQuery report", theme: Theme = "auto") -> bytes:
    """UTF-8 text of an HTML document; `auto` is as the reader's system has it."""
    profile = content.profile
    body = element("main", element("h1", title), sections.statement(content), sections.figures(content))
    _add(body, "What did not run as asked", sections.notes(content))
    _add(body, "Answer", sections.answer(content))
    _add(body, "Time by operator", sections.operator_times(profile))
    _add(body, "Bytes by column", sections.column_bytes(profile))
    maps = list(sections.vector_maps(profile))
    if maps:
        _add(body, "Vectors", sections.legend(), *maps)
    _add(body, "Plan", sections.plan(profile))
    body.append(sections.circumstances(content))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        element("style", files("bamquery.report").joinpath("style.css").read_text("utf-8")),
    )
    return page(element("html", head, element("body", body), lang="en", data_theme=theme))


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A browser fetches nothing and runs nothing, whatever a name or value holds."""


def _add(body: ET.Element, title: str, *content: ET.Element | None) -> None:
    found = [piece for piece in content if piece is not None]
    if found:
        body.append(element("section", element("h2", title), *found))
