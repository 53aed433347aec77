"""TABLESAMPLE and USING SAMPLE: some of the rows of what stands in FROM."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from sqlglot import exp

from bamquery.plan.nodes import Plan, Sample
from bamquery.sql_frontend.fault_collection import errors_at

_METHODS: Final = ("SYSTEM", "BERNOULLI", "RESERVOIR")
_MOST_ROWS: Final = 1_000_000_000


def bind_sample(plan: Plan, node: exp.Expr | None, sql: str) -> Plan:
    """The plan with a sample of its rows; itself where none is asked for.

    Raises:
        SqlError: no such method, or a size that it cannot have.
    """
    if node is None:
        return plan
    with errors_at(sql, node):
        # A method in parentheses without a seed has False for one.
        method = str(node.args["method"].name).upper() if node.args.get("method") else "SYSTEM"
        if method not in _METHODS:
            raise ValueError(
                f"there is no sampling method {method.lower()}: use {', '.join(_METHODS).lower()}"
            )
        percent, size, seed = (_number(node.args.get(name) or None) for name in ("percent", "size", "seed"))
        if percent is None and size is None:
            raise ValueError("a sample needs a size, such as 10% or 10 ROWS")
        if seed is not None and (seed != int(seed) or seed < 0):
            raise ValueError("a sample's seed is a whole number")
        whole_seed = None if seed is None else int(seed)
        if percent is None:
            assert size is not None
            if method == "BERNOULLI":
                raise ValueError(f"bernoulli takes a share of the rows: write bernoulli({size}%)")
            if not 0 <= size <= _MOST_ROWS:
                raise ValueError(f"a sample has from 0 to {_MOST_ROWS} rows, not {size}")
            return Sample(plan, count=int(size), seed=whole_seed)
        if not 0 <= percent <= 100:
            raise ValueError(f"a sample of {percent} % is not between 0 and 100 %")
        if method == "RESERVOIR":
            raise ValueError(
                "a reservoir takes a number of ROWS: for a share of them use bernoulli or system"
            )
        return Sample(plan, percent=float(percent), seed=whole_seed, by_run=method == "SYSTEM")


def _number(node: exp.Expr | None) -> Decimal | None:
    node = node.unnest() if node is not None else None
    if node is None:
        return None
    if not isinstance(node, exp.Literal) or node.args["is_string"]:
        raise ValueError("a sample's size and seed are numbers in the statement")
    return Decimal(str(node.this))
