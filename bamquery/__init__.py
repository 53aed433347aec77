"""SQL over more data than memory holds, reading from NVMe only what the query needs."""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bamquery.connection import Connection, connect
    from bamquery.engine.profile import QueryProfile
    from bamquery.engine.settings import Settings
    from bamquery.errors import (
        BamQueryError,
        CancelledError,
        CatalogError,
        ConflictError,
        ConstraintError,
        CorruptionError,
        ExecutionError,
        GpuError,
        IngestError,
        KernelError,
        MemoryLimitError,
        NvmeError,
        SettingError,
        SqlError,
        StorageError,
        UnsupportedError,
    )
    from bamquery.relations.relation import Relation
    from bamquery.result import Result

__all__ = [
    "BamQueryError",
    "CancelledError",
    "CatalogError",
    "ConflictError",
    "Connection",
    "ConstraintError",
    "CorruptionError",
    "ExecutionError",
    "GpuError",
    "IngestError",
    "KernelError",
    "MemoryLimitError",
    "NvmeError",
    "QueryProfile",
    "Relation",
    "Result",
    "SettingError",
    "Settings",
    "SqlError",
    "StorageError",
    "UnsupportedError",
    "__version__",
    "connect",
]

_HOMES: Final = {
    "Connection": "bamquery.connection",
    "QueryProfile": "bamquery.engine.profile",
    "Relation": "bamquery.relations.relation",
    "Result": "bamquery.result",
    "Settings": "bamquery.engine.settings",
    "connect": "bamquery.connection",
}


def __getattr__(name: str) -> Any:
    """Import at first use: `bamquery --version` need not wait for Arrow, nor one room for all others."""
    if name not in __all__:
        raise AttributeError(f"module 'bamquery' has no attribute {name!r}")
    # Imports make many objects and next to no garbage: to look for it meanwhile takes a seventh of the time.
    collecting = gc.isenabled()
    try:
        gc.disable()
        found = getattr(importlib.import_module(_HOMES.get(name, "bamquery.errors")), name)
    finally:
        if collecting:
            gc.enable()
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
