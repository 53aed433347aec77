"""What a notebook or a prompt shows of a relation: its first rows, how many there are, and how they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import pyarrow as pa

from bamquery.engine.explain.html_tree import plan_tree
from bamquery.engine.human_units import human_bytes, human_seconds, plural
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.output.html_table import row_table, shown_columns
from bamquery.output.text_table import preview
from bamquery.plan.nodes import Plan, Scan
from bamquery.relations.base import PREVIEW_ROWS
from bamquery.text.html_elements import element
from bamquery.text.notebook_html import fragment


@dataclass(frozen=True)
class RelationView:
    """The first rows of a relation.

    Attributes:
        rows: up to `PREVIEW_ROWS`, and one more where there are more.
        profile: of the run that gave them.
        latest: of the latest run that was asked for, if there was one.
        total: how many rows there are, as far as that is known without another run.
    """

    rows: pa.Table
    profile: QueryProfile
    latest: QueryProfile | None
    total: int | None

    def text(self) -> str:
        """For a prompt."""
        return preview(self.rows, PREVIEW_ROWS)

    def html(self) -> str:
        """For a notebook: rows with types, how many, and the profile, folded."""
        shown = self.rows.slice(0, PREVIEW_ROWS)
        columns = shown_columns(shown.schema, shown.to_batches())
        return fragment(row_table(columns), element("p", self.caption(), class_="caption"), *self._profiles())

    def caption(self) -> str:
        """How many rows there are, and how many are shown."""
        if self.rows.num_rows <= PREVIEW_ROWS:
            return plural(self.rows.num_rows, "row")
        if self.total is None:
            return f"the first {PREVIEW_ROWS} rows; there are more, and nobody has counted them"
        return f"the first {PREVIEW_ROWS} of {plural(self.total, 'row')}"

    def _profiles(self) -> list[ET.Element]:
        found = [] if self.latest is None else [_collapsed_profile("latest run", self.latest)]
        return [*found, _collapsed_profile("these rows", self.profile)]


def view_error(columns: Sequence[str], error: Exception) -> tuple[str, str]:
    """Text and HTML of a relation whose rows cannot be had."""
    text = f"<Relation ({', '.join(columns)}): {error}>"
    return text, fragment(element("pre", text))


def view_message(message: str) -> str:
    """HTML of what a statement has said."""
    return fragment(element("pre", message))


def known_rows(plan: Plan) -> int | None:
    """How many rows there are, where no query need be run to know."""
    if isinstance(plan, Scan) and not plan.predicates and isinstance(plan.source, StoredTable):
        return plan.source.rows
    return None


def _collapsed_profile(what: str, profile: QueryProfile) -> ET.Element:
    said = f"Profile of {what}: {human_seconds(profile.seconds)} on {profile.device}"
    if profile.io.readers:
        said += f", {human_bytes(profile.io.bytes_read)} read"
    return element("details", element("summary", said), plan_tree(profile))
