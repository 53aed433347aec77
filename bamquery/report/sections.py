"""The parts of a page, each of the content alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

import pygments
from pygments.lexers import SqlLexer

from bamquery.engine.explain.html_tree import operator_title, plan_tree
from bamquery.engine.human_units import human_bytes, human_count, human_rate, human_seconds, plural
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import ColumnProfile, ScanProfile
from bamquery.engine.profiling.vector_map import VectorMap
from bamquery.output.html_table import row_table
from bamquery.report.charts import Bar, bars
from bamquery.report.content import ReportContent
from bamquery.report.vector_strip import CELLS, LABELS, css_class, describe_states, strip
from bamquery.text.html_elements import append, element

_UNKNOWN: Final = "–"
_KINDS: Final = {"Keyword": "k", "Literal.String": "s", "Literal.Number": "n", "Comment": "c"}


def statement(content: ReportContent) -> ET.Element:
    """The SQL text, coloured."""
    code = element("code")
    for token, text in pygments.lex(content.sql.strip(), SqlLexer(stripnl=False, ensurenl=False)):
        kind = next((short for name, short in _KINDS.items() if f"Token.{name}" in str(token)), None)
        append(code, text if kind is None else element("span", text, class_=kind))
    return element("pre", code, class_="sql")


def figures(content: ReportContent) -> ET.Element:
    """The run in a few numbers."""
    profile, io = content.profile, content.profile.io
    tiles = [
        ("time", human_seconds(profile.seconds)),
        ("rows", f"{content.rows:,}"),
        ("device", profile.device),
    ]
    if io.readers:
        tiles += [
            ("bytes needed", human_bytes(io.bytes_needed)),
            ("bytes read", human_bytes(io.bytes_read)),
            ("amplification", _UNKNOWN if io.amplification is None else f"{io.amplification:.2f}"),
            ("read commands", human_count(io.commands)),
        ]
        if io.bytes_per_second is not None:
            tiles.append(("while reading", human_rate(io.bytes_per_second)))
    if profile.peak_memory:
        tiles.append(("operators held", human_bytes(profile.peak_memory)))
    if profile.spilled:
        tiles.append(("written to files", human_bytes(profile.spilled)))
    made = element("dl", class_="tiles")
    for name, figure in tiles:
        made.append(element("div", element("dt", name), element("dd", figure)))
    return made


def notes(content: ReportContent) -> ET.Element | None:
    """What did not run as asked; None where all did."""
    profile = content.profile
    found = [*profile.notes, *(note for scan in profile.scans for note in scan.notes)]
    if profile.io.uncounted:
        found.append(f"what readers of files read is not counted: {', '.join(profile.io.uncounted)}")
    if not found:
        return None
    return element("ul", *(element("li", note) for note in found), class_="notes")


def answer(content: ReportContent) -> ET.Element:
    """The first rows."""
    more = f"the first {content.shown_rows} of {plural(content.rows, 'row')}"
    caption = plural(content.rows, "row") if content.shown_rows == content.rows else more
    return element("div", row_table(content.answer), element("p", caption, class_="caption"))


def operator_times(profile: QueryProfile) -> ET.Element:
    """Seconds spent in each operator without its children, in the order of the plan."""
    lines = [
        Bar(
            operator_title(one),
            (("time", one.seconds),),
            f"{human_seconds(one.seconds)}, {plural(one.rows, 'row')}",
        )
        for one in profile.root.walk()
    ]
    return bars(lines)


def plan(profile: QueryProfile) -> ET.Element:
    """The tree of operators, each with what it says of itself."""
    return plan_tree(profile)


def column_bytes(profile: QueryProfile) -> ET.Element | None:
    """Bytes read of each column, by way of reading, beside those needed; None where nothing was scanned."""
    columns = [(scan, column) for scan in profile.scans for column in scan.columns.values()]
    if not columns:
        return None
    several = len(profile.scans) > 1
    lines = []
    for scan, column in columns:
        name = f"{scan.source}.{column.name}" if several else column.name
        lines.append(
            Bar(name, (("needed", column.bytes_needed),), f"{human_bytes(column.bytes_needed)} needed")
        )
        lines.append(Bar("", ((_strategy_class(column), column.counters.bytes),), _read_figure(column)))
    return bars(lines)


def vector_maps(profile: QueryProfile) -> Iterator[ET.Element]:
    """For each scan that recorded one, a strip a column."""
    for scan in profile.scans:
        found = scan.vector_map
        if found is not None and found.columns:
            yield _vector_map(scan, found)


def legend() -> ET.Element:
    """What the colours of strips mean."""
    entries = [
        element("li", element("i", class_=f"swatch {css_class(state)}"), element("b", name), f" – {meaning}")
        for state, (name, meaning) in LABELS.items()
    ]
    return element("ul", *entries, class_="legend")


def circumstances(content: ReportContent) -> ET.Element:
    """When and under which settings."""
    settings = content.settings
    said = (
        f"BamQuery {content.version}, {content.made:%Y-%m-%d %H:%M:%S} UTC, "
        f"{plural(settings.effective_threads, 'thread')}, memory_limit "
        f"{human_bytes(settings.effective_memory_limit)}"
    )
    return element("footer", said)


def _vector_map(scan: ScanProfile, found: VectorMap) -> ET.Element:
    total = sum(fragment.vectors for fragment in found.fragments)
    said = (
        f"{scan.source} (version {scan.version}): {plural(total, 'vector')} of 1,024 rows in "
        f"{plural(len(found.fragments), 'fragment')}, in row order from left to right"
    )
    section = element("section", element("h3", said))
    if total > CELLS:
        each = f"a cell is about {total / CELLS:,.0f} vectors, divided by what became of them"
        section.append(element("p", each, class_="caption"))
    for name in found.columns:
        states = found.states(name)
        role = scan.columns[name].role
        title = element("figcaption", element("b", name), f" ({role}) – {describe_states(states)}")
        section.append(element("figure", title, strip(name, states, found.fragments)))
    return section


def _strategy_class(column: ColumnProfile) -> str:
    """The class of the way that most reads took."""
    ways = {
        "s-streamed": column.streamed,
        "s-vector": column.fetched_vectors,
        "s-blocks": column.fetched_blocks,
    }
    return max(ways, key=lambda way: ways[way])


def _read_figure(column: ColumnProfile) -> str:
    strategy = f" by {column.strategy}" if column.strategy else ""
    ratio = "" if column.amplification is None else f", {column.amplification:.2f} ×"
    return f"{human_bytes(column.counters.bytes)} read{strategy}{ratio}"
