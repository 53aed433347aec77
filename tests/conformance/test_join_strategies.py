"""Joins of every kind by every strategy, against pairs that are looked at one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from bamquery.engine.cpu.keys import join_table
from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.string_limits import StringLimits
from bamquery.engine.operators.base import frame_sizing
from bamquery.engine.operators.join import in_memory
from bamquery.engine.operators.join import pairs as join_pairs
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.join.partitions import PARTITIONS
from bamquery.engine.settings import Settings
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.plan.nodes import Field, JoinKind
from tests.conformance.harness import Rows

Row = tuple[Any, ...]
Truth = Callable[[Row, Row], bool | None]

KINDS: Final[tuple[JoinKind, ...]] = ("inner", "left", "right", "full", "semi", "anti", "single", "mark")
STRATEGIES: Final = ("in memory", "small portions", "dense keys", "partitions in memory", "files")
WORD: Final = pa.dictionary(pa.int8(), pa.large_string())
FIELDS: Final = (
    Field("k", pa.int64()),
    Field("j", pa.large_string()),
    Field("n", pa.int64()),
    Field("word", WORD),
)
NULLS: Final = (None,) * len(FIELDS)


def _column(side: int, place: int) -> ColumnRef:
    return ColumnRef(side * len(FIELDS) + place, FIELDS[place].name, FIELDS[place].type)


K, J = _column(0, 0), _column(0, 1)
LESS = Call("less", (_column(0, 2), _column(1, 2)), pa.bool_())


def _equal(mine: Row, other: Row) -> bool | None:
    return None if mine[0] is None or other[0] is None else mine[0] == other[0]


def _less(mine: Row, other: Row) -> bool | None:
    return None if mine[2] is None or other[2] is None else mine[2] < other[2]


CONDITIONS: Final[dict[str, tuple[JoinCondition, Truth]]] = {
    "k": (JoinCondition((K,), (K,), (False,)), _equal),
    "k, nulls equal": (JoinCondition((K,), (K,), (True,)), lambda m, o: m[0] == o[0]),
    "k and j": (
        JoinCondition((K, J), (K, J), (False, True)),
        lambda m, o: bool(_equal(m, o)) and m[1] == o[1],
    ),
    "k and less": (
        JoinCondition((K,), (K,), (False,), LESS),
        lambda m, o: bool(_equal(m, o)) and _less(m, o),
    ),
    "k, nulls equal, and less": (
        JoinCondition((K,), (K,), (True,), LESS),
        lambda m, o: m[0] == o[0] and _less(m, o),
    ),
    "less": (JoinCondition(residual=LESS), _less),
    "true": (JoinCondition(), lambda m, o: True),
    "false": (JoinCondition(residual=Literal(pa.scalar(False))), lambda m, o: False),
    "k and null": (
        JoinCondition((K,), (K,), (True,), Literal(pa.scalar(None, pa.bool_()))),
        lambda m, o: None if m[0] == o[0] else False,
    ),
}
FEW_CONDITIONS: Final = {
    "files": ("k", "k, nulls equal", "k and j", "k, nulls equal, and less", "less", "true"),
    "partitions in memory": ("k", "k, nulls equal", "k and j", "k, nulls equal, and less"),
}
"""Those that go another way by these strategies than in memory."""
NOT_FOR_MARKS: Final = {"k and j", "k and less"}
"""Their keys may be null, which only a key that is the whole condition answers for."""


@dataclass(frozen=True)
class Sides:
    """Rows of both sides."""

    left: list[Row]
    right: list[Row]


def _rows(keys: Sequence[int | None], seed: int) -> list[Row]:
    chosen = random.Random(seed)
    return [
        (key, chosen.choice(["a", "bb", None]), chosen.choice([None, *range(12)]), chosen.choice(["x", "y"]))
        for key in keys
    ]


def _drawn(count: int, seed: int, keys: Sequence[int | None]) -> list[Row]:
    return _rows(random.Random(seed).choices(keys, k=count), seed)


MANY: Final = [None, *range(90), 10**12]
SIDES: Final = {
    "many keys": Sides(_drawn(25, 1, MANY), [*_drawn(60, 2, MANY), *_rows(MANY, 3)]),
    "one key": Sides(_drawn(6, 3, [7]), [*_rows([7] * 115 + [None, 1, 2, 3, 4], 4)]),
    "each key once": Sides(_rows([None, *range(5, 20)], 5), _rows([*range(12), None, 10**12], 6)),
    "no null on the right": Sides(_drawn(9, 7, MANY), _drawn(9, 8, range(3, 12))),
    "nulls only on the right": Sides(_drawn(9, 9, MANY), _rows([None, None], 10)),
    "nothing on the left": Sides([], _drawn(9, 11, MANY)),
    "two rows for nobody": Sides([], _rows([1, 2], 15)),
    "nothing on the right": Sides(_drawn(9, 12, MANY), []),
    "one row each": Sides(_rows([7], 13), _rows([7], 14)),
}


def _table(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FIELDS, strict=True)]
    return pa.table(arrays, names=[field.name for field in FIELDS])


@cache
def _truths(what: str, on: str) -> list[list[bool | None]]:
    """For each row of the left side, what a condition says of it with each of the right one."""
    return [[CONDITIONS[on][1](mine, other) for other in SIDES[what].right] for mine in SIDES[what].left]


def _answer(sides: Sides, kind: JoinKind, pairs: list[list[bool | None]]) -> list[Row] | None:
    """By each pair; None where that fails."""
    answer: list[Row] = []
    matched: set[int] = set()
    for mine, truths in zip(sides.left, pairs, strict=True):
        found = [place for place, value in enumerate(truths) if value]
        if kind == "mark":
            answer.append((*mine, True if found else None if None in truths else False))
        elif kind in ("semi", "anti"):
            answer += [mine] * (bool(found) == (kind == "semi"))
        elif kind == "single" and len(found) > 1:
            return None
        else:
            matched.update(found)
            answer += [(*mine, *sides.right[place]) for place in found]
            if not found and kind in ("left", "full", "single"):
                answer.append((*mine, *NULLS))
    if kind in ("right", "full"):
        answer += [(*NULLS, *row) for place, row in enumerate(sides.right) if place not in matched]
    return answer


def _fields(kind: JoinKind) -> tuple[Field, ...]:
    if kind in ("semi", "anti"):
        return FIELDS
    return (*FIELDS, Field("mark", pa.bool_())) if kind == "mark" else (*FIELDS, *FIELDS)


def _run(join: Join[Any], context: ExecutionContext[Any]) -> list[Row]:
    fields = [Field(str(place), field.type) for place, field in enumerate(join.fields)]
    batches = [context.device.to_arrow(frame, fields) for frame in join.frames(context)]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest, device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """What makes joins go one way or another."""
    chosen = str(request.param)
    if chosen in ("dense keys", "partitions in memory"):
        monkeypatch.setattr(in_memory, "_MANY_ROWS", 0)
        if chosen == "partitions in memory":
            monkeypatch.setattr(in_memory, "make_dense_build", lambda *_: None)
    elif chosen == "small portions":
        for module in (join_table, join_pairs):
            monkeypatch.setattr(module, "_PORTION", 30)
        monkeypatch.setattr(in_memory, "_AT_ONCE", 1)
    elif chosen == "files":
        monkeypatch.setattr(frame_sizing, "GATHERED_ROWS", 20 // device.task_size)
    return chosen


@pytest.mark.parametrize("kind", KINDS)
def test_answers(device: Device[Any], tmp_path: Path, strategy: str, kind: JoinKind) -> None:
    shapes = {"files": 2, "dense keys": 2, "partitions in memory": 1, "small portions": 4}.get(strategy)
    few = FEW_CONDITIONS.get(strategy)
    limit = "7kB" if strategy == "files" else "1GB"
    for what, sides in list(SIDES.items())[:shapes]:
        left, right = _table(sides.left), _table(sides.right)
        for on, (condition, _) in CONDITIONS.items():
            if (kind == "mark" and on in NOT_FOR_MARKS) or (few and on not in few):
                continue
            expected = _answer(sides, kind, _truths(what, on))
            if kind == "single" and on == "true" and len(sides.right) > 1:
                expected = None
            join = Join(Rows(left, [9]), Rows(right, [0, 23]), kind, condition, _fields(kind))
            settings = Settings().with_values({"threads": 2, "memory_limit": limit})
            with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
                if strategy == "small portions":
                    context.string_limits = StringLimits(piece=4000)
                if expected is None:
                    with pytest.raises(ExecutionError, match="gave several rows"):
                        _run(join, context)
                else:
                    found = _run(join, context)
                    if strategy in ("in memory", "small portions"):
                        assert found == expected, (what, on)
                    assert sorted(map(repr, found)) == sorted(map(repr, expected)), (what, on)
                    if strategy == "files" and not condition.only_keys_matter(kind):
                        by_blocks = not condition.probe_keys or (what == "one key" and on != "k and j")
                        details = join.profile.details
                        assert details.get("partitions", 0) == (32 if condition.probe_keys else 0)
                        assert (details.get("blocks", 0) > 1) == by_blocks, (what, on)
                        assert details["build_rows"] == len(sides.right)
                assert context.memory.used == 0
                assert context.memory.peak <= context.memory.limit
            assert not list(tmp_path.iterdir())


def _keys_by_partition(device: Device[Any], level: int) -> dict[int, list[int]]:
    """The numbers below some thousands by the partition that a level's hash puts them into."""
    batch = pa.record_batch([pa.array(range(3000), pa.int64())], ["k"])
    frame = device.from_arrow(batch)
    parts = device.partition(frame, frame, PARTITIONS, level)
    field = [Field("k", pa.int64())]
    return {place: device.to_arrow(part, field).column(0).to_pylist() for place, part in enumerate(parts)}


