"""Methods of other libraries' relations that there are not, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_NESTED: Final = "there are no lists, structs and maps in BamQuery"
_UPDATES: Final = "rows are not changed in place: make a new table with create(name, replace=True)"

MISSING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pivot": "SQL has no PIVOT here: aggregate() with FILTER, one expression for each value",
        "unpivot": "SQL has no UNPIVOT here: union() of one select() for each column",
        "melt": "SQL has no UNPIVOT here: union() of one select() for each column",
        "unnest": _NESTED,
        "list": f"{_NESTED}; string_agg joins strings",
        "histogram": f"{_NESTED}; value_counts() has a row for each value",
        "update": _UPDATES,
        "insert": "insert_into(name) puts a relation's rows into a table; con.sql('INSERT INTO ...') others",
        "map": "no function of Python runs within a query: take to_pandas(), then con.from_df()",
        "apply": "write the function as SQL: select(), aggregate()",
        "tf": "to_numpy() gives arrays, which TensorFlow takes",
        "collect": "to_polars() runs it and gives a frame; to_arrow() a table",
        "compute": "to_arrow() runs it and gives a table",
        "where": "filter() takes conditions",
        "sort_values": "order() takes sort keys: order('a DESC')",
        "groupby": "group_by(keys).agg(...), or aggregate(..., by=keys)",
        "merge": "join() takes the other relation and on=",
        "assign": "with_columns() takes expressions by name",
        "iloc": "take() gives rows of a table by their numbers; of queries: filter(), order(), limit()",
        "loc": "rows have no labels: filter()",
        "tail": "rows have no last ones without an order: order('key DESC').limit(n)",
        "nunique": "aggregate('count(DISTINCT column)')",
        "write_database": "create(name), insert_into(name)",
    }
)
