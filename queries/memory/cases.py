"""What is measured: statements, and ways into and out of a database, with the tables they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Way = Literal["stream", "rows", "statement", "load", "append", "registered", "optimize"]
"""How a case runs: its answer's batches or rows are taken and dropped; a statement runs for its effect; a
file is loaded into a table; a stream of batches is; the same is a table by `register`; a table is sorted."""


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement.

    Attributes:
        room: what it is listed under.
        name: unique.
        text: SQL, or for a way in the name of the table or file that it reads.
        tables: those that must be there before; see `tables.TABLES`.
        way: see `Way`.
    """

    room: str
    name: str
    text: str
    tables: tuple[str, ...] = ()
    way: Way = "stream"


def _queries(room: str, tables: tuple[str, ...], **texts: str) -> list[Case]:
    return [Case(room, name.replace("_", " "), text, tables) for name, text in texts.items()]


def _statements(room: str, tables: tuple[str, ...], **texts: str) -> list[Case]:
    return [Case(room, name.replace("_", " "), text, tables, "statement") for name, text in texts.items()]


LONG: Final = "repeat('x', 500000)"
"""What `{long}` stands for in a text; `{folder}` is where files are."""
_FILE: Final = "SELECT * FROM '{{folder}}/{file}'"

CASES: Final = (
    *_queries(
        "sort",
        ("numbers",),
        sort_numbers="SELECT k, v FROM numbers ORDER BY k",
        first_rows_of_a_sort="SELECT k, v FROM numbers ORDER BY k LIMIT 1000000 OFFSET 500000",
    ),
    *_queries(
        "sort",
        ("texts",),
        sort_by_texts="SELECT i, w FROM texts ORDER BY w",
        sort_of_texts="SELECT i, w FROM texts ORDER BY i DESC",
        first_texts_of_a_sort="SELECT w FROM texts ORDER BY w LIMIT 30000",
    ),
    *_queries(
        "groups",
        ("numbers",),
        group_numbers="SELECT k, count(*), sum(v) FROM numbers GROUP BY k",
        distinct_numbers="SELECT DISTINCT k FROM numbers",
        count_distinct_numbers="SELECT count(DISTINCT k) FROM numbers",
        median_of_all="SELECT median(k) FROM numbers",
        quantiles_by_group="SELECT v % 10, quantile_cont(k, 0.3), mode(k) FROM numbers GROUP BY 1",
        rollup="SELECT k % 1000000, v % 7, count(*) FROM numbers GROUP BY ROLLUP (k % 1000000, v % 7)",
    ),
    *_queries(
        "groups",
        ("texts",),
        group_texts="SELECT w, count(*) FROM texts GROUP BY w",
        distinct_texts="SELECT DISTINCT w FROM texts",
        count_distinct_texts="SELECT count(DISTINCT w) FROM texts",
        greatest_text_by_group="SELECT i, max(w) FROM texts GROUP BY i",
        greatest_text="SELECT max(w), min(w) FROM texts",
        first_text_by_group="SELECT i % 5000, first(w), last(w), arg_max(w, i) FROM texts GROUP BY 1",
        mode_of_texts="SELECT mode(w) FROM texts",
        string_agg_by_group="SELECT i % 5000, string_agg(w, ',') FROM texts GROUP BY 1",
        union_of_texts="SELECT w FROM texts UNION SELECT w FROM texts",
        except_of_texts="SELECT w FROM texts EXCEPT SELECT w || 'x' FROM texts",
        intersect_of_texts="SELECT w FROM texts INTERSECT ALL SELECT w FROM texts",
    ),
    *_queries(
        "joins",
        ("numbers",),
        join_numbers="SELECT count(*), sum(a.v - b.v) FROM numbers a JOIN numbers b ON a.k = b.v",
        semi_join="SELECT count(*) FROM numbers WHERE k IN (SELECT v * 3 FROM numbers)",
        anti_join=(
            "SELECT count(*) FROM numbers a WHERE NOT EXISTS (SELECT 1 FROM numbers b WHERE b.v = a.k + 7)"
        ),
        asof_join="SELECT count(*), sum(b.v) FROM numbers a ASOF JOIN numbers b ON a.v >= b.k",
    ),
    *_queries(
        "joins",
        ("texts",),
        join_by_texts="SELECT count(*) FROM texts a JOIN texts b ON a.w = b.w",
        join_of_texts="SELECT a.w, b.w FROM texts a JOIN texts b ON a.i = b.i",
        full_join_of_texts="SELECT a.w, b.w FROM texts a FULL JOIN texts b ON a.i = b.i + 1000",
        asof_join_of_texts="SELECT a.w, b.w FROM texts a ASOF JOIN texts b ON a.i >= b.i",
    ),
    *_queries(
        "joins",
        ("few",),
        asof_join_of_long_texts=(
            "SELECT a.i, s FROM few a ASOF JOIN (SELECT 1000 * n AS n, repeat('x', 300000) AS s "
            "FROM range(20) r(n)) b ON a.i >= b.n"
        ),
    ),
    *_queries(
        "joins",
        ("pairs",),
        cross_join_of_texts="SELECT max(x), max(y) FROM a, b",
        cross_join_as_it_is="SELECT x, y FROM a, b",
        join_with_a_condition="SELECT max(x), max(y) FROM a JOIN b ON a.g = b.g AND x <> y",
        join_with_many_partners="SELECT x, y FROM a JOIN b ON a.g = b.g",
        left_join_with_a_condition="SELECT max(x), max(y) FROM a LEFT JOIN b ON a.g = b.g AND x > y",
        right_join_with_a_condition="SELECT max(x), max(y) FROM a RIGHT JOIN b ON a.g = b.g AND x > y",
        full_join_with_a_condition="SELECT max(x), max(y) FROM a FULL JOIN b ON a.g = b.g AND x > y",
        nested_loop_join="SELECT max(x), max(y) FROM a JOIN b ON x > y",
        nested_loop_left_join="SELECT max(x), max(y) FROM a LEFT JOIN b ON x > y",
        semi_join_with_a_condition=(
            "SELECT max(x) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.g = b.g AND x <> y AND y > 'zz')"
        ),
        mark_join_with_a_condition=(
            "SELECT count(*) FROM a WHERE x IN (SELECT y FROM b WHERE a.g < b.g) OR x < '0'"
        ),
        range_join="SELECT max(x), max(y) FROM a JOIN b ON a.i BETWEEN b.i - 500 AND b.i + 500",
        sort_above_a_cross_join="SELECT x, y FROM (SELECT * FROM a LIMIT 300) a, b ORDER BY y, x LIMIT 100",
        distinct_above_a_cross_join="SELECT DISTINCT x, b.g FROM a, b",
    ),
    *_queries(
        "long constants",
        ("few",),
        case="SELECT sum(length(CASE WHEN i % 2 = 0 THEN {long} ELSE i::VARCHAR END)) FROM few",
        case_of_constants="SELECT sum(length(CASE WHEN i % 2 = 0 THEN {long} ELSE 'y' END)) FROM few",
        if_function="SELECT sum(length(if(i % 2 = 0, {long}, i::VARCHAR))) FROM few",
        coalesce="SELECT sum(length(coalesce(nullif(i, 3)::VARCHAR, {long}))) FROM few",
        coalesce_of_many="SELECT max(coalesce(nullif(i % 2, 1)::VARCHAR, {long})) FROM few",
        greatest="SELECT max(greatest(i::VARCHAR, {long})) FROM few",
        least="SELECT max(least('y' || i, {long})) FROM few",
        nullif="SELECT count(nullif({long}, i::VARCHAR)) FROM few",
        substr="SELECT max(substr({long}, i % 100)) FROM few",
        left="SELECT max(left({long}, 400000 + i % 100)) FROM few",
        replace="SELECT max(replace({long}, repeat('x', 100), repeat((i % 10)::VARCHAR, 100))) FROM few",
        concat="SELECT max({long} || i) FROM few",
        upper="SELECT max(upper(CASE WHEN i > 5 THEN {long} ELSE 'a' END)) FROM few",
        group_by_a_constant="SELECT x, count(*) FROM (SELECT {long} x, i FROM few) GROUP BY x",
        group_by_case=(
            "SELECT CASE WHEN i % 2 = 0 THEN {long} ELSE (i % 10)::VARCHAR END x, count(*) "
            "FROM few GROUP BY x"
        ),
        sort_by_case="SELECT i FROM few ORDER BY CASE WHEN i % 2 = 0 THEN {long} ELSE i::VARCHAR END, i",
        filter_by_case=(
            "SELECT count(*) FROM few WHERE CASE WHEN i % 2 = 0 THEN {long} ELSE i::VARCHAR END > 'x'"
        ),
        join_by_case=(
            "SELECT count(*) FROM few a JOIN few b ON a.i = b.i AND "
            "CASE WHEN a.i % 2 = 0 THEN {long} ELSE a.i::VARCHAR END = "
            "CASE WHEN b.i % 2 = 0 THEN {long} ELSE b.i::VARCHAR END"
        ),
        window_over_case=(
            "SELECT max(m) FROM (SELECT max(CASE WHEN i % 2 = 0 THEN {long} ELSE i::VARCHAR END) "
            "OVER (ORDER BY i ROWS 3 PRECEDING) m FROM few)"
        ),
        partition_by_case=(
            "SELECT max(m) FROM (SELECT count(*) OVER (PARTITION BY "
            "CASE WHEN i % 2 = 0 THEN {long} ELSE i::VARCHAR END) m FROM few)"
        ),
        cross_join_of_one_row="SELECT sum(length(x) + i) FROM few, (SELECT {long} x)",
        cross_join_of_one_row_as_it_is="SELECT x, i FROM few, (SELECT {long} x)",
        left_join_of_one_row="SELECT sum(length(x)) FROM few LEFT JOIN (SELECT {long} x) ON i > 5",
        scalar_subquery="SELECT sum(length(x)) FROM (SELECT i, (SELECT {long}) x FROM few)",
        union_all=(
            "SELECT sum(length(x)) FROM (SELECT {long} x FROM few UNION ALL SELECT i::VARCHAR FROM few)"
        ),
        as_it_is="SELECT {long} x FROM few",
    ),
    *_queries(
        "windows",
        ("numbers",),
        row_number="SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY k) r FROM numbers)",
        running_sum="SELECT max(s) FROM (SELECT sum(v) OVER (PARTITION BY v % 10 ORDER BY k) s FROM numbers)",
    ),
    *_queries(
        "windows",
        ("texts",),
        lag_of_texts="SELECT max(s) FROM (SELECT lag(w) OVER (ORDER BY i) s FROM texts)",
        greatest_text_so_far="SELECT max(s) FROM (SELECT max(w) OVER (ORDER BY i) s FROM texts)",
        first_text_of_all="SELECT max(s) FROM (SELECT first_value(w) OVER (ORDER BY i) s FROM texts)",
        texts_by_partition="SELECT max(s) FROM (SELECT max(w) OVER (PARTITION BY i % 100) s FROM texts)",
    ),
    *_queries(
        "windows",
        ("many",),
        string_agg_so_far=(
            "SELECT max(s) FROM (SELECT string_agg(i::VARCHAR, ',') OVER (ORDER BY i) s FROM many)"
        ),
        string_agg_by_partition=(
            "SELECT max(s) FROM (SELECT string_agg(i::VARCHAR, ',') OVER (PARTITION BY i % 2) s FROM many)"
        ),
        string_agg_of_rows_before=(
            "SELECT max(s) FROM (SELECT string_agg(i::VARCHAR, ',') "
            "OVER (ORDER BY i ROWS 2000 PRECEDING) s FROM many)"
        ),
        string_agg_of_all="SELECT max(s) FROM (SELECT string_agg(i::VARCHAR, ',') OVER () s FROM many)",
        mode_of_rows_before=(
            "SELECT max(s) FROM (SELECT mode(i::VARCHAR) OVER (ORDER BY i ROWS 200 PRECEDING) s FROM many)"
        ),
    ),
    *_queries(
        "windows",
        ("few",),
        first_of_long_texts=(
            "SELECT max(length(s)) FROM (SELECT first_value(x) OVER (ORDER BY i) s FROM "
            "(SELECT i, CASE WHEN i = 0 THEN {long} ELSE 'y' END x FROM few))"
        ),
        greatest_of_long_texts=(
            "SELECT max(length(s)) FROM (SELECT max(x) OVER (ORDER BY i) s FROM "
            "(SELECT i, CASE WHEN i = 0 THEN {long} ELSE 'a' END x FROM few))"
        ),
        lag_default_that_is_long=(
            "SELECT max(s) FROM (SELECT lag(i::VARCHAR, 5000, {long}) OVER (ORDER BY i) s FROM few)"
        ),
    ),
    *_queries(
        "others",
        ("texts",),
        sample_of_rows="SELECT w FROM texts USING SAMPLE 50000 ROWS (reservoir, 1)",
        with_twice=(
            "WITH c AS (SELECT w, count(*) n FROM texts GROUP BY w) SELECT max(a.n + b.n) "
            "FROM c a JOIN c b ON a.w = b.w"
        ),
        functions_of_texts="SELECT max(upper(replace(w, 'a', 'bb')) || reverse(w)) FROM texts",
        filter_texts="SELECT w FROM texts WHERE w LIKE '%abc%' OR length(w) > 100",
        concat_of_texts="SELECT w || w || w FROM texts",
    ),
    *_queries(
        "others",
        ("few",),
        recursion_with_texts=(
            "WITH RECURSIVE r(n, x) AS (SELECT 0, repeat('y', 1000) UNION ALL SELECT n + 1, x || n FROM r, "
            "range(2) WHERE n < 14) SELECT count(*), max(x) FROM r"
        ),
        series="SELECT count(*), max(i) FROM range(50000000) r(i)",
    ),
    *_statements(
        "ways in",
        ("texts", "numbers"),
        create_table_as="CREATE TABLE made AS SELECT * FROM texts",
        create_table_as_numbers="CREATE TABLE made AS SELECT k, v, k + v AS s, k * 0.5 AS f FROM numbers",
        insert_select="INSERT INTO texts SELECT * FROM texts",
        optimize="OPTIMIZE texts",
        cluster_by="OPTIMIZE numbers CLUSTER BY (k)",
        cluster_by_texts="OPTIMIZE texts CLUSTER BY (w)",
        cluster_texts="OPTIMIZE texts CLUSTER BY (g)",
        encode_anew="ALTER TABLE texts SET (encoding = 'plain'); OPTIMIZE texts",
    ),
    *(
        Case("ways in", f"{how} {name}", f"{{folder}}/{name}.{how}", (f"{name}.{how}",), "load")
        for how in ("parquet", "csv", "arrow", "ndjson")
        for name in ("texts", "numbers")
    ),
    *(
        Case(
            "ways in",
            f"query of {how} {name}",
            _FILE.format(file=f"{name}.{how}"),
            (f"{name}.{how}",),
        )
        for how in ("parquet", "csv", "arrow", "ndjson")
        for name in ("texts", "numbers")
    ),
    Case("ways in", "stream of batches", "texts", (), "append"),
    Case("ways in", "registered stream", "texts", (), "registered"),
    *_statements(
        "ways out",
        ("texts", "numbers"),
        copy_to_parquet="COPY texts TO '{folder}/out.parquet'",
        copy_to_csv="COPY texts TO '{folder}/out.csv'",
        copy_to_arrow="COPY texts TO '{folder}/out.arrow'",
        copy_to_json="COPY texts TO '{folder}/out.ndjson'",
        copy_numbers_to_parquet="COPY numbers TO '{folder}/out.parquet'",
        copy_numbers_to_csv="COPY numbers TO '{folder}/out.csv'",
    ),
    Case("ways out", "record batches", "SELECT * FROM texts", ("texts",)),
    Case("ways out", "fetchmany", "SELECT * FROM texts", ("texts",), "rows"),
)
