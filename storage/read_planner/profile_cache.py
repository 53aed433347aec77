"""What was measured once, kept between processes in the user's cache."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bamquery.driver.cache_folder import cache_folder

_VERSION: Final = 5
"""Grows where readers or what is measured change so much that old measurements mislead."""


def cache_file() -> Path | None:
    """Where measurements are kept; None for users without a home."""
    folder = cache_folder()
    return None if folder is None else folder / "device-profiles.json"


def load_measured(key: str, names: Sequence[str]) -> dict[str, float] | None:
    """Numbers that an earlier process kept under a key, all of them positive; None for anything else."""
    cache = cache_file()
    data = None if cache is None else _load(cache).get(key)
    if not isinstance(data, dict) or not all(_positive(data.get(name)) for name in names):
        return None
    return {name: data[name] for name in names}


def keep_measured(key: str, numbers: Mapping[str, float | str]) -> None:
    """Add to the cache; a home that cannot be written to only costs the next process a measurement."""
    cache = cache_file()
    if cache is None:
        return
    with suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        data = {"version": _VERSION, "profiles": _load(cache) | {key: dict(numbers)}}
        with tempfile.NamedTemporaryFile("w", dir=cache.parent, delete=False) as file:
            json.dump(data, file, indent=1)
        os.replace(file.name, cache)


def _load(cache: Path) -> dict[str, Any]:
    try:
        data = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict) or data.get("version") != _VERSION:
        return {}
    profiles = data.get("profiles")
    return profiles if isinstance(profiles, dict) else {}


def _positive(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value) and value > 0
