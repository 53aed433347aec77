"""Operators that group rows: what they say of themselves, the memory they ask for, and what they spare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate import distinct_aggregate
from bamquery.engine.operators.aggregate.aggregate import Aggregate, grouping_name
from bamquery.engine.operators.aggregate.distinct_aggregate import DistinctAggregate
from bamquery.engine.operators.aggregate.distinct_on import DistinctOnPrefilter
from bamquery.engine.operators.aggregate.grouping_sets_collect import CollectGroupingSets
from bamquery.engine.operators.aggregate.grouping_sets_expand import SET_NUMBER
from bamquery.engine.operators.aggregate.lowering import lower_grouping
from bamquery.engine.operators.aggregate.rollup import Rollup, _steps, can_rollup
from bamquery.engine.operators.base import frame_sizing
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, Call, Cast, ColumnRef, Expression, Literal, SortKey
from bamquery.plan.nodes import Field
from tests.conformance.harness import Rows, reference, run

INTEGER, TEXT = pa.int64(), pa.large_string()
TABLE = pa.table(
    {
        "g": pa.array([1, 2, 1, 2, 3, 1], INTEGER),
        "s": pa.array(["10", "9", None, "9", "1", "9"], TEXT),
        "n": pa.array([5, None, 5, 7, 1, None], INTEGER),
    }
)
G, S, N = (reference(TABLE, name) for name in "gsn")
COUNT = AggregateCall("count_star", (), INTEGER)
POSITIVE = Call("greater", (N, Literal(pa.scalar(1))), pa.bool_())


def _fields(**kinds: pa.DataType) -> tuple[Field, ...]:
    return tuple(Field(name, kind) for name, kind in kinds.items())


def _distinct(function: str, *arguments: Expression, **options: Any) -> AggregateCall:
    kind = TEXT if function == "string_agg" else INTEGER
    return AggregateCall(function, arguments, kind, distinct=True, **options)


@pytest.mark.parametrize("distinct", [0, 1, 3])
def test_groupings_ask_for_as_much_memory_as_they_announce(
    monkeypatch: pytest.MonkeyPatch, distinct: int
) -> None:
    """And say what they have held at most."""
    calls = [COUNT, *(_distinct("count", argument) for argument in (G, S, N)[:distinct])]
    fields = _fields(g=INTEGER, **{f"c{i}": INTEGER for i in range(len(calls))})
    kind = DistinctAggregate if distinct else Aggregate
    grouping: Operator[Any] = kind(Rows(TABLE), [G], calls, fields)
    with ExecutionContext(CpuDevice(), Settings(threads=1)) as context:
        asked: list[str] = []
        whole = context.memory.reservation

        def reservation(what: str, **options: Any) -> Any:
            asked.append(what)
            return whole(what, **options)

        monkeypatch.setattr(context.memory, "reservation", reservation)
        assert sum(frame.num_rows for frame in grouping.frames(context)) == 3
        assert len(asked) == grouping.reservations
        found = dict(grouping.profile.details)
        assert found.pop("program", "") == ("" if distinct else "1 of 1 aggregates")
        assert found == {
            "keys": ["g"],
            "aggregates": [field.name for field in fields[1:]],
            "peak_memory": context.memory.peak,
        }
        assert context.memory.peak > 0


@pytest.mark.parametrize(
    ("keys", "function", "name"),
    [
        ([G], "string_agg", "GROUP BY with string_agg()"),
        ([G], "count", "GROUP BY"),
        ([], "string_agg", "string_agg()"),
        ([], "count", "an aggregate"),
    ],
)
def test_errors_call_a_grouping_by_what_makes_it_large(
    keys: list[Expression], function: str, name: str
) -> None:
    call = AggregateCall(function, (S,), TEXT if function == "string_agg" else INTEGER)
    assert grouping_name(keys, [COUNT, call]) == name
    assert grouping_name(keys, [call, COUNT]) == name


def test_what_zone_maps_know_is_not_computed() -> None:
    class Known(Rows):
        def known_aggregates(self, calls: Sequence[AggregateCall]) -> pa.RecordBatch | None:
            return pa.record_batch([pa.array([42])], ["n"])

    for keys, wanted in (([], [42]), ([G], [3, 2, 1])):
        child = Known(TABLE)
        grouping: Aggregate[Any] = Aggregate(
            child, keys, [COUNT], _fields(**{"g": INTEGER} if keys else {}, n=INTEGER)
        )
        assert run(grouping, CpuDevice()).column("n").to_pylist() == wanted
        assert grouping.profile.details.get("answered by") == (None if keys else "zone maps")
        assert (child.frames_given == 0) == (not keys)


SETS = ((0, 1), (1,), (), (0,), (), (0, 1, 2))


def test_sets_are_made_of_the_smallest_one_with_all_their_keys() -> None:
    assert _steps(SETS) == (
        (5, (0, 1, 2), None),
        (0, (0, 1), 5),
        (1, (1,), 0),
        (3, (0,), 0),
        (2, (), 3),
        (4, (), 2),
    )
    assert _steps(((0,), (1,), (1, 1))) == ((0, (0,), None), (1, (1,), None), (2, (1,), 1))


def test_a_rollup_says_what_it_does() -> None:
    fields = _fields(g=INTEGER, s=TEXT, number=SET_NUMBER.type, c=INTEGER)
    rollup: Rollup[Any] = Rollup(Rows(TABLE), [G, S], [COUNT], ((0, 1), (0,)), fields)
    found = run(rollup, CpuDevice())
    assert found.num_rows == 5 + 3
    peak = rollup.profile.details.pop("peak_memory")
    assert isinstance(peak, int)
    assert peak > 0
    assert rollup.profile.details == {"sets": 2, "keys": ["g", "s", "number"], "aggregates": ["c"]}
    assert can_rollup([COUNT], 1, SETS)
    assert not can_rollup([COUNT], 0, ((),))


def test_numbers_of_sets_without_rows_have_their_own_type() -> None:
    for sets in (((0,), ()), ((), ())):
        grouped: Rollup[Any] = Rollup(
            Rows(TABLE.slice(0, 0)), [S], [], sets, _fields(s=TEXT, number=SET_NUMBER.type)
        )
        collected = CollectGroupingSets(
            grouped, grouped.children[0].fields, [], sets, _fields(s=TEXT, number=INTEGER)
        )
        numbers = [number for number, members in enumerate(sets) if not members]
        wanted = [{"s": None, "number": number} for number in numbers]
        assert run(collected, CpuDevice()).to_pylist() == wanted


class _Looking(CpuDevice):
    """A device that counts the chunks in which first rows are looked for, and may have no memory for them."""

    def __init__(self, *, full: bool = False) -> None:
        super().__init__()
        self.looked = 0
        self.full = full

    def aggregation(self, keys: Sequence[Expression], calls: Sequence[AggregateCall]) -> CpuAggregation:
        device = self

        class Counting(CpuAggregation):
            def partial(self, batch: pa.RecordBatch) -> Any:
                device.looked += 1
                if device.full:
                    raise MemoryLimitError("all of it is held")
                return super().partial(batch)

        return Counting(keys, calls)


@pytest.mark.parametrize(
    ("groups", "full", "looked", "left"), [(1, False, 3, 3), (12, False, 1, 12), (1, True, 3, 12)]
)
def test_first_rows_are_looked_for_while_that_pays(
    monkeypatch: pytest.MonkeyPatch, groups: int, full: bool, looked: int, left: int
) -> None:
    """Not where most rows are; and rows stay where there is no memory for it."""
    monkeypatch.setattr(frame_sizing, "GATHERED_ROWS", 1)
    table = pa.table({"g": [i % groups for i in range(12)], "n": list(range(12))})
    rows = DistinctOnPrefilter(Rows(table, [4]), [reference(table, "g")], [SortKey(reference(table, "n"))])
    device = _Looking(full=full)
    found = run(rows, device, threads=1)
    assert (device.looked, found.num_rows) == (looked, left)
    assert found.column("n")[0].as_py() == 0


@pytest.mark.parametrize(
    ("kind", "sorted_"),
    [
        *((kind, False) for kind in (INTEGER, pa.float32(), pa.decimal128(9, 2))),
        *((kind, False) for kind in (pa.date32(), pa.timestamp("us"))),
        *((kind, True) for kind in (TEXT, pa.bool_())),
    ],
    ids=str,
)
def test_first_rows_by_numbers_are_found_without_sorting(kind: pa.DataType, sorted_: bool) -> None:
    """By an extreme, where there is one sort key."""
    table = pa.table({"k": pa.array([], kind), "n": pa.array([], INTEGER)})
    key, other = SortKey(reference(table, "k")), SortKey(reference(table, "n"))
    for order in ([key], [key, other]):
        calls = DistinctOnPrefilter(Rows(table), [other.expression], order)._calls
        in_order = sorted_ or len(order) > 1
        assert [call.function for call in calls] == (["first"] if in_order else ["arg_min", "first"])
        assert calls[0].order == (tuple(order) if in_order else ())


class _Encoding(Rows):
    encoded = False

    def keep_encoded(self) -> None:
        self.encoded = True


def _lowered(plan: nodes.Aggregate) -> tuple[Operator[Any], _Encoding]:
    rows = _Encoding(TABLE)

    def lower(child: nodes.Plan) -> Operator[Any]:
        return rows

    return lower_grouping(plan, lower), rows


def test_groupings_take_strings_encoded() -> None:
    """Of grouping sets the keys are computed, and so not what is read."""
    values = nodes.Values(TABLE.combine_chunks().to_batches()[0])
    grouping, rows = _lowered(nodes.Aggregate(values, (S,), (COUNT,), ("s", "c")))
    assert grouping.profile.name == "Aggregate"
    assert rows.encoded
    total = AggregateCall("sum", (N,), pa.decimal128(38, 0))
    median = AggregateCall("mode", (N,), INTEGER)
    for calls in ((COUNT, total), (median, COUNT, total)):
        names = ("g", "s", *(f"c{i}" for i in range(len(calls))), "number")
        plan = nodes.Aggregate(values, (G, S), calls, names, ((0,), ()))
        sets, rows = _lowered(plan)
        assert not rows.encoded
        assert sets.fields == plan.fields
        assert sets.children[0].fields == (*plan.fields[:2], SET_NUMBER, *plan.fields[2:-1])


@pytest.mark.parametrize(
    ("options", "few"),
    [({}, True), ({"filter": POSITIVE}, False), ({"order": (SortKey(N),)}, False), ({"limit": 3}, False)],
)
def test_only_plain_first_rows_are_looked_for_before_a_sort(options: dict[str, Any], few: bool) -> None:
    values = nodes.Values(TABLE.combine_chunks().to_batches()[0])
    limit = options.pop("limit", None)
    call = AggregateCall("first", (S,), TEXT, **options)
    ordered = nodes.Sort(values, (SortKey(G), SortKey(N)), limit)
    grouping, rows = _lowered(nodes.Aggregate(ordered, (G,), (call,), ("g", "s")))
    below = grouping.children[0]
    assert (below is rows) != few
    if few:
        assert [operator.profile.name for operator in below.walk()] == ["Sort", "First rows", "Rows"]


ORDERED_BY_NUMBER = (SortKey(Cast(S, INTEGER)),)
COMMA = Literal(pa.scalar(",", TEXT))


def test_distinct_texts_in_an_order_that_is_made_of_them() -> None:
    """Which needs no other column; one that is not made of them does."""
    calls = [
        _distinct("string_agg", S, order=ORDERED_BY_NUMBER, parameter=COMMA),
        _distinct("string_agg", S, order=(SortKey(S, descending=True),), parameter=COMMA),
        _distinct(
            "string_agg", S, order=(SortKey(Call("length", (S,), INTEGER)), SortKey(S)), parameter=COMMA
        ),
        _distinct("string_agg", S, order=(SortKey(N),), filter=POSITIVE, parameter=COMMA),
        _distinct("string_agg", S, order=(SortKey(COMMA), SortKey(S)), parameter=COMMA),
    ]
    assert [distinct_aggregate._inputs(call) for call in calls] == [(S,), (S,), (S,), (S, N), (S,)]
    fields = _fields(**{f"c{i}": TEXT for i in range(len(calls))})
    (row,) = run(DistinctAggregate(Rows(TABLE), [], calls, fields), CpuDevice()).to_pylist()
    assert list(row.values()) == ["1,9,10", "9,10,1", "1,9,10", "10,9", "1,10,9"]


@pytest.mark.parametrize("condition", [None, POSITIVE])
@pytest.mark.parametrize("arguments", [(S,), (S, N)])
def test_rows_that_no_distinct_call_counts_are_left_out(
    arguments: tuple[ColumnRef, ...], condition: Expression | None
) -> None:
    """Those with a null argument, and those that its filter drops."""
    call = _distinct("count", *arguments, filter=condition)
    device = CpuDevice()
    (batch,) = TABLE.combine_chunks().to_batches()
    found = device.filter(batch, distinct_aggregate._counted_filter(call)).to_pylist()
    assert found == [
        row
        for row in batch.to_pylist()
        if all(row[argument.name] is not None for argument in arguments)
        and (condition is None or (row["n"] or 0) > 1)
    ]
