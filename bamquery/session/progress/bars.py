"""Bars of loads, which tell themselves how far they are."""

from __future__ import annotations

import io

from bamquery.engine.settings import Settings
from bamquery.storage.ingest import Progress


def progress_bar(settings: Settings) -> Progress:
    """A bar where standard error is a terminal, unless the setting says no."""
    if settings.progress is False:
        from rich.console import Console  # noqa: PLC0415 (most statements have no bar)

        return Progress(Console(file=io.StringIO()))
    return Progress()
