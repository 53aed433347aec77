"""Results of checks in a guest, as `tests/guests/results.py` reads them, for scripts."""

from __future__ import annotations


def check(holds: bool, name: str, detail: str) -> bool:
    """One line; a check gives its result once. The detail says what was seen, whether it holds or not."""
    print(f"{'ok' if holds else 'FAIL'} {name}: {' '.join(detail.split())}", flush=True)
    return holds


def skip(name: str, reason: str) -> None:
    """It could not be tried."""
    print(f"skip {name}: {reason}", flush=True)
