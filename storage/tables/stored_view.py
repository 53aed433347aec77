"""A view: a query under a name, kept as the SQL that it was made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredView:
    """What a manifest records of a view; the text is understood anew each time the view is used."""

    sql: str
    """One query."""
    columns: tuple[str, ...] = ()
    """Names for its first columns."""

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {"sql": self.sql, "columns": list(self.columns)}

    @classmethod
    def from_json(cls, data: Any) -> StoredView:
        """What `to_json` made.

        Raises:
            ValueError: anything else.
        """
        if not isinstance(data, dict) or set(data) != {"sql", "columns"}:
            raise ValueError("a view must have its SQL and names of columns")
        sql, columns = data["sql"], data["columns"]
        if not isinstance(sql, str) or not isinstance(columns, list):
            raise ValueError("a view's SQL is not text, or its columns are not a list")
        if not all(isinstance(name, str) for name in columns):
            raise ValueError("a view's columns are not names")
        return cls(sql, tuple(columns))
