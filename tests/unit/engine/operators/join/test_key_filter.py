"""What is known of the keys of build rows that come in several frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CPU, CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.join import key_filter
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.key_filter import KeySummary, push_filter_to_sides
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import Call, ColumnRef, Expression
from bamquery.plan.nodes import JoinKind
from tests.conformance.harness import Rows

KEY = (ColumnRef(0, "k", pa.int64()),)


def _published(
    frames: Sequence[Sequence[int | None]], *, nulls_equal: bool = False, limit: str = "10MB"
) -> list[str]:
    """The conditions, as they are shown."""
    condition, known = JoinCondition(KEY, KEY, (nulls_equal,)), DynamicFilter("a test")
    with (
        ExecutionContext(CpuDevice(), Settings().with_value("memory_limit", limit)) as context,
        KeySummary(context, condition, {0: known}) as summary,
    ):
        for keys in frames:
            summary.add(pa.record_batch([pa.array(keys, pa.int64())], ["k"]))
        summary.publish()
    assert context.memory.used == 0
    return [
        f"k IN ({', '.join(sorted(str(literal.value) for literal in one.literals))})"
        if one.function == "in" and one.members is None
        else one.text("k")
        for one in known.conditions
    ]


_LESS = Call("less", (ColumnRef(0, "k", pa.int64()), ColumnRef(1, "k", pa.int64())), pa.bool_())
BOUNDS = ["(k >= 1)", "(k <= 9)"]


def test_keys_of_all_frames_are_named_once() -> None:
    assert _published([[7, 7, 1], [None], [9, 1]]) == ["k IN (1, 7, 9)"]
    assert _published([[7, 7, 1]]) == ["k IN (1, 7)"]
    assert _published([[7, 7], [7]]) == ["(k = 7)"]


def test_nulls_that_are_equal_are_wanted() -> None:
    assert _published([[7], [7, None]], nulls_equal=True) == ["(k = 7) OR k IS NULL"]
    assert _published([[7], [7]], nulls_equal=True) == ["(k = 7)"]
    assert _published([[None], [None]], nulls_equal=True) == ["k IS NULL"]
    assert _published([[None], [None]]) == []
    assert _published([]) == []


def test_many_keys_are_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_MOST_VALUES", 3)
    assert _published([[1, 2], [2, 9]]) == ["k IN (1, 2, 9)"]
    assert _published([[1, 2], [3, 9]]) == ["k IN (4 values)"]


def test_of_too_many_rows_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_MOST_ROWS", 4)
    assert _published([[1, 9], [1, 9]]) == ["k IN (1, 9)"]
    assert _published([[1, 9], [1, 9], [5]]) == BOUNDS
    assert _published([[1, 9], [1, 9], [5], [5]]) == BOUNDS


def test_of_too_many_bytes_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_MOST_BYTES", 32)
    assert _published([[1, 9], [1, 9]]) == ["k IN (1, 9)"]
    assert _published([[1, 9], [1, 9], [5], [5]]) == BOUNDS


def test_keys_beyond_the_memory_are_not_named() -> None:
    assert _published([[*range(1, 10_000)], [5], [5]]) == ["k IN (9,999 values)"]
    assert _published([[*range(1, 10_000)], [5], [5]], limit="100kB") == ["(k >= 1)", "(k <= 9999)"]


def test_the_memory_of_keys_is_no_operators_share() -> None:
    """What was announced is left for whom it was announced, whoever else takes all there is."""
    condition, filters = JoinCondition(KEY, KEY, (False,)), {0: DynamicFilter("a test")}
    with ExecutionContext(CpuDevice(), Settings().with_value("memory_limit", "1MB")) as context:
        context.memory.announce(1, 1)
        with KeySummary(context, condition, filters), context.memory.reservation("x", spare=True) as other:
            other.resize(other.room)
            with context.memory.reservation("JOIN") as join:
                assert join.room > 100_000


class _Scan(Rows):
    """Notes what filters it is offered, and takes all."""

    def __init__(self) -> None:
        super().__init__(pa.table({"k": pa.array([1], pa.int64())}))
        self.taken: list[Expression] = []

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        self.taken.append(value)
        return True


@pytest.mark.parametrize(
    ("kind", "of_probe", "of_build"),
    [
        ("inner", (1, 1), (1, 1)),
        ("left", (1, 0), (0, 0)),
        ("right", (0, 0), (0, 1)),
        ("full", (0, 0), (0, 0)),
        ("semi", (1, 1), (0, 0)),
        ("anti", (1, 0), (0, 0)),
        ("single", (1, 0), (0, 0)),
        ("mark", (1, 0), (0, 0)),
    ],
)
def test_sides_that_a_filter_on_a_key_goes_to(
    kind: JoinKind, of_probe: tuple[int, int], of_build: tuple[int, int]
) -> None:
    for place, expected in enumerate((of_probe, of_build)):
        for nulls_equal in (False, True):
            probe, build = _Scan(), _Scan()
            condition = JoinCondition(KEY, KEY, (nulls_equal,))
            key = ColumnRef(place, "k", pa.int64())
            taken = push_filter_to_sides((probe, build), kind, condition, key, DynamicFilter("a test"))
            own = tuple(int(side == place and expected[side]) for side in (0, 1))
            sides = len(probe.taken), len(build.taken)
            assert sides == (own if nulls_equal else expected)
            assert taken == any(sides)
            assert {*probe.taken, *build.taken} <= {*KEY}


def test_a_filter_goes_down_through_so_many_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_MOST_JOINS", 2)
    condition, known = JoinCondition(KEY, KEY, (False,)), DynamicFilter("a test")
    taken = [push_filter_to_sides((_Scan(), _Scan()), "inner", condition, KEY[0], known) for _ in range(3)]
    assert taken == [True, True, False]


def test_a_side_that_is_read_first_is_held_too() -> None:
    probe, build = _Scan(), _Scan()
    join = Join(probe, build, "semi", JoinCondition(KEY, KEY, (False,), _LESS), probe.fields)
    assert join.reservations == 1
    assert join.filter_build()
    assert build.taken == [*KEY]
    assert join.reservations == 2
    assert not join.runs_again


class _FarDevice(CpuDevice):
    """Groups keys by itself, as devices do whose rows are not the host's."""

    capabilities = replace(CPU, on_host=False)


