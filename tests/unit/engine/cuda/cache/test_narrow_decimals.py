"""Decimals that stay in 64 bits, over a stand-in for libcudf: kernels load them, all else has them in 128.

The stand-in refuses to compare or compute decimals of two widths, and to give out narrow ones.
"""

from __future__ import annotations

import importlib
import random
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field, SortKey
from tests.unit.engine.cuda import fake_columns

BOOL, LONG, PRICE = pa.bool_(), pa.int64(), pa.decimal128(15, 2)
DIGITS = pa.decimal128(18, 0)
ROWS = 70
MOST = 10**18 - 1
CENTS = [None if i % 7 == 3 else i * 1_000_003 * (-1) ** i for i in range(ROWS)]
"""Of prices; some are null."""
COUNTS = [(MOST, -MOST, 0, -1)[i % 4] for i in range(ROWS)]
SCHEMA = pa.schema([("price", PRICE), ("count", DIGITS), ("n", LONG)])
FIELDS = [Field(field.name, field.type) for field in SCHEMA]
REFERENCES = [ColumnRef(i, field.name, field.type) for i, field in enumerate(FIELDS)]
X, COUNT, N = REFERENCES


def module(name: str) -> Any:
    return importlib.import_module(f"bamquery.engine.cuda.{name}")


