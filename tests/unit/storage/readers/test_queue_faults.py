"""What a controller does wrong reaches the reader as an error that says where, and the next read answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import bamquery
from bamquery.driver.faults import Fault, Opcode
from bamquery.errors import NvmeError, StorageError
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.queue_reader import IoPath, QueueReader
from tests.stored import require_direct_reads

SIZE = 3 << 20
BLOCK = 4096
MEDIA_ERROR = 0x281
DEADLINE_MISSED = 0x7C0
QUEUE_BROKEN = 0x7C2
CONTENTS = np.random.default_rng(5).integers(0, 256, SIZE, np.uint8).tobytes()
ROWS = np.arange(SIZE // BLOCK)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "file"
    path.write_bytes(CONTENTS)
    require_direct_reads(path.parent)
    return path


@pytest.fixture(params=["io_uring", "preadv"])
def reader(file: Path, request: pytest.FixtureRequest) -> Iterator[QueueReader]:
    """With little patience, since some faults are found out by it alone."""
    try:
        reader = QueueReader(file, SIZE, BLOCK, io=cast("IoPath", request.param), patience=0.8)
    except StorageError as error:
        pytest.skip(str(error))
    yield reader
    set_faults(reader)
    reader.close()


def set_faults(reader: QueueReader, *faults: Fault) -> None:
    reader.controller.set_faults([fault.rule() for fault in faults], 0)


def lba(reader: QueueReader, block: int) -> int:
    """Of a block of the reader's: LBAs have what the device's blocks have."""
    with_device_blocks = QueueReader(reader.path, SIZE)
    size = with_device_blocks.block_size
    with_device_blocks.close()
    return block * BLOCK // size


def gather(reader: QueueReader, rows: np.ndarray) -> bytes:
    return reader.gather(0, BLOCK, 8, rows, ReadCounters()).to_pybytes()


def expected(rows: np.ndarray) -> bytes:
    return b"".join(CONTENTS[row * BLOCK : row * BLOCK + 8] for row in rows)


def status_with(reader: QueueReader, fault: Fault) -> int:
    """How a read ends: 0 is well."""
    set_faults(reader, fault)
    try:
        assert gather(reader, ROWS[:1]) == expected(ROWS[:1])
    except NvmeError as error:
        return error.sct << 8 | error.sc
    return 0


def test_a_media_error_says_where(reader: QueueReader) -> None:
    bad = lba(reader, 77)
    set_faults(reader, Fault("error", opcode=Opcode.READ, first_lba=bad, blocks=1, status=MEDIA_ERROR))
    apart = ROWS[1::2]
    with pytest.raises(NvmeError, match="cannot be read at byte 315392: unrecovered read error") as raised:
        gather(reader, apart)
    error = raised.value
    assert (error.lba, error.sct, error.sc, error.path) == (bad, 2, 0x81, reader.path)
    assert error.nsid >= 1
    assert f"(namespace {error.nsid}, LBA {bad}, status 2h/81h)" in str(error)
    others = apart[apart != 77]
    assert gather(reader, others) == expected(others)
    set_faults(reader)
    assert gather(reader, apart) == expected(apart)


def test_late_and_reordered_answers_change_nothing(reader: QueueReader) -> None:
    apart = ROWS[::2]
    set_faults(
        reader,
        Fault("reorder", probability=0.3, window=20),
        Fault("delay", probability=0.2, delay=0.002),
    )
    for _ in range(5):
        assert gather(reader, apart) == expected(apart)
    whole = reader.read_ranges(np.array([0]), np.array([SIZE]), ReadCounters())
    assert whole.to_pybytes() == CONTENTS


@pytest.mark.parametrize(
    "fault", [Fault("lose", most=1), Fault("delay", most=1, delay=1.6)], ids=["lost", "late"]
)
def test_an_answer_that_does_not_come_in_time_is_an_error(reader: QueueReader, fault: Fault) -> None:
    set_faults(reader, fault)
    with pytest.raises(NvmeError, match="no completion came before the deadline") as raised:
        gather(reader, ROWS[::2])
    assert raised.value.sct << 8 | raised.value.sc == DEADLINE_MISSED
    # Also while the late answer comes, and long after it.
    for _ in range(100):
        assert gather(reader, ROWS[::2]) == expected(ROWS[::2])


def test_queue_pairs_that_broke_are_replaced(reader: QueueReader) -> None:
    # Each takes its pair with it, until the last one's end has new ones, without faults, in their place.
    broken = 0
    while (status := status_with(reader, Fault("wrong_head", most=1))) == QUEUE_BROKEN:
        broken += 1
    assert status == 0
    assert 8 <= broken <= 32
    assert gather(reader, ROWS) == expected(ROWS)


def test_every_slot_may_get_lost(reader: QueueReader) -> None:
    set_faults(reader, Fault("lose"))
    for _ in range(3):
        with pytest.raises(NvmeError, match="before the deadline"):
            gather(reader, ROWS[::2])
    set_faults(reader)
    assert gather(reader, ROWS[::2]) == expected(ROWS[::2])


def test_a_query_fails_and_the_next_one_answers(tmp_path: Path) -> None:
    require_direct_reads(tmp_path)
    with bamquery.connect(tmp_path / "db", reader="direct") as connection:
        table = pa.table({"x": np.random.default_rng(1).permutation(200_000)})
        parquet.write_table(table, tmp_path / "x.parquet")
        connection.sql(f"CREATE TABLE t AS SELECT * FROM '{tmp_path}/x.parquet'")
        question = "SELECT sum(x) FROM t WHERE x >= 100"
        total = connection.sql(question).fetchall()
        (fragment,) = (tmp_path / "db").rglob("*[!s].arrow")
        reader = QueueReader(fragment, fragment.stat().st_size)
        set_faults(reader, Fault("error", opcode=Opcode.READ, first_lba=300, blocks=1, status=MEDIA_ERROR))
        try:
            with pytest.raises(NvmeError, match=r"unrecovered read error \(namespace \d+, LBA \d+") as raised:
                connection.sql(question).fetchall()
            assert raised.value.path == fragment
        finally:
            set_faults(reader)
        assert connection.sql(question).fetchall() == total
        reader.close()
