"""Guests boot where `--guests` asks for them: they take minutes, and want apt and root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

_BACKSTOP_S = 3600  # packages may have to come first; boots have limits of their own
_BOOTS = Path(__file__).with_name("boots")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    boots = [item for item in items if _BOOTS in item.path.parents]
    for item in boots:
        item.add_marker(pytest.mark.guest)
        item.add_marker(pytest.mark.timeout(_BACKSTOP_S))
    if boots and not config.getoption("--guests"):
        items[:] = [item for item in items if _BOOTS not in item.path.parents]
        config.hook.pytest_deselected(items=boots)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How long each guest took, and what was strange."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    for report in reports:
        for name, words in getattr(report, "user_properties", []):
            if name == "guest":
                terminalreporter.write_line(f"guest {words}")
