"""How much memory this process holds beyond the page cache, and how much of a GPU is in use."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Final

_STATUS: Final = Path("/proc/self/status")
_FIELD: Final = re.compile(r"^(RssAnon|RssShmem):\s+(\d+) kB$", re.MULTILINE)
_NAMES: Final = {"RssAnon": "anonymous_bytes", "RssShmem": "shared_bytes"}


def footprint(device: str) -> dict[str, int]:
    """Memory in use now, in bytes.

    `anonymous_bytes` belong to nobody else; `shared_bytes` are mapped tmpfs files and memory that a GPU's
    driver gave out; `gpu_bytes` is what of a GPU is taken, by whomever: only where `device` is one. Its pool
    keeps what it once had, so that is the peak.
    """
    try:
        text = _STATUS.read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = {_NAMES[name]: 1024 * int(size) for name, size in _FIELD.findall(text)}
    taken = _gpu_bytes(device)
    return found if taken is None else found | {"gpu_bytes": taken}


def _gpu_bytes(device: str) -> int | None:
    name, _, ordinal = device.partition(":")
    if name != "cuda":
        return None
    try:
        runtime: Any = importlib.import_module("cuda.bindings.runtime")
    except ImportError:
        return None
    runtime.cudaSetDevice(int(ordinal or 0))
    status, free, total = runtime.cudaMemGetInfo()
    return None if int(status) else int(total - free)