def wide_frame(device: Any) -> Any:
    prices = pa.array([None if n is None else Decimal(n).scaleb(-2) for n in CENTS], PRICE)
    columns = [prices, pa.array(map(Decimal, COUNTS), DIGITS), pa.array(range(ROWS), LONG)]
    return device.from_arrow(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


def narrow_frame(device: Any) -> Any:
    frame = module("cache.narrow_decimals").narrow_frame(device.kernels, wide_frame(device), SCHEMA)
    assert is_narrow(frame) == [True, True, False]
    return frame


def is_narrow(frame: Any) -> list[bool]:
    """Of each column, whether its source has 64 bits a decimal."""
    late = module("cache.late_columns").LateColumn
    narrow = fake_columns.TypeId.DECIMAL64
    return [isinstance(one, late) and one.source.type().id() == narrow for one in frame.held]


def rows(device: Any, frame: Any, fields: list[Field] = FIELDS) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = device.to_arrow(frame, fields).to_pylist()
    return found


def positions(device: Any, numbers: list[int]) -> Any:
    batch = pa.record_batch([pa.array(numbers, pa.int32())], names=["p"])
    return module("frames").CudaPositions(device.from_arrow(batch).columns[0])


def literal(cents: int) -> Literal:
    return Literal(pa.scalar(Decimal(cents).scaleb(-2), PRICE))


def whole(number: int) -> Literal:
    return Literal(pa.scalar(Decimal(number), DIGITS))


@pytest.fixture
def loaded(device: Any, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each column of decimals that a kernel is given, whether it is narrow."""
    columns, found = module("pipeline.input_columns"), []
    own = columns.InputColumn.pack

    def pack(self: Any) -> bytes:
        if self.column.type().id() in (fake_columns.TypeId.DECIMAL64, fake_columns.TypeId.DECIMAL128):
            found.append(self.column.type().id() == fake_columns.TypeId.DECIMAL64)
        packed: bytes = own(self)
        return packed

    monkeypatch.setattr(columns.InputColumn, "pack", pack)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_frames_of_them_become_what_frames_of_wide_ones_do(device: Device[Any], seed: int) -> None:
    """Rows taken, some of them null, slices, frames behind each other, rows looked at in between."""
    choose = random.Random(seed)
    now, wide = narrow_frame(device), wide_frame(device)
    for _ in range(choose.randint(1, 6)):
        count = now.rows
        what = choose.randrange(6)
        if what == 0 and count:
            some = [choose.randrange(count) for _ in range(choose.randint(1, 30))]
            now, wide = (device.take(one, positions(device, some)) for one in (now, wide))
        elif what == 1:
            some = [choose.randint(-1, count - 1) for _ in range(choose.randint(1, 30))]
            now, wide = (device.take_or_null(one, np.array(some, np.int64)) for one in (now, wide))
        elif what == 2 and count:
            start, length = choose.randrange(count), choose.randint(1, count)
            now, wide = (device.slice(one, start, length) for one in (now, wide))
        elif what == 3 and count:
            start = choose.randrange(count)
            now, wide = (device.concatenate([one, device.slice(one, start, 9), one]) for one in (now, wide))
        elif what == 4:
            key = [SortKey(X, descending=True), SortKey(N)]
            now, wide = (device.sort(one, key) for one in (now, wide))
        elif count:
            condition = Call("less", (X, literal(choose.choice([0, 10**8, -(10**7)]))), BOOL)
            now, wide = (device.filter(one, condition) for one in (now, wide))
        if choose.random() < 0.3:
            assert now.columns[0].type() == wide.columns[0].type()  # which makes it wide
    assert rows(device, now) == rows(device, wide)


@pytest.mark.parametrize(
    ("kind", "digits"),
    [(PRICE, 10**18), (DIGITS, 2**63), (DIGITS, -(2**63) - 1), (pa.decimal128(19, 2), 5)],
    ids=["fits", "too large", "too small", "may be too large"],
)
def test_what_has_no_room_in_64_bits_stays_wide(device: Any, kind: pa.DataType, digits: int) -> None:
    """Values are exact, also such as their type says cannot be there."""
    words = [7, digits, -1]
    raw = b"".join(word.to_bytes(16, "little", signed=True) for word in words)
    values = pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(raw)])
    frame = device.from_arrow(pa.record_batch([values.fill_null(0)], ["x"]))
    schema = pa.schema([("x", kind)])
    found = module("cache.narrow_decimals").narrow_frame(device.kernels, frame, schema)
    assert is_narrow(found) == [digits == 10**18]
    assert found.columns[0].values() == words


CONDITIONS: list[Expression] = [
    Call("and", (Call("less", (X, literal(9_000_000)), BOOL), Call("less", (literal(-5), X), BOOL)), BOOL),
    Call("and", (Call("less", (COUNT, whole(0)), BOOL), Call("less", (whole(-MOST), COUNT), BOOL)), BOOL),
    Call("or", (Call("is_null", (X,), BOOL), Call("equal", (COUNT, COUNT), BOOL)), BOOL),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=range(len(CONDITIONS)))
@pytest.mark.parametrize("rows_of", ["all", "slice", "taken", "looked at", "null"])
def test_selecting_kernels_load_them_as_they_are(
    device: Any, monkeypatch: pytest.MonkeyPatch, loaded: list[bool], condition: Expression, rows_of: str
) -> None:
    frame, wide = narrow_frame(device), wide_frame(device)
    if rows_of == "slice":
        frame, wide = (device.slice(one, 33, 30) for one in (frame, wide))
    elif rows_of == "null":
        some = np.array([5, -1, 66, 2, -1, 10])
        frame, wide = (device.take_or_null(one, some) for one in (frame, wide))
    elif rows_of != "all":
        some = positions(device, [60, 3, 2, 2, 41, 10, 0])
        frame, wide = (device.take(one, some) for one in (frame, wide))
    if rows_of == "looked at":
        _ = frame.columns[0], frame.columns[1]
    wanted = device.read_positions(device.matching_positions(condition, wide)).tolist()
    loaded.clear()
    monkeypatch.setattr(type(device), "_mask", None)
    assert device.read_positions(device.matching_positions(condition, frame)).tolist() == wanted
    assert set(loaded) == {rows_of != "looked at"}, "rows that were made wide are there, and are loaded"


@pytest.mark.parametrize("grouped", [False, True])
def test_aggregating_kernels_load_them_as_they_are(device: Any, loaded: list[bool], grouped: bool) -> None:
    total = Call("multiply", (X, X), pa.decimal128(30, 4))
    calls = [
        AggregateCall("sum", (X,), pa.decimal128(38, 2)),
        AggregateCall("min", (COUNT,), DIGITS),
        AggregateCall("sum", (total,), pa.decimal128(38, 4)),
    ]
    parity = Call("modulo", (N, Literal(pa.scalar(2, LONG))), LONG)
    keys = [parity] if grouped else []
    fields = [Field("key", LONG)] * grouped + [Field("value", call.type) for call in calls]
    answers = []
    for frame in (wide_frame(device), narrow_frame(device)):
        loaded.clear()
        grouping = device.aggregation(keys, calls)
        answers.append(rows(device, grouping.final(grouping.partial(frame)), fields))
    assert answers[0] == answers[1]
    assert loaded
    assert all(loaded)


def test_computed_columns_are_wide(device: Any) -> None:
    """And columns that a projection passes on stay narrow."""
    both = Call("add", (X, X), pa.decimal128(16, 2))
    fields = [Field("both", both.type), FIELDS[0]]
    found = device.evaluate([both, X], narrow_frame(device))
    assert is_narrow(found) == [False, True]
    assert rows(device, found, fields) == rows(device, device.evaluate([both, X], wide_frame(device)), fields)


def test_groups_by_them(device: Any) -> None:
    fields = [FIELDS[0], Field("count", LONG)]
    answers = []
    for frame in (wide_frame(device), narrow_frame(device)):
        grouped = device.aggregation([X], [AggregateCall("count_star", (), LONG)])
        found = rows(device, grouped.final(grouped.partial(device.concatenate([frame, frame]))), fields)
        answers.append(sorted(found, key=repr))
    assert answers[0] == answers[1]


def test_frames_behind_each_other_stay_narrow_where_all_are(device: Any) -> None:
    """As a column does that comes into the cache chunk by chunk."""
    first, second = narrow_frame(device), device.take(narrow_frame(device), positions(device, [4, 3, 60]))
    together = device.concatenate([first, second])
    assert is_narrow(together) == [True, True, False]
    _ = second.columns[0]  # is wide from here on
    for one in (wide_frame(device), second):
        mixed = device.concatenate([first, one])
        assert not is_narrow(mixed)[0]
        assert rows(device, mixed)[:ROWS] == rows(device, first)
        assert rows(device, mixed)[ROWS:] == rows(device, one)
    assert rows(device, together) == rows(device, device.concatenate([wide_frame(device), second]))


def test_a_row_counts_as_wide_as_its_copy_is(device: Any) -> None:
    frame, wide = narrow_frame(device), wide_frame(device)
    assert device.row_width(device.select(frame, [1, 2])) == device.row_width(device.select(wide, [1, 2]))
    assert device.row_width(frame) >= device.row_width(wide)


def test_the_cache_holds_half_the_bytes(device: Any) -> None:
    cached = module("cache.column_cache").cached
    wide, narrow = (cached("count", one.held[1]) for one in (wide_frame(device), narrow_frame(device)))
    assert (wide.nbytes, narrow.nbytes) == (16 * ROWS, 8 * ROWS)


def test_columns_come_into_the_cache_narrow(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two chunks, each of which is made narrow before they are put behind each other."""
    scan, cache = module("cache.cached_scan"), module("cache.column_cache")
    session = device.session
    monkeypatch.setattr(session, "column_cache", cache.ColumnCache(), raising=False)
    chunks = [device.slice(wide_frame(device), 0, 40), device.slice(wide_frame(device), 40, 30)]
    names, work = SCHEMA.names, SimpleNamespace(plan=SimpleNamespace(schema=SCHEMA), fragments=[])
    keys = {name: ((name, i),) for i, name in enumerate(names)}
    monkeypatch.setattr(scan, "replace", lambda work, **_: work)
    monkeypatch.setattr(scan, "scan_on_gpu", lambda *_: iter(chunks))
    monkeypatch.setattr(scan, "_sizes", lambda *_: (1, 0))
    limit, held = 1 << 20, dict[str, Any]()
    for _ in range(2):
        session.column_cache.find(keys.values(), limit)
    assert scan._fetch(device.kernels, device, work, keys, held, [], limit)
    assert [held[name].column.type().id().name for name in names] == ["DECIMAL64", "DECIMAL64", "INT64"]
    bits = -(-ROWS // 8)
    assert [held[name].nbytes for name in names] == [8 * ROWS + bits, 8 * ROWS, 8 * ROWS]
    assert session.column_cache.use().nbytes == 24 * ROWS + bits
    places = module("cache.late_columns").RowPlaces.run(device.kernels, 0, ROWS, whole=True)
    late = [scan._late(device.kernels, held[name].column, places) for name in names]
    assert rows(device, module("frames").make_frame(late, ROWS)) == rows(device, wide_frame(device))


def test_room_is_asked_for_as_narrow_columns_need(device: Any) -> None:
    sizes, table = module("cache.cached_scan")._sizes, pa.schema([("a", PRICE), ("b", pa.decimal128(19, 2))])
    layout = SimpleNamespace(columns=[SimpleNamespace(dictionary=None, nbytes=0)] * 2)
    fragment = SimpleNamespace(rows=800, schema=table, layout=layout, column_index=table.get_field_index)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module("cache.cached_scan"), "stored_bytes", lambda *_: 5)
        assert [sizes([fragment], name) for name in "ab"] == [(8 * 800 + 100, 5), (16 * 800 + 100, 5)]
