"""Filters taken together, vector by vector, give what plain tables give, and count what they read."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.operators.scan.stored_filters.vector_selection import VectorSelection
from bamquery.errors import CorruptionError

ROWS = 100_000
MANY = ", ".join(str(value) for value in range(0, 5000, 3))
FAR = ", ".join(str(value * 10**11) for value in range(0, 900, 7))


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bamquery.Connection]:
    """Tables `plain` and `packed` of the same rows, in fragments of which some end within a vector."""
    path: Path = tmp_path_factory.mktemp("together") / "together.bq"
    with bamquery.connect(path, device="cpu") as made:
        made.register("source", _source())
        for name, encoding in (("plain", "plain"), ("packed", "auto")):
            made.sql(f"CREATE TABLE {name} WITH (encoding = '{encoding}') AS SELECT * FROM source")
            made.sql(f"INSERT INTO {name} SELECT * FROM source WHERE id < 1500 ORDER BY id")
        made.sql("SET threads = 2")
        yield made


def _source() -> pa.Table:
    random = np.random.default_rng(11)

    def nullable(values: object, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=random.random(ROWS) < 0.1)

    words = np.array(["air", "rail", "truck", "ship", "mail", "", "straße"])
    key = random.integers(0, 6000, ROWS)
    key[3000:9000] = 7  # vectors that pass or fail as a whole
    days = random.integers(8000, 8400, ROWS)
    cents = random.integers(0, 9999, ROWS)
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS)),
            "key": pa.array(key, pa.int32()),
            "loose": nullable(random.integers(0, 6000, ROWS), pa.int64()),
            "far": nullable(random.integers(0, 900, ROWS) * 10**11, pa.int64()),
            "small": nullable(random.integers(-20, 60, ROWS), pa.int16()),
            "money": nullable([Decimal(int(v)) / 100 for v in cents], pa.decimal128(9, 2)),
            "price": pa.array(random.integers(0, 9000, ROWS) / 100),
            "shipped": nullable(days.astype("datetime64[D]"), pa.date32()),
            "arrived": pa.array((days + random.integers(-3, 30, ROWS)).astype("datetime64[D]"), pa.date32()),
            "flag": nullable(random.random(ROWS) < 0.5, pa.bool_()),
            "word": nullable(words[random.integers(0, len(words), ROWS)], pa.large_string()),
            "text": pa.array([f"{v:x}-{v % 17}" for v in random.integers(0, 10**9, ROWS)], pa.large_string()),
        }
    )  # fmt: skip


CONDITIONS = [
    "small > 3",
    "small > 3 AND price < 30 AND word <> 'rail'",
    "small > 3 AND shipped < arrived",
    "shipped < arrived AND price * 2 > money AND small IS NOT NULL",
    f"key IN ({MANY})",
    f"loose IN ({MANY})",
    f"loose IN ({MANY}) AND loose > 100 AND price > 3",
    f"far IN ({FAR}) AND small < 40",
    f"key IN ({MANY}) AND loose IN ({MANY}) AND shipped < arrived",
    f"key NOT IN ({MANY}) AND price < 50",
    "flag AND small < 30 AND word LIKE '%ai%'",
    "small = 1000",
    "key = 7 AND price < 50",
    "word = 'air' AND small + 1 > 5 AND key > 10",
    "text LIKE '%7%' AND small > 0 AND price > 5",
    "money > 50.00 AND money < 60 AND price < money",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("outputs", ["count(*)", "id, small, word, price, shipped, text"])
def test_answers_are_those_of_plain_columns(con: bamquery.Connection, condition: str, outputs: str) -> None:
    order = "" if "count" in outputs else " ORDER BY ALL"
    rel = {
        name: con.sql(f"SELECT {outputs} FROM {name} WHERE {condition}{order}")
        for name in ("plain", "packed")
    }
    assert rel["packed"].to_arrow().to_pylist() == rel["plain"].to_arrow().to_pylist()


@pytest.mark.parametrize("condition", [c for c in CONDITIONS if "text" not in c and "1000" not in c])
def test_steps_are_taken_together(
    con: bamquery.Connection, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    run = VectorSelection.run

    def note(self: VectorSelection[object], plans: list[object], *args: object, **more: object) -> object:
        found = run(self, plans, *args, **more)  # type: ignore[arg-type]
        taken.append(len(plans))
        return found

    monkeypatch.setattr(VectorSelection, "run", note)
    con.sql(f"SELECT id FROM packed WHERE {condition}").to_arrow()
    assert taken, "no step went through"


def test_other_rows_of_a_chunk_are_neither_needed_nor_read(con: bamquery.Connection) -> None:
    """A step reads vectors in which the one before left rows, and needs these rows."""
    con.sql("SET threads = 1")
    con.sql("SET zone_maps = off")
    try:
        rel = con.sql("SELECT count(*) FROM packed WHERE key = 7 AND price < 50 AND small < 70")
        plain = con.sql("SELECT count(*) FROM plain WHERE key = 7 AND price < 50 AND small < 70")
        assert rel.fetchall() == plain.fetchall()
        (scan,) = rel.profile.scans
        ((alive,),) = con.sql("SELECT count(*) FROM plain WHERE key = 7").fetchall()
        first = min(scan.columns.values(), key=lambda column: -column.rows_needed)
        later = [column for column in scan.columns.values() if column is not first]
        assert first.rows_needed == ROWS + 1500
        assert all(column.rows_needed < ROWS for column in later)
        assert sum(column.rows_needed for column in scan.columns.values()) >= first.rows_needed + alive
        assert all(column.counters.bytes > 0 for column in scan.columns.values())
    finally:
        con.sql("SET zone_maps = on")
        con.sql("SET threads = 2")


def test_a_program_that_cannot_compute_a_row_is_not_asked_again(tmp_path: Path) -> None:
    """Its rows are computed otherwise, and the answer is the same."""
    numbers = np.arange(40_000)
    numbers[30_000] = 2**62
    with bamquery.connect(tmp_path / "large.bq", device="cpu") as con:
        con.register("source", pa.table({"n": numbers, "m": numbers % 100}))
        con.sql("CREATE TABLE t AS SELECT * FROM source")
        condition = "m::HUGEINT * 4 < n::HUGEINT * 4 AND m > 50"
        expected = sum(1 for n in numbers.tolist() if n % 100 * 4 < n * 4 and n % 100 > 50)
        assert con.sql(f"SELECT count(*) FROM t WHERE {condition}").fetchall() == [(expected,)]


@pytest.mark.parametrize("verify", [True, False])
def test_damage_names_column_and_vector(tmp_path: Path, verify: bool) -> None:
    path = tmp_path / "damaged.bq"
    with bamquery.connect(path, device="cpu") as con:
        rows = np.random.default_rng(3).integers(0, 1 << 20, 20_000)
        con.register("source", pa.table({"a": rows, "b": rows[::-1].copy()}))
        con.sql("CREATE TABLE t AS SELECT * FROM source")
    (data,) = (one for one in path.rglob("*") if one.is_file() and one.stat().st_size > 90_000)
    content = bytearray(data.read_bytes())
    content[20_000] ^= 0x10
    data.write_bytes(content)
    with bamquery.connect(path, device="cpu") as con:
        con.set("verify_checksums", "on" if verify else "off")
        rel = con.sql("SELECT count(*) FROM t WHERE a >= 500000 AND b >= 9000")
        if verify:
            with pytest.raises(CorruptionError, match=r'column "a", vector \d+: its values do not match'):
                rel.fetchall()
        else:
            assert rel.fetchall()
