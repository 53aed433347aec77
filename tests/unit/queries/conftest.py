"""For tests of the benchmark suite."""

from pathlib import Path

import pytest

from bamquery.queries.measuring import cold


@pytest.fixture(autouse=True)
def _the_machines_caches_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Cold runs drop files' pages, as anywhere, and not all that the machine has: other tests read, too."""
    monkeypatch.setattr(cold, "_DROP_CACHES", tmp_path / "no" / "drop_caches")
