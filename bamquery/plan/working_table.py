"""Queries that name themselves: WITH RECURSIVE."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class WorkingTable:
    """A source: the rows that the last step of a recursive query gave, or its first part.

    Each recursive query has one of its own, by which the scans in its step know that they are meant.
    """

    name: str
    schema: pa.Schema
