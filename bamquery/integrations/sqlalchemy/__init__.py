"""SQLAlchemy's dialect: `create_engine("bamquery:///path")`.

Where BamQuery is not installed as a distribution, importing this package makes the dialect known.
"""

from __future__ import annotations

from sqlalchemy.dialects import registry

from bamquery.integrations.sqlalchemy.dialect import BamQueryDialect
from bamquery.integrations.sqlalchemy.types import (
    HUGEINT,
    INTERVAL,
    TIME_NS,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_S,
    TINYINT,
    UBIGINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
)

__all__ = [
    "HUGEINT",
    "INTERVAL",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "TIME_NS",
    "TINYINT",
    "UBIGINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "BamQueryDialect",
]

for _name in ("bamquery", "bamquery.bamquery"):  # the second is bamquery+bamquery://, with the driver
    registry.register(_name, "bamquery.integrations.sqlalchemy.dialect", "BamQueryDialect")
