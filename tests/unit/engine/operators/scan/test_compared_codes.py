"""Filters on packed columns give what plain tables give, and EXPLAIN ANALYZE says which looked at codes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery

ROWS = 40_000


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bamquery.Connection]:
    """Tables `plain` and `packed` of the same rows: each type, nulls, NaN, zeros of both signs."""
    path: Path = tmp_path_factory.mktemp("codes") / "codes.bq"
    with bamquery.connect(path, device="cpu") as made:
        made.register("source", _source())
        for name, encoding in (("plain", "plain"), ("packed", "auto")):
            made.sql(f"CREATE TABLE {name} WITH (encoding = '{encoding}') AS SELECT * FROM source")
        made.sql("SET threads = 2")
        yield made


def _source() -> pa.Table:
    random = np.random.default_rng(7)

    def nullable(values: object, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=random.random(ROWS) < 0.1)

    price = random.integers(-500, 9000, ROWS) / 100
    price[random.integers(0, ROWS, 400)] = random.choice([np.nan, -0.0, 0.0, np.inf, 1e300], 400)
    days = random.integers(8000, 8400, ROWS)
    seconds = days * 86400 + random.integers(0, 99, ROWS)
    cents = random.integers(-(10**4), 10**4, ROWS)
    words = np.array(["air", "rail", "truck", "ship", "mail", "", "straße", "a" * 40])
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS)),
            "sorted": pa.array(np.arange(ROWS) // 100, pa.int32()),
            "small": nullable(random.integers(-20, 60, ROWS), pa.int16()),
            "big": pa.array(random.integers(0, 1000, ROWS) * 10**12 - 5, pa.int64()),
            "unsigned": nullable(random.integers(0, 30, ROWS), pa.uint8()),
            "price": nullable(price, pa.float64()),
            "ratio": pa.array((random.integers(0, 400, ROWS) / 10).astype(np.float32)),
            "day": nullable(days.astype("datetime64[D]"), pa.date32()),
            "moment": pa.array(seconds.astype("datetime64[s]"), pa.timestamp("us")),
            "clock": pa.array(random.integers(0, 86400, ROWS) * 10**6, pa.time64("us")),
            "money": nullable([Decimal(int(v)) / 100 for v in cents], pa.decimal128(9, 2)),
            "flag": pa.array(np.arange(ROWS) < 20_050),
            "word": nullable(words[random.integers(0, len(words), ROWS)], pa.large_string()),
            "code": pa.array([f"K{v:05}" for v in random.integers(0, 3000, ROWS)], pa.large_string()),
            "kind": pa.array(words[random.integers(0, 5, ROWS)]).dictionary_encode(),
        }
    )  # fmt: skip


ON_CODES = [
    "small > 7", "small >= 7 AND small < 31", "small = 3", "small <> 3", "small IN (1, 5, -7, 59)",
    "small NOT IN (1, 5, -7, 59)", "small NOT IN (1, NULL)", "small IN (1, NULL)", "small IS NULL",
    "small IS NOT NULL", "small IS NULL OR small > 50", "NOT (small > 7)", "NOT (small BETWEEN 3 AND 9)",
    "small < -10 OR small > 50", "small IS DISTINCT FROM 4", "small IS NOT DISTINCT FROM 4",
    "small IS NOT DISTINCT FROM NULL", "7 < small", "small > 7 AND small <> 9 AND small <> 11",
    "small > 1000", "small < 1000", "big = 5 * 10**12 - 5", "big > 500 * 10**12", "big >= 3",
    "unsigned > 10", "price > 30", "price >= 30.005", "price = 0", "price = -0.0", "price <> 0",
    "price = 'nan'::DOUBLE", "price > 'inf'::DOUBLE", "price < 'nan'::DOUBLE", "price >= 1e300",
    "price IS NULL OR price = 'nan'::DOUBLE", "price BETWEEN 12.34 AND 12.36",
    "price IN (1.5, 2.5, 'nan'::DOUBLE)", "ratio > 12.3::FLOAT", "ratio = 0.1::FLOAT",
    "day >= DATE '1992-05-01'", "day IS DISTINCT FROM DATE '1992-05-01'",
    "day BETWEEN DATE '1992-02-01' AND DATE '1992-03-01'", "moment < TIMESTAMP '1992-04-01 00:00:30'",
    "clock >= TIME '23:00:00'", "money > 12.34", "money = -0.05", "flag", "NOT flag", "flag = false",
    "sorted < 30", "sorted >= 30", "word = 'rail'", "word <> 'rail'", "word IN ('air', 'ship')",
    "word LIKE '%ai%'", "word IS NULL", "word IS NULL OR word = ''", "length(word) > 4",
    "upper(word) = 'STRASSE'", "regexp_matches(word, '^[a-m]')", "word || 'x' = 'airx'", "word < 'n'",
    "code LIKE 'K0_9%'", "code > 'K02000'", "coalesce(word, 'air') = 'air'", "kind = 'rail'",
    "kind LIKE '%ai%'", "kind IN ('truck', 'none')",
]  # fmt: skip
"""Of one column each: none is decoded."""

DECODED = [
    ("small + 1 > 7", "more than comparisons"),
    ("small % 3 = 1", "more than comparisons"),
    ("small < unsigned", "several columns"),
    (f"big IN ({', '.join(str(v * 10**12 - 5) for v in range(0, 500, 5))})", "names 100 values"),
    ("word < code", "several columns"),
    ("word::INTEGER = 3 AND id < 0", None),
]


@pytest.mark.parametrize("condition", ON_CODES)
def test_conditions_of_one_column_are_answered_on_codes(con: bamquery.Connection, condition: str) -> None:
    answer = f"SELECT count(*), sum(id), min(id) FROM %s WHERE {condition}"
    rel = con.sql(answer.replace("%s", "packed"))
    assert rel.fetchall() == con.sql(answer.replace("%s", "plain")).fetchall()
    (scan,) = rel.profile.scans
    assert not scan.notes, scan.notes
    filtered = next(column for column in scan.columns.values() if "filter" in column.role)
    assert filtered.vectors_compared == filtered.vectors_read
    assert "as codes" in str(rel.profile) or not filtered.vectors_read
    # The column itself is wanted, too: of rows that pass, and by what is held in memory.
    name = filtered.name
    given = f"SELECT id, {name}, price FROM %s WHERE {condition} ORDER BY id"
    packed, plain = con.sql(given.replace("%s", "packed")), con.sql(given.replace("%s", "plain"))
    assert _same(packed.to_arrow(), plain.to_arrow())
    (scan,) = packed.profile.scans
    assert scan.columns[name].counters.bytes < 8 * ROWS


def _same(a: pa.Table, b: pa.Table) -> bool:
    """Bit for bit: NaN equals itself, zeros of two signs differ."""
    return all(
        pa.concat_arrays(x.chunks or [pa.array([], x.type)]).to_pylist().__repr__()
        == pa.concat_arrays(y.chunks or [pa.array([], y.type)]).to_pylist().__repr__()
        for x, y in zip(a.columns, b.columns, strict=True)
    )


@pytest.mark.parametrize(("condition", "reason"), DECODED)
def test_what_is_decoded_is_said(con: bamquery.Connection, condition: str, reason: str | None) -> None:
    answer = f"SELECT count(*), sum(id) FROM %s WHERE {condition}"
    rel = con.sql(answer.replace("%s", "packed"))
    assert rel.fetchall() == con.sql(answer.replace("%s", "plain")).fetchall()
    (scan,) = rel.profile.scans
    if reason is not None:
        assert any("is decoded to be compared" in note and reason in note for note in scan.notes)
        assert "is decoded to be compared" in str(rel.profile)


@pytest.mark.parametrize("strategy", ["auto", "stream", "vectors", "blocks"])
@pytest.mark.parametrize(
    "condition",
    [
        "small > 50 AND word = 'rail'",
        "id < 3000 AND word LIKE '%ai%' AND price > 10",
        "sorted < 210 AND flag AND kind <> 'rail' AND money > 0",
        "code = 'K00017' AND small IS NOT NULL",
        "sorted = 7 AND price > 0 AND price < 50 AND small < 50",
    ],
)
def test_later_filters_by_every_strategy(con: bamquery.Connection, condition: str, strategy: str) -> None:
    con.sql(f"SET strategy = '{strategy}'")
    try:
        answer = f"SELECT id, word, price, money, kind FROM %s WHERE {condition} ORDER BY id"
        packed, plain = con.sql(answer.replace("%s", "packed")), con.sql(answer.replace("%s", "plain"))
        assert _same(packed.to_arrow(), plain.to_arrow())
        if strategy == "stream":  # bytes needed do not depend on how columns are stored, nor on their order
            assert packed.profile.io.bytes_needed > 0
    finally:
        con.sql("SET strategy = 'auto'")


def test_vectors_that_zone_maps_decide_are_not_touched(con: bamquery.Connection) -> None:
    """Those without a row that passes, and those of which all rows pass."""
    rel = con.sql("SELECT count(*) FROM packed WHERE sorted >= 30 AND sorted < 215")
    assert rel.fetchall() == [(18_500,)]
    (scan,) = rel.profile.scans
    column = scan.columns["sorted"]
    assert column.vectors_pruned > 0
    assert column.vectors_read <= 2  # those in which the bounds lie
    con.sql("SET zone_maps = off")
    try:
        rel = con.sql("SELECT count(*) FROM packed WHERE sorted >= 30 AND sorted < 215")
        assert rel.fetchall() == [(18_500,)]
        assert rel.profile.scans[0].columns["sorted"].vectors_read == -(-ROWS // 1024)
    finally:
        con.sql("SET zone_maps = on")


def test_a_dictionary_is_asked_once_a_value(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the condition is: no row's string is made."""
    from bamquery.engine.cpu.device import CpuDevice

    seen: list[int] = []
    matching = CpuDevice.matching_positions

    def counted(self: CpuDevice, predicate: object, frame: pa.RecordBatch) -> object:
        if frame.num_columns:
            seen.append(frame.num_rows)
        return matching(self, predicate, frame)

    monkeypatch.setattr(CpuDevice, "matching_positions", counted)
    con.sql("SELECT count(*) FROM packed WHERE code LIKE '%7%' AND length(code) = 6").fetchall()
    assert seen == [3001]  # and null


def test_joins_and_top_n_filter_by_codes(con: bamquery.Connection) -> None:
    """Filters that become known while a query runs."""
    for query in (
        "SELECT count(*), sum(id) FROM %s JOIN (VALUES (DATE '1992-03-01')) v(d) ON day = d",
        "SELECT id, price FROM %s ORDER BY price, id LIMIT 5",
        "SELECT sum(id) FROM %s WHERE word IN (SELECT word FROM plain WHERE word LIKE 'r%')",
    ):
        assert _same(
            con.sql(query.replace("%s", "packed")).to_arrow(),
            con.sql(query.replace("%s", "plain")).to_arrow(),
        )


def test_a_value_that_no_row_has_is_no_error(con: bamquery.Connection) -> None:
    """A dictionary has values of rows that other conditions leave out."""
    query = "SELECT count(*) FROM %s WHERE id < 3 AND (code[2:])::INTEGER < 999999"
    assert (
        con.sql(query.replace("%s", "packed")).fetchall() == con.sql(query.replace("%s", "plain")).fetchall()
    )
