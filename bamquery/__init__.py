"""SQL over more data than memory holds, reading from NVMe only what the query needs."""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bamquery.connection.connection import Connection, connect
    from bamquery.connection.module_functions import (
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
    from bamquery.engine.profiling.query_profile import QueryProfile
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
    from bamquery.relations.expressions.expression import (
        Expression,
        col,
        expr,
        lit,
        when,
    )
    from bamquery.relations.expressions.function_names import fn
    from bamquery.relations.relation import Relation
    from bamquery.session.query_progress import QueryProgress
    from bamquery.session.result import Result
    from bamquery.storage.tables.open_fragment import open_fragment

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
    "open_fragment",
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
    "Connection": "bamquery.connection.connection",
    "connect": "bamquery.connection.connection",
    "default_connection": "bamquery.connection.module_functions",
    "execute": "bamquery.connection.module_functions",
    "from_arrow": "bamquery.connection.module_functions",
    "from_df": "bamquery.connection.module_functions",
    "from_dict": "bamquery.connection.module_functions",
    "from_dicts": "bamquery.connection.module_functions",
    "from_pandas": "bamquery.connection.module_functions",
    "from_polars": "bamquery.connection.module_functions",
    "load": "bamquery.connection.module_functions",
    "query": "bamquery.connection.module_functions",
    "read_arrow": "bamquery.connection.module_functions",
    "read_csv": "bamquery.connection.module_functions",
    "read_json": "bamquery.connection.module_functions",
    "read_parquet": "bamquery.connection.module_functions",
    "register": "bamquery.connection.module_functions",
    "set_default_connection": "bamquery.connection.module_functions",
    "sql": "bamquery.connection.module_functions",
    "table": "bamquery.connection.module_functions",
    "unregister": "bamquery.connection.module_functions",
    "values": "bamquery.connection.module_functions",
    "QueryProfile": "bamquery.engine.profiling.query_profile",
    "Settings": "bamquery.engine.settings",
    "Expression": "bamquery.relations.expressions.expression",
    "col": "bamquery.relations.expressions.expression",
    "expr": "bamquery.relations.expressions.expression",
    "lit": "bamquery.relations.expressions.expression",
    "when": "bamquery.relations.expressions.expression",
    "fn": "bamquery.relations.expressions.function_names",
    "QueryProgress": "bamquery.session.query_progress",
    "Relation": "bamquery.relations.relation",
    "Result": "bamquery.session.result",
    "open_fragment": "bamquery.storage.tables.open_fragment",
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
