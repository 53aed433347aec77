"""EXPLAIN ANALYZE as HTML: the tree of operators, each of which folds."""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree as ET

from bamquery.engine.explain.text_tree import detail_lines, profile_lines, scan_lines
from bamquery.engine.human_units import human_bytes, human_seconds, plural
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import FileScanProfile, ScanProfile
from bamquery.text.html_elements import element
from bamquery.text.notebook_html import fragment

_UNKNOWN: Final = "–"


def profile_html(profile: QueryProfile) -> str:
    """A piece of HTML for a notebook: the run in a line or two, its notes, and the tree."""
    head, *lines = profile_lines(profile)
    said = [element("p", line, class_="caption") for line in lines]
    return fragment(element("p", element("b", head), class_="caption"), *said, plan_tree(profile))


def plan_tree(profile: QueryProfile) -> ET.Element:
    """A list of lists (class `plan`): of each operator its figures, and what it says of itself."""
    return element("ul", _branch(profile.root), class_="plan")


def operator_title(profile: OperatorProfile) -> str:
    """Its name, and of a scan what it reads."""
    if isinstance(profile, ScanProfile | FileScanProfile):
        return f"{profile.name} {profile.source}"
    return profile.name


def _branch(profile: OperatorProfile) -> ET.Element:
    figures = f"{plural(profile.rows, 'row')}, {human_seconds(profile.seconds)}"
    summary = element(
        "summary", element("b", operator_title(profile)), element("span", figures, class_="figure")
    )
    details = element("details", summary, open="")
    for line in _details(profile):
        details.append(element("p", line))
    if isinstance(profile, ScanProfile) and profile.columns:
        details.append(_column_table(profile))
    item = element("li", details)
    if profile.children:
        item.append(element("ul", *(_branch(child) for child in profile.children)))
    return item


def _details(profile: OperatorProfile) -> list[str]:
    if isinstance(profile, ScanProfile):
        scanned = f"scanned {profile.rows_scanned:,} of {plural(profile.rows_total, 'row')}"
        return [*scan_lines(profile, profile.verified), scanned]
    return detail_lines(profile)


def _column_table(scan: ScanProfile) -> ET.Element:
    titles = (
        *("column", "role", "strategy", "encoding", "bits", "pruned", "read", "of vectors", "needed"),
        *("bytes read", "amplification", "commands", "paths"),
    )
    head = element("tr", *(element("th", title) for title in titles))
    body = element("tbody")
    for column in scan.columns.values():
        amplification = column.amplification
        storage = scan.storage(column.name)
        cells = (
            *(column.name, column.role, column.strategy or _UNKNOWN, storage.encoding),
            _UNKNOWN if storage.bits is None else f"{storage.bits:.3g}",
            *(f"{column.vectors_pruned:,}", f"{column.vectors_read:,}", f"{column.vectors_total:,}"),
            *(human_bytes(column.bytes_needed), human_bytes(column.counters.bytes)),
            _UNKNOWN if amplification is None else f"{amplification:.2f}",
            *(f"{column.counters.commands:,}", ", ".join(column.paths) or _UNKNOWN),
        )
        body.append(element("tr", *(element("td", cell) for cell in cells)))
    return element("div", element("table", element("thead", head), body), class_="scroll")
