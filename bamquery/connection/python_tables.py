"""Tables that are objects of Python: registered under a name, or variables of whoever calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from bamquery.catalog.views import View
from bamquery.engine.sources.scan_sources import FileSource
from bamquery.errors import SqlError
from bamquery.plan.nodes import Source
from bamquery.relations.relation import Relation
from bamquery.session.session import Session

_NOTHING: Final = object()
_STREAMS: Final = ("__arrow_c_stream__", "__arrow_c_array__")
_CLASSES: Final = frozenset(
    {("pyarrow", "Dataset"), ("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame")}
)
"""Of packages that need not be installed."""


def python_source(session: Session, name: str, what: Any) -> Source:
    """What a statement reads where it names the object.

    Raises:
        IngestError: it is no table.
        SqlError: it is a relation of another connection.
    """
    from bamquery.storage.ingest.opening import open_source  # noqa: PLC0415 (many queries name no object)

    if isinstance(what, Relation):
        return View(name, what.plan_of(session))
    return FileSource(open_source(what, by_need=True))


def caller_tables(session: Session) -> Callable[[str], Source | None]:
    """Finds variables of the nearest caller outside of this package, local ones first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "bamquery":
        frame = frame.f_back

    def find(name: str) -> Source | None:
        # Not before a name is asked for: a frame keeps what it once gave out as its variables.
        scopes = (frame.f_locals, frame.f_globals) if frame is not None else ()
        what = next((scope[name] for scope in scopes if name in scope), _NOTHING)
        if what is _NOTHING:
            return None
        if not _is_table(what):
            if not session.settings.enable_external_access:
                return None  # whether there is a variable is not told
            raise SqlError(
                f'there is no table "{name}", and the variable of this name is no table either, '
                f"but of Python's type {type(what).__name__}"
            )
        if not session.settings.enable_external_access:
            raise SqlError(
                f'there is no table "{name}", and variables of Python are out of reach, since '
                f"enable_external_access is off: con.register({name!r}, {name}) puts this one within it"
            )
        return python_source(session, name, what)

    return find


def _is_table(what: Any) -> bool:
    if isinstance(what, (Relation, type)):
        return not isinstance(what, type)
    kinds = {(cls.__module__.split(".")[0], cls.__name__) for cls in type(what).__mro__}
    return not kinds.isdisjoint(_CLASSES) or any(hasattr(what, stream) for stream in _STREAMS)
