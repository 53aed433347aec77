"""Figures as people read them."""

from __future__ import annotations

import pytest

from bamquery.engine.human_units import human_bytes, human_count, human_rate, human_seconds, plural


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (human_bytes(0), "0 B"),
        (human_bytes(1023), "1023 B"),
        (human_bytes(1536), "1.5 KiB"),
        (human_bytes(1024**2 - 1), "1.0 MiB"),
        (human_bytes(5 * 1024**4), "5.0 TiB"),
        (human_rate(51.4e9), "51.4 GB/s"),
        (human_rate(999), "999 B/s"),
        (human_seconds(0.0000005), "0 µs"),
        (human_seconds(0.00085), "850 µs"),
        (human_seconds(0.0123), "12.3 ms"),
        (human_seconds(59.99), "59.99 s"),
        (human_seconds(125), "2 min 5 s"),
        (human_seconds(7260), "2 h 1 min"),
        (human_count(999_999), "999,999"),
        (human_count(92_600_000), "92.6 M"),
        (plural(1, "row"), "1 row"),
        (plural(1234, "row"), "1,234 rows"),
    ],
)
def test_units(shown: str, expected: str) -> None:
    assert shown == expected
