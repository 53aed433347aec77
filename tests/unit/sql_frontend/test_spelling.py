"""Columns without an alias are called what DuckDB calls them, but for quotes around keywords."""

from __future__ import annotations

import duckdb
import pytest

from bamquery.data_types.names import type_name
from tests.plans import TRIPS, plan_of

EXPRESSIONS = [
    *("1", "1.50", "1e3", "1_000", "'it''s'", "TRUE", "NULL", "-5", "-5.5"),
    *("id", "ID", "trips.id", '"id"', "(id)", "((id + 1))", "id + 1", "id - -1", "-id", "id * (2 + 3)"),
    *("id // 2", "id % 2", "id / 2", "id ** 2", "zone || 'a'", "id + vendor * 2 - 1"),
    *("id = 1", "id <> 1", "id != 1", "id <= 1", "id >= 1", "paid AND NOT paid OR paid", "id IS NULL"),
    *("id IS NOT NULL", "paid IS TRUE", "paid IS NOT FALSE", "id IS DISTINCT FROM 1"),
    *("id IS NOT DISTINCT FROM NULL", "id BETWEEN 1 AND 2", "id NOT BETWEEN 1 AND 2", "id IN (1, 2)"),
    *("id NOT IN (1)", "zone LIKE 'a'", "zone NOT LIKE 'a'", "zone ILIKE 'a'", "zone NOT ILIKE 'a'"),
    *("CAST(id AS INTEGER)", "id::INT", "TRY_CAST(zone AS INTEGER)", "zone::VARCHAR"),
    *("CASE WHEN paid THEN 1 END", "CASE WHEN paid THEN 1 WHEN NOT paid THEN 2 ELSE 3 END"),
    *("CASE id WHEN 1 THEN 'a' ELSE 'b' END", "coalesce(id, 1)", "COALESCE(id, 2, 3)", "ifnull(id, 1)"),
    *("nullif(id, 0)", "if(paid, 1, 2)", "abs(id)", "ROUND(fare, 1)", "lower(zone)", "Length(zone)"),
    *("substring(zone, 1, 2)", "trim(zone)", "year(day)", "EXTRACT(year FROM day)", "date_part('dow', day)"),
    *("date_trunc('month', pickup)", "concat(zone, 'a')", "starts_with(zone, 'a')"),
    *("count(*)", "COUNT()", "count(id)", "count(DISTINCT id)", "SUM(ID)", "sum(id) FILTER (WHERE paid)"),
    *("mean(fare)", "sum(id + 1) * 2", "count(*) FILTER (WHERE id > 1)", "bool_and(paid)", "stddev(id)"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_names(expression: str) -> None:
    columns = ", ".join(f"{field.name} {type_name(field.type)}" for field in TRIPS.schema)
    with duckdb.connect() as oracle:
        oracle.execute(f"CREATE TABLE trips ({columns})")
        theirs = oracle.execute(f"DESCRIBE SELECT {expression} FROM trips").fetchall()[0][0]
    (field,) = plan_of(f"SELECT {expression} FROM trips").fields
    assert field.name == theirs.replace('"', "")
