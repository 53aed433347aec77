"""Figures as people read them: bytes in binary units, rates and counts in decimal ones."""

from __future__ import annotations


def human_bytes(size: float) -> str:
    """`512 B`, `1.5 MiB`."""
    return _scale(size, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def human_rate(bytes_per_second: float) -> str:
    """`1.2 GB/s`: decimal, as drives and buses are sold."""
    return _scale(bytes_per_second, 1000, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))


def human_seconds(seconds: float) -> str:
    """`850 µs`, `1.23 s`, `2 min 5 s`."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def human_count(count: float) -> str:
    """`999`, `12,345`, `1.23 M`, `4.56 G`: exact up to a million."""
    if abs(count) < 1_000_000:
        return f"{count:,.0f}"
    return _scale(count, 1000, ("", "k", "M", "G", "T"))


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,234 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _scale(value: float, base: int, units: tuple[str, ...]) -> str:
    unit = 0
    # Rounded first, so that 1023.96 KiB becomes 1.0 MiB, not 1024.0 KiB.
    while unit < len(units) - 1 and round(abs(value), 1) >= base:
        value, unit = value / base, unit + 1
    if unit == 0:
        return f"{value:.0f} {units[0]}".rstrip()
    return f"{value:.3g} {units[unit]}" if base == 1000 else f"{value:.1f} {units[unit]}"


def ratio(numerator: float, denominator: float) -> float | None:
    """One over the other; None for nothing over nothing."""
    return numerator / denominator if denominator else None