@pytest.mark.parametrize("kind", ["full", "semi"])
def test_levels_of_partitions(device: Device[Any], tmp_path: Path, kind: JoinKind) -> None:
    """A partition that does not fit is split by another hash, and one that is one key no more."""
    alike = _keys_by_partition(device, 0)
    many, few = alike[3][:60], [alike[place][0] for place in range(5, 25)]
    on, less = CONDITIONS["k and less"]
    for keys, partitions, by_blocks in (
        ([*many, *many, *few], 64, False),  # by the second level's hash
        ([many[0]] * 120 + few, 64, True),  # one key, which the second level shows
        ([many[0]] * 190 + few, 32, True),  # one key, as the first level shows already
        ([many[0]] * 120 + [few[0]] * 120, 96, True),  # two keys
        ([many[0]] * 300, 32, True),
    ):
        sides = Sides(_rows([many[0], many[7], few[0], few[1], -5], 1), _rows(keys, 2))
        join = Join(Rows(_table(sides.left)), Rows(_table(sides.right), [23]), kind, on, _fields(kind))
        settings = Settings().with_values({"threads": 2, "memory_limit": "7kB"})
        with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
            found = _run(join, context)
        pairs = [[less(mine, other) for other in sides.right] for mine in sides.left]
        assert sorted(map(repr, found)) == sorted(map(repr, _answer(sides, kind, pairs) or []))
        details = join.profile.details
        assert (details["partitions"], details.get("blocks", 0) > 1) == (partitions, by_blocks)
        assert details["build_rows"] == len(keys)
        assert details["peak_memory"] <= 7000


class _Watched(Rows):
    """Notes what is held when each of its frames is asked for."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table, [9])
        self.held: list[int] = []

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        for frame in super().produce(context):
            self.held.append(context.memory.used)
            yield frame


@pytest.mark.parametrize("on", ["k and less", "less"])
@pytest.mark.parametrize("what", ["many keys", "one key"])
def test_nothing_is_held_while_a_probe_side_is_written(
    device: Device[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, what: str
) -> None:
    """What its operators hold must fit, too; build rows are in files then."""
    monkeypatch.setattr(frame_sizing, "GATHERED_ROWS", 20 // device.task_size)
    probe = _Watched(_table(SIDES[what].left))
    join = Join(probe, Rows(_table(SIDES[what].right), [23]), "left", CONDITIONS[on][0], _fields("left"))
    settings = Settings().with_values({"threads": 2, "memory_limit": "7kB"})
    with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
        for _ in join.frames(context):
            assert 0 < context.memory.used <= context.memory.limit
        assert context.memory.used == 0
    assert probe.held == [0] * len(probe.held)
    assert probe.held