@pytest.mark.parametrize("device", [CpuDevice(), _FarDevice()], ids=lambda device: type(device).__name__)
def test_memory_of_the_keys_that_are_named(monkeypatch: pytest.MonkeyPatch, device: CpuDevice) -> None:
    """Twice what they take, and what finds them once they are many; nothing once they are too many."""
    columns = tuple(ColumnRef(i, name, pa.int64()) for i, name in enumerate("ab"))
    condition = JoinCondition(columns, columns, (False, False))
    filters = {number: DynamicFilter("a test") for number in (0, 1)}
    monkeypatch.setattr(key_filter, "_MOST_BYTES", 1600)
    monkeypatch.setattr(key_filter, "_LARGEST_TABLE", 256 * 100)

    def held(values: int) -> int:
        return 2 * 8 * values + (min(256 * values, 256 * 100) if values > 64 else 0)

    with ExecutionContext(device, Settings()) as context:
        with KeySummary(context, condition, filters) as summary:
            assert context.memory.used == 0
            # the first key: frame by frame some more; the second: the same two, named once a frame
            for frame, (new, first) in enumerate([(40, 40), (24, 64), (2, 66), (60, 126), (70, 196)], 1):
                numbers = pa.array(range(first - new, first), pa.int64())
                same = pa.array([7, 9] * new, pa.int64()).slice(0, new)
                summary.add(pa.record_batch([numbers, same], ["a", "b"]))
                assert context.memory.used == held(first) + held(2 * frame)
            summary.add(pa.record_batch([pa.array(range(500, 505)), pa.array([7] * 5)], ["a", "b"]))
            assert context.memory.used == held(2 * 5 + 1)  # 1,608 bytes of the first are too many
            summary.publish()
        assert context.memory.used == 0
    assert [one.text("a") for one in filters[0].conditions] == ["(a >= 0)", "(a <= 504)"]
    assert [{literal.value.as_py() for literal in one.literals} for one in filters[1].conditions] == [{7, 9}]


@pytest.mark.parametrize("device", [CpuDevice(), _FarDevice()], ids=lambda device: type(device).__name__)
def test_keys_that_come_as_columns(device: CpuDevice) -> None:
    """Of keys that were found already, each filter takes its own."""
    columns = tuple(ColumnRef(i, name, pa.int64()) for i, name in enumerate("ab"))
    filters = {1: DynamicFilter("a test")}
    condition = JoinCondition(columns, columns, (False, True))
    frames = [
        pa.record_batch([pa.array(a, pa.int64()), pa.array(b, pa.int64())], ["a", "b"])
        for a, b in (([1, 1], [5, 6]), ([2, 2], [None, 6]))
    ]
    with ExecutionContext(device, Settings()) as context:
        for method in (KeySummary.observe_keys, KeySummary.observe_rows):
            with KeySummary(context, condition, filters) as summary:
                assert list(method(summary, frames)) == frames
                summary.publish()
            (known,) = filters[1].conditions
            assert {literal.value.as_py() for literal in known.literals} == {5, 6}
            assert known.or_null


def test_of_keys_that_have_no_least_and_greatest_nothing_is_said() -> None:
    """Whatever else the scans are told."""
    intervals = ColumnRef(1, "i", pa.month_day_nano_interval())
    columns, filters = (KEY[0], intervals), {number: DynamicFilter("a test") for number in (0, 1)}
    frame = pa.record_batch(
        [pa.array([7], pa.int64()), pa.array([(1, 2, 3)], pa.month_day_nano_interval())], ["k", "i"]
    )
    with (
        ExecutionContext(CpuDevice(), Settings()) as context,
        KeySummary(context, JoinCondition(columns, columns, (False, False)), filters) as summary,
    ):
        summary.add(frame)
        summary.publish()
    assert [one.text("k") for one in filters[0].conditions] == ["(k = 7)"]
    assert not filters[1].conditions


@pytest.mark.parametrize(
    ("kind", "nulls_equal", "taken"),
    [
        ("inner", True, [0]),
        ("semi", False, [0]),
        ("right", False, [0]),
        ("left", False, []),
        ("full", False, []),
    ],
)
def test_keys_that_scans_take(kind: JoinKind, nulls_equal: bool, taken: list[int]) -> None:
    """Only values in an order, and only of a side whose rows without a partner are not wanted."""
    columns = (KEY[0], ColumnRef(1, "flag", pa.list_(pa.int64())))
    condition = JoinCondition(columns, columns, (nulls_equal, False))
    scan = _Scan()
    filters = key_filter.key_filters(scan, kind, condition)
    assert [*filters] == taken
    assert scan.taken == [columns[number] for number in taken]
    assert [one.source for one in filters.values()] == ["keys of a join, k"] * len(taken)
