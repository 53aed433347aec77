"""No room for rows that do not fit in memory: an error that says what to do, and nothing is left behind."""

import errno
import os
import tempfile

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.sort.sort import Sort
from bamquery.engine.settings import Settings
from bamquery.errors import StorageError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef
from bamquery.plan.nodes import Field, SortKey
from tests.conformance.harness import Rows, random_table, reference
from tests.faults.test_full_disk import small_volume

TABLE = random_table([pa.int64()], 200_000)
KEY = reference(TABLE, "row")


def sort():
    return Sort(Rows(TABLE), [SortKey(KEY, descending=True)])


def group():
    count = AggregateCall("count_star", (), pa.int64())
    return Aggregate(Rows(TABLE), [KEY], [count], (Field("row", KEY.type), Field("n", count.type)))


def join(*residual):
    """By parts, or without a key by blocks; all pairs of equal rows."""
    right = ColumnRef(2, "a", KEY.type), ColumnRef(3, "row", KEY.type)
    fields = tuple(Field(column.name, KEY.type) for column in (reference(TABLE, "a"), KEY, *right))
    equal = Call("equal", (KEY, right[1]), pa.bool_())
    keys = () if residual else (KEY,)
    condition = JoinCondition(keys, keys, (False,) * len(keys), equal if residual else None)
    return Join(Rows(TABLE), Rows(TABLE), "full", condition, fields)


def block_join():
    return join(True)


def fails(operator, folder):
    """Run until the disk is full."""
    settings = Settings().with_values({"threads": 2, "memory_limit": "1 MB"})
    with ExecutionContext(CpuDevice(), settings, spill_folder=folder) as context:
        with pytest.raises(
            StorageError, match=r"No space left on device.*\. Free some space there"
        ) as caught:
            list(operator.frames(context))
        assert context.memory.used == 0
    assert str(folder) in str(caught.value)
    assert "SET memory_limit" in str(caught.value)


@pytest.mark.parametrize("make", [sort, group, join, block_join])
def test_a_full_volume(tmp_path, make):
    with small_volume(tmp_path, 1 << 20):
        fails(make(), tmp_path)
        assert list(tmp_path.iterdir()) == []
        volume = os.statvfs(tmp_path)
        assert volume.f_bfree == volume.f_blocks


@pytest.mark.parametrize("make", [sort, group, join, block_join])
def test_no_file_can_be_made(tmp_path, monkeypatch, make):
    def full(**options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    fails(make(), tmp_path)
