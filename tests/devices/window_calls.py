"""Calls over a window from SQL, over columns of a schema."""

from __future__ import annotations

import pyarrow as pa

from bamquery.plan import nodes
from bamquery.plan.rewriting import nodes_of
from tests.plans import MemoryCatalog, SchemaOnly, plan_of_catalog


def window_of(calls: str, schema: pa.Schema) -> nodes.Window:
    """The calls, which share a window, as bound; the child has the schema's columns."""
    plan = plan_of_catalog(f"SELECT {calls} FROM t", MemoryCatalog(SchemaOnly("t", schema)))
    (window,) = (node for node in nodes_of(plan) if isinstance(node, nodes.Window))
    assert [field.name for field in window.child.fields] == schema.names
    return window
