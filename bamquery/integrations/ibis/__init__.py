"""Ibis's backend: `ibis.bamquery.connect("taxi.bq")`.

`ibis.bamquery` is found by the distribution's entry point; `bamquery.integrations.ibis.connect` is the same
without one.
"""

from __future__ import annotations

from pathlib import Path

from bamquery.integrations.ibis.backend import Backend

__all__ = ["Backend", "connect"]


def connect(
    database: str | Path = ":memory:",
    *,
    create: bool | None = None,
    device: str = "auto",
    **settings: object,
) -> Backend:
    """Open a database folder, made if there is none; see `Backend.do_connect`."""
    backend = Backend()
    backend.register_options()
    connected: Backend = backend.connect(database, create=create, device=device, **settings)
    return connected
