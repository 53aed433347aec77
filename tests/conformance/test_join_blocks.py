"""Joins of blocks of build rows with a file of others: what is noted over all blocks, against DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.join import block_nested_loop
from bamquery.engine.operators.join import pairs as join_pairs
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.pairs import JoinCondition, JoinPairFinder
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Expression
from bamquery.plan.nodes import Field, JoinKind
from tests.conformance.harness import Forever, Rows, random_column
from tests.conformance.spilling import run_spilling
from tests.values import plain

KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti", "single", "mark")
LIMIT = "20 kB"
NUMBER, WORD = pa.int64(), pa.dictionary(pa.int8(), pa.string())
FIELDS = (Field("k", NUMBER), Field("n", NUMBER), Field("word", WORD))


@pytest.fixture(autouse=True)
def small_chunks(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both sides have several chunks."""
    monkeypatch.setattr(framing, "GATHERED_ROWS", 60 // device.task_size)


def _table(keys: list[int | None], first: int = 0) -> pa.Table:
    """Rows of the keys, numbered, a word to each."""
    words = random_column(WORD, len(keys), 1, ["a", "b", "ccc"])
    numbers = [None if i % 17 == 3 else first + i for i in range(len(keys))]
    return pa.table({"k": pa.array(keys, NUMBER), "n": pa.array(numbers, NUMBER), "word": words})


def _column(side: int, name: str) -> ColumnRef:
    place = next(i for i, field in enumerate(FIELDS) if field.name == name)
    return ColumnRef(side * len(FIELDS) + place, name, FIELDS[place].type)


def _compared(function: str, name: str) -> Expression:
    return Call(function, (_column(0, name), _column(1, name)), pa.bool_())


def _both(*conditions: Expression) -> Expression:
    return Call("and", conditions, pa.bool_())


KEY = (_column(0, "k"),)
CONDITIONS = {  # what is said of keys, and of the rest
    ("TRUE", "l.n = r.n"): JoinCondition(residual=_compared("equal", "n")),
    ("TRUE", "l.k < r.k AND l.n >= r.n"): JoinCondition(
        residual=_both(_compared("less", "k"), _compared("greater_equal", "n"))
    ),
    ("l.k = r.k", "l.n = r.n"): JoinCondition(KEY, KEY, (False,), _compared("equal", "n")),
    ("l.k IS NOT DISTINCT FROM r.k", "l.n < r.n"): JoinCondition(KEY, KEY, (True,), _compared("less", "n")),
}
NONE = _table([])
LEFT = _table([None if i % 11 == 5 else i * 7 % 40 for i in range(230)])
RIGHT = _table([None if i % 13 == 6 else i * 5 % 43 for i in range(300)], first=60)
HOT = {1: _table([None if i % 50 == 5 else 7 + (i % 40 == 1) for i in range(400)], first=60)}
HOT[0] = HOT[1].slice(0, 230).set_column(1, "n", LEFT["n"])


def _join(left: pa.Table, right: pa.Table, kind: JoinKind, condition: JoinCondition) -> Join[Any]:
    fields = FIELDS if kind in ("semi", "anti") else (*FIELDS, *FIELDS)
    if kind == "mark":
        fields = (*FIELDS, Field("mark", pa.bool_()))
    return Join(Rows(left, [50]), Rows(right, [50]), kind, condition, fields)


def _rows(table: pa.Table) -> list[tuple[str, ...]]:
    rows = zip(*(plain(column) for column in table.columns), strict=True)
    return sorted(tuple(str(value) for value in row) for row in rows)


@pytest.mark.parametrize("limit", ["10 MB", LIMIT])
def test_another_run_gives_the_same(device: Device[Any], tmp_path: Path, limit: str) -> None:
    """Build rows are kept for it where they fit; where they do not, they are read again."""
    operator = _join(LEFT, RIGHT, "full", CONDITIONS["TRUE", "l.n = r.n"])
    operator.keep_build()
    settings = Settings().with_values({"threads": 2, "memory_limit": limit})
    with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
        context.memory.announce(operator.all_reservations(), 2)
        first, second = (
            sorted(str(row) for frame in operator.frames(context) for row in _values(device, frame))
            for _ in range(2)
        )
        assert (context.memory.used > 0) == (limit != LIMIT)
        operator.let_go()
        assert context.memory.used == 0
    assert first == second
    assert len(first) > len(RIGHT)


def _values(device: Device[Any], frame: Any) -> list[dict[str, Any]]:
    fields = [Field(f"c{i}", field.type) for i, field in enumerate((*FIELDS, *FIELDS))]
    return device.to_arrow(frame, fields).to_pylist()


def test_notes_and_blocks_are_counted_while_pairs_are_made(
    device: Device[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []

    def find_pairs(context: ExecutionContext[Any], table: Any, build: Any, *rest: Any, **options: Any) -> Any:
        counted.append((context.memory.used, len(LEFT) + device.nbytes(build)))
        return JoinPairFinder(context, table, build, *rest, **options)

    monkeypatch.setattr(block_nested_loop, "JoinPairFinder", find_pairs)
    join = _join(LEFT, RIGHT, "inner", CONDITIONS["TRUE", "l.n = r.n"])
    run_spilling(join, device, tmp_path, LIMIT)
    assert join.profile.details["blocks"] == len(counted) > 1
    assert all(used >= needed for used, needed in counted)


def _numbers(values: list[int | None]) -> pa.Table:
    ones = pa.array([1] * len(values), NUMBER)
    words = random_column(WORD, len(values), 1, ["a"])
    return pa.table({"k": ones, "n": pa.array(values, NUMBER), "word": words})


@pytest.mark.parametrize("gap", [1, 299])
def test_a_single_row_with_partners(device: Device[Any], tmp_path: Path, gap: int) -> None:
    """In one block, and in the first and the last one."""
    left, numbers = _numbers([-5, 3]), list(range(300))
    condition = CONDITIONS["TRUE", "l.n = r.n"]
    operator = _join(left, _numbers([*numbers[:-1], None]), "single", condition)
    rows = run_spilling(operator, device, tmp_path, LIMIT)
    assert sorted(zip(rows.column(1).to_pylist(), rows.column(4).to_pylist(), strict=True)) == [
        (-5, None),
        (3, 3),
    ]
    numbers[3] = -1
    numbers[0] = numbers[gap] = 3
    with pytest.raises(ExecutionError, match="gave several rows"):
        run_spilling(_join(left, _numbers(numbers), "single", condition), device, tmp_path, LIMIT)


@pytest.mark.parametrize("left", [NONE, LEFT], ids=["no rows", "rows"])
def test_a_single_row_without_condition(device: Device[Any], tmp_path: Path, left: pa.Table) -> None:
    """Fails for two build rows, whatever asks for them, as it does in memory."""
    for limit in ("10 MB", LIMIT):
        with pytest.raises(ExecutionError, match="gave several rows"):
            run_spilling(_join(left, RIGHT, "single", JoinCondition()), device, tmp_path, limit)


@pytest.mark.parametrize(
    ("first", "last", "mark"),
    [
        (False, None, None),
        (None, False, None),
        (None, True, True),
        (True, None, True),
        (False, True, True),
        (False, False, False),
    ],
    ids=str,
)
def test_marks_over_blocks(
    device: Device[Any], tmp_path: Path, first: bool | None, last: bool | None, mark: bool | None
) -> None:
    """What a first and a last block say of one row together."""
    numbers = {True: 3, False: 8, None: None}
    held = _numbers([numbers[first], *[8] * 300, numbers[last]])
    operator = _join(_numbers([3]), held, "mark", CONDITIONS["TRUE", "l.n = r.n"])
    assert run_spilling(operator, device, tmp_path, LIMIT).column(3).to_pylist() == [mark]
    assert operator.profile.details["blocks"] > 1


@pytest.mark.parametrize("kind", ["inner", "full", "semi", "mark"])
def test_no_block_is_begun_after_a_cancel(
    device: Device[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: JoinKind
) -> None:
    """Cancelled at the third look at pairs, a thread may finish what it is at, and no more."""
    looks: list[int] = []
    settings = Settings().with_values({"threads": 2, "memory_limit": LIMIT})
    with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
        found = join_pairs.JoinPairFinder.pairs

        def pairs(finder: Any, frame: Any) -> Any:
            looks.append(1)
            if len(looks) == 3:
                context.cancelled.set()
            return found(finder, frame)

        monkeypatch.setattr(join_pairs.JoinPairFinder, "pairs", pairs)
        frames = _join(LEFT, RIGHT, kind, CONDITIONS["TRUE", "l.n = r.n"]).frames(context)
        with pytest.raises(CancelledError):
            list(frames)
        assert context.memory.used == 0
    assert len(looks) <= 3 + settings.threads
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("held", [True, False])
def test_cancelled_while_sides_are_written(device: Device[Any], tmp_path: Path, held: bool) -> None:
    settings = Settings().with_values({"threads": 2, "memory_limit": LIMIT})
    with ExecutionContext(device, settings, spill_folder=tmp_path) as context:

        def cancel(given: int) -> None:
            if given == 20:
                context.cancelled.set()

        endless = Forever(RIGHT.combine_chunks().to_batches()[0], cancel)
        sides = (Rows(LEFT), endless) if held else (endless, Rows(RIGHT))
        condition = CONDITIONS["TRUE", "l.n = r.n"]
        with pytest.raises(CancelledError):
            list(Join(*sides, "full", condition, (*FIELDS, *FIELDS)).frames(context))
        assert context.memory.used == 0
    assert endless.closed
    assert endless.frames_given <= 22
    assert list(tmp_path.iterdir()) == []
