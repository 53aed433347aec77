"""TPC-H's tables with some hundred rows, made here: `tpchgen-cli` need not be installed."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bamquery.queries.speed.constants.words import (
    BRANDS,
    COLOURS,
    COMMENT_WORDS,
    CONTAINERS,
    NATIONS,
    REGIONS,
    SEGMENTS,
    SHIP_MODES,
    TYPES,
)

_MONEY = pa.decimal128(15, 2)
_PARTS, _SUPPLIERS, _CUSTOMERS, _ORDERS = 60, 25, 40, 300


def write_table(file: Path, table: str, _scale: float) -> None:
    """In place of the generator: the same rows each time."""
    file.parent.mkdir(exist_ok=True)
    pq.write_table(small_tables()[table], file)


def small_tables() -> dict[str, pa.Table]:
    random = Random(7)
    nations = list(NATIONS)
    orders = [_order(key, random) for key in range(1, _ORDERS + 1)]
    lines = [_line(order, number, random) for order in orders for number in range(1, random.randint(2, 6))]
    parts = [
        {
            "p_partkey": key,
            "p_name": " ".join(random.sample(COLOURS, 5)),
            "p_mfgr": "Manufacturer#1",
            "p_brand": random.choice(BRANDS),
            "p_type": " ".join(map(random.choice, TYPES)),
            "p_size": random.randint(1, 50),
            "p_container": " ".join(map(random.choice, CONTAINERS)),
        }
        for key in range(1, _PARTS + 1)
    ]
    suppliers = [
        {
            "s_suppkey": key,
            "s_name": f"Supplier#{key:09}",
            "s_address": f"street {key}",
            "s_nationkey": key % len(nations),
            "s_phone": "10-1",
            "s_acctbal": _money(random, 9999),
            "s_comment": "Customer of many Complaints" if key % 9 == 0 else "quiet",
        }
        for key in range(1, _SUPPLIERS + 1)
    ]
    stock = [
        {
            "ps_partkey": part,
            "ps_suppkey": supplier,
            "ps_availqty": random.randint(1, 9999),
            "ps_supplycost": _money(random, 1000),
        }
        for part in range(1, _PARTS + 1)
        for supplier in random.sample(range(1, _SUPPLIERS + 1), 4)
    ]
    customers = [
        {
            "c_custkey": key,
            "c_name": f"Customer#{key:09}",
            "c_address": f"lane {key}",
            "c_nationkey": key % len(nations),
            "c_phone": f"{10 + key % len(nations)}-555",
            "c_acctbal": _money(random, 9999),
            "c_mktsegment": random.choice(SEGMENTS),
            "c_comment": "none",
        }
        for key in range(1, _CUSTOMERS + 1)
    ]
    rows = {
        "region": [{"r_regionkey": key, "r_name": name} for key, name in enumerate(REGIONS)],
        "nation": [
            {"n_nationkey": key, "n_name": name, "n_regionkey": REGIONS.index(NATIONS[name])}
            for key, name in enumerate(nations)
        ],
        "supplier": suppliers,
        "customer": customers,
        "part": parts,
        "partsupp": stock,
        "orders": orders,
        "lineitem": lines,
    }
    return {name: _table(found) for name, found in rows.items()}


def _order(key: int, random: Random) -> dict[str, Any]:
    return {
        "o_orderkey": key,
        "o_custkey": random.randint(1, _CUSTOMERS * 2 // 3),
        "o_orderstatus": random.choice("FOP"),
        "o_totalprice": _money(random, 300_000),
        "o_orderdate": datetime.date(1992, 1, 1) + datetime.timedelta(random.randint(0, 2400)),
        "o_orderpriority": random.choice(("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")),
        "o_shippriority": 0,
        "o_comment": " and ".join(map(random.choice, COMMENT_WORDS)),
    }


def _line(order: dict[str, Any], number: int, random: Random) -> dict[str, Any]:
    shipped = order["o_orderdate"] + datetime.timedelta(random.randint(1, 121))
    return {
        "l_orderkey": order["o_orderkey"],
        "l_partkey": random.randint(1, _PARTS),
        "l_suppkey": random.randint(1, _SUPPLIERS),
        "l_linenumber": number,
        "l_quantity": Decimal(random.randint(1, 50)),
        "l_extendedprice": _money(random, 90_000),
        "l_discount": Decimal(random.randint(0, 10)) / 100,
        "l_tax": Decimal(random.randint(0, 8)) / 100,
        "l_returnflag": random.choice("ARN"),
        "l_linestatus": random.choice("OF"),
        "l_shipdate": shipped,
        "l_commitdate": shipped + datetime.timedelta(random.randint(-30, 60)),
        "l_receiptdate": shipped + datetime.timedelta(random.randint(1, 30)),
        "l_shipinstruct": random.choice(("DELIVER IN PERSON", "NONE")),
        "l_shipmode": random.choice(SHIP_MODES),
    }


def _money(random: Random, most: int) -> Decimal:
    return Decimal(random.randint(100, most * 100)) / 100


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    table = pa.Table.from_pylist(rows)
    fields = [
        field.with_type(_MONEY if pa.types.is_decimal(field.type) else field.type) for field in table.schema
    ]
    return table.cast(pa.schema(fields))
