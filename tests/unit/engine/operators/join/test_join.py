"""What a join says of itself, what it asks of its sides, and what it keeps for another run."""

from __future__ import annotations

from typing import Any, get_args

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import Call, ColumnRef, Expression
from bamquery.plan.nodes import Field, JoinKind
from tests.conformance.harness import Rows

KINDS: tuple[JoinKind, ...] = tuple(kind for kind in get_args(JoinKind) if not kind.startswith("asof"))
K, WORD = ColumnRef(0, "k", pa.int64()), ColumnRef(1, "word", pa.large_string())
SAME_WORD = Call("equal", (WORD, ColumnRef(3, "word", pa.large_string())), pa.bool_())
LESS = Call("less", (K, ColumnRef(2, "k", pa.int64())), pa.bool_())
BY_K = JoinCondition((K,), (K,), (False,))
LEFT = pa.table({"k": pa.array([3, 1, None, 1]), "word": pa.array(["c", "a", None, "d"], pa.large_string())})
RIGHT = pa.table({"k": pa.array([1, None, 3, 5]), "word": pa.array(["x", "y", "z", "w"], pa.large_string())})


class _Side(Rows):
    """Notes what it is asked for, and takes every filter."""

    def __init__(self, table: pa.Table, *, takes: bool = True) -> None:
        super().__init__(table, [2])
        self.encodes = 0
        self.filtered: list[Expression] = []
        self._takes = takes

    def keep_encoded(self) -> None:
        self.encodes += 1

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        self.filtered.append(value)
        return self._takes


def _fields(kind: JoinKind) -> tuple[Field, ...]:
    own = tuple(Field(field.name, field.type) for field in LEFT.schema)
    if kind in ("semi", "anti"):
        return own
    return (*own, Field("mark", pa.bool_())) if kind == "mark" else (*own, *own)


def _join(
    kind: JoinKind, condition: JoinCondition, *, right: pa.Table = RIGHT, takes: bool = True
) -> tuple[Join[Any], _Side, _Side]:
    left, build = _Side(LEFT, takes=takes), _Side(right, takes=takes)
    return Join(left, build, kind, condition, _fields(kind)), left, build


def _rows(join: Join[Any], context: ExecutionContext[Any]) -> list[Any]:
    fields = [Field(str(place), field.type) for place, field in enumerate(join.fields)]
    return [row for f in join.frames(context) for row in context.device.to_arrow(f, fields).to_pylist()]


@pytest.mark.parametrize(
    ("condition", "name", "keys", "residual"),
    [
        (BY_K, "Hash join", ["k = k"], ""),
        (
            JoinCondition((K, WORD), (K, WORD), (True, False), LESS),
            "Hash join",
            ["k IS NOT DISTINCT FROM k", "word = word"],
            "(k < k)",
        ),
        (JoinCondition(residual=SAME_WORD, compared=((WORD, WORD),)), "Hash join", [], "(word = word)"),
        (JoinCondition(residual=LESS), "Nested loop join", [], "(k < k)"),
        (JoinCondition(), "Nested loop join", [], ""),
    ],
)
def test_what_is_shown(condition: JoinCondition, name: str, keys: list[str], residual: str) -> None:
    profile = _join("inner", condition)[0].profile
    assert profile.name == name
    assert profile.details == {"kind": "inner", "keys": keys, "condition": residual}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_reserved(kind: JoinKind) -> None:
    """For build rows; where each key is held once, for finding those, too."""
    keys_only = kind in ("semi", "anti", "mark")
    for condition, expected in (
        (BY_K, 2 if keys_only else 1),
        (JoinCondition((K,), (K,), (False,), LESS), 1),
    ):
        join, _, _ = _join(kind, condition)
        assert join.reservations == expected
        asks_for_keys = kind in ("semi", "anti", "single")  # a null key on the right makes marks null
        assert join.filter_build() == asks_for_keys
        assert join.reservations == expected + asks_for_keys
        assert join.runs_again != asks_for_keys
        assert join.profile.details.get("reads_first") == ("left side" if asks_for_keys else None)


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_filters_of_the_probe_side(kind: JoinKind, takes: bool) -> None:
    """Where rows without a partner are of no use, and only once: keys of another run may be others."""
    join, left, right = _join(kind, BY_K, takes=takes)
    assert join.runs_again
    join.filter_probe()
    wanted = kind in ("inner", "semi", "right")
    assert left.filtered == [K] * wanted
    assert right.filtered == []
    assert join.runs_again == (not (wanted and takes))
    assert not join.filter_build() or (takes and kind in ("semi", "anti", "single"))


