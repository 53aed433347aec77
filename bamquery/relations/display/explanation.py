"""EXPLAIN's text, which notebooks show as a tree."""

from __future__ import annotations

from typing import Any

from bamquery.engine.profiling.query_profile import QueryProfile


class Explanation(str):
    """The text; a prompt shows its lines, a notebook the tree of a run."""

    __slots__ = ("_profile",)

    def __new__(cls, text: str, profile: QueryProfile | None = None) -> Explanation:
        """Of the text, and of the run that it tells of, if it was run."""
        made = super().__new__(cls, text)
        made._profile = profile
        return made

    _profile: QueryProfile | None

    def _repr_html_(self) -> str:
        from bamquery.text.html_elements import element  # noqa: PLC0415 (only notebooks need it)
        from bamquery.text.notebook_html import fragment  # noqa: PLC0415 (the same)

        return fragment(element("pre", str(self))) if self._profile is None else self._profile._repr_html_()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))
