"""A relation as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bamquery.errors import BamQueryError
from bamquery.plan.nodes import Limit
from bamquery.relations.base import PREVIEW_ROWS, RelationBase

if TYPE_CHECKING:
    from bamquery.relations.display.view import RelationView


class RelationNotebookDisplay(RelationBase):
    """What IPython asks for: text and HTML of one run of the first rows."""

    _seen: RelationView | None = None

    def view(self) -> RelationView:
        """Run it as far as its first rows take.

        Raises:
            BamQueryError: that fails.
        """
        from bamquery.relations.display.view import RelationView, known_rows  # noqa: PLC0415 (HTML)

        with self._session.run(Limit(self._plan, PREVIEW_ROWS + 1)) as result:
            rows = result.table()
        total = known_rows(self._plan)
        if total is None and self._latest is not None and self._latest.progress().finished:
            assert self._profile is not None
            total = self._profile.rows
        return RelationView(rows, result.profile, self._profile, total)

    def show_next(self, view: RelationView) -> None:
        """Let the next display be of that view, instead of another run."""
        self._seen = view

    def _repr_mimebundle_(self, **kinds: Any) -> dict[str, str]:
        text, html = self._render()
        return {"text/plain": text, "text/html": html}

    def _repr_html_(self) -> str:
        return self._render()[1]

    def _render(self) -> tuple[str, str]:
        from bamquery.relations.display.view import view_error, view_message  # noqa: PLC0415 (HTML)

        if self.message:
            return self.message, view_message(self.message)
        view, self._seen = self._seen, None
        try:
            view = view or self.view()
        except BamQueryError as error:
            return view_error(self.columns, error)
        return view.text(), view.html()
