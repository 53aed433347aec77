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
        InternalError,
        KernelError,
        MemoryLimitError,
        NvmeError,
        SettingError,
        SqlError,
        StorageError,
        UnsupportedError,
    )
    from bamquery.expressions.expression import (
        Expression,
        col,
        expr,
        lit,
        when,
    )
    from bamquery.expressions.function_names import fn
    from bamquery.module_functions import (
        default_connection,
        execute,
        from_arrow,
        from_df,
        from_dict,
        from_dicts,
        from_pandas,
        from_polars,
        load,
        query,
        read_arrow,
        read_csv,
        read_json,
        read_parquet,
        register,
        set_default_connection,
        sql,
        table,
        unregister,
        values,
    )
    from bamquery.query_progress import QueryProgress
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
    "Expression",
    "GpuError",
    "IngestError",
    "InternalError",
    "KernelError",
    "MemoryLimitError",
    "NvmeError",
    "QueryProfile",
    "QueryProgress",
    "Relation",
    "Result",
    "SettingError",
    "Settings",
    "SqlError",
    "StorageError",
    "UnsupportedError",
    "__version__",
    "col",
    "connect",
    "default_connection",
    "execute",
    "expr",
    "fn",
    "from_arrow",
    "from_df",
    "from_dict",
    "from_dicts",
    "from_pandas",
    "from_polars",
    "lit",
    "load",
    "query",
    "read_arrow",
    "read_csv",
    "read_json",
    "read_parquet",
    "register",
    "set_default_connection",
    "sql",
    "table",
    "unregister",
    "values",
    "when",
]

_HOMES: Final = {
    "Connection": "bamquery.connection",
    "connect": "bamquery.connection",
    "default_connection": "bamquery.module_functions",
    "execute": "bamquery.module_functions",
    "from_arrow": "bamquery.module_functions",
    "from_df": "bamquery.module_functions",
    "from_dict": "bamquery.module_functions",
    "from_dicts": "bamquery.module_functions",
    "from_pandas": "bamquery.module_functions",
    "from_polars": "bamquery.module_functions",
    "load": "bamquery.module_functions",
    "query": "bamquery.module_functions",
    "read_arrow": "bamquery.module_functions",
    "read_csv": "bamquery.module_functions",
    "read_json": "bamquery.module_functions",
    "read_parquet": "bamquery.module_functions",
    "register": "bamquery.module_functions",
    "set_default_connection": "bamquery.module_functions",
    "sql": "bamquery.module_functions",
    "table": "bamquery.module_functions",
    "unregister": "bamquery.module_functions",
    "values": "bamquery.module_functions",
    "QueryProfile": "bamquery.engine.profile",
    "Settings": "bamquery.engine.settings",
    "Expression": "bamquery.expressions.expression",
    "col": "bamquery.expressions.expression",
    "expr": "bamquery.expressions.expression",
    "lit": "bamquery.expressions.expression",
    "when": "bamquery.expressions.expression",
    "fn": "bamquery.expressions.function_names",
    "QueryProgress": "bamquery.query_progress",
    "Relation": "bamquery.relations.relation",
    "Result": "bamquery.result",
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
    """What users need; the rooms of the package are imported by their names."""
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext bamquery` calls: `%bamquery` and `%%bamquery`, see `bamquery.notebook`."""
    importlib.import_module("bamquery.notebook").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext bamquery` calls."""
    importlib.import_module("bamquery.notebook").unload_ipython_extension(shell)