@pytest.mark.parametrize("kind", KINDS)
def test_strings_that_may_come_encoded(kind: JoinKind) -> None:
    """Those of a probe side of which no string is compared, where rows are given as they are."""
    gives_rows = kind not in ("semi", "anti", "mark")
    for condition, compared in (
        (BY_K, False),
        (JoinCondition((K,), (K,), (False,), LESS), False),
        (JoinCondition((WORD,), (WORD,), (False,)), True),
        (JoinCondition((K,), (K,), (False,), SAME_WORD), True),
        (JoinCondition(residual=SAME_WORD), True),
        (JoinCondition((Call("length", (WORD,), pa.int64()),), (K,), (False,)), True),
    ):
        join, left, right = _join(kind, condition)
        join.keep_encoded()
        assert (left.encodes, right.encodes) == (int(gives_rows and not compared), 0)
    join, _, _ = _join(kind, BY_K)
    join.keep_encoded()
    with ExecutionContext(CpuDevice(), Settings().with_value("threads", 2)) as context:
        types = [frame.column(frame.num_columns - 1).type for frame in join.frames(context)]
    if gives_rows:
        # rows without a build row have a column of nulls, whatever its type
        assert any(map(pa.types.is_dictionary, types))


@pytest.mark.parametrize("kind", KINDS)
def test_build_rows_are_kept_for_another_run(kind: JoinKind) -> None:
    join, left, right = _join(kind, BY_K)
    assert [*join.read_again()] == [left, right]
    once, _, _ = _join(kind, BY_K)
    with ExecutionContext(CpuDevice(), Settings().with_value("threads", 2)) as context:
        expected = _rows(once, context)
        assert [*once.read_again()] == [*once.children]
        assert context.memory.used == 0
        join.keep_build()
        for _ in range(3):
            assert _rows(join, context) == expected
            assert [*join.read_again()] == [left]
            assert context.memory.used > 0
        assert (right.frames_given, left.frames_given) == (2, 6)
        join.let_go()
        assert context.memory.used == 0
        assert [*join.read_again()] == [left, right]
        join.let_go()
        assert _rows(join, context) == expected
        assert right.frames_given == 4
        join.let_go()
    assert expected


@pytest.mark.parametrize("kind", KINDS)
def test_each_run_has_its_own_probe_rows(kind: JoinKind) -> None:
    """Which build rows had a partner in one says nothing of the next."""
    join, left, _ = _join(kind, BY_K)
    join.keep_build()
    (all_rows,) = LEFT.to_batches()
    with ExecutionContext(CpuDevice(), Settings().with_value("threads", 2)) as context:
        for rows in (4, 1, 2):
            left._batch = all_rows.slice(0, rows)
            once, other, _ = _join(kind, BY_K)
            other._batch = left._batch
            assert _rows(join, context) == _rows(once, context)
        join.let_go()


@pytest.mark.parametrize("kind", KINDS)
def test_without_build_rows_a_probe_side_is_read_only_for_its_own(kind: JoinKind) -> None:
    join, left, _ = _join(kind, BY_K, right=RIGHT.slice(0, 0))
    join.keep_build()
    gives_rows = kind in ("left", "full", "anti", "single", "mark")
    with ExecutionContext(CpuDevice(), Settings().with_value("threads", 2)) as context:
        for run in (1, 2):
            assert len(_rows(join, context)) == LEFT.num_rows * gives_rows
            assert left.frames_given == 2 * run * gives_rows
            assert join.profile.details["build_rows"] == 0
        join.let_go()
        assert context.memory.used == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_run_says(kind: JoinKind) -> None:
    """Of this run, not of those before."""
    join, _, _ = _join(kind, BY_K)
    with ExecutionContext(CpuDevice(), Settings().with_value("threads", 2)) as context:
        for _ in range(2):
            _rows(join, context)
            assert join.profile.details["build_rows"] == RIGHT.num_rows
            assert 0 < join.profile.details["peak_memory"] <= context.memory.peak
            assert context.memory.used == 0
