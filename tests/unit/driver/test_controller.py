"""The software controller from Python: namespaces, faults, profiles, statistics, and how it ends."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from bamquery._native import QueueMemory
from bamquery.driver.drive_profile import PROFILES, DriveProfile
from bamquery.driver.faults import Fault, Opcode
from bamquery.driver.queue_client import QueueClient
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError, StorageError

BLOCK = 512
BLOCKS = 256


class Stand:
    """A controller with a namespace of memory, and a client."""

    def __init__(self, threads: int | None, **shape: int) -> None:
        memory = QueueMemory(**{"leased_pairs": 2, "shared_pairs": 0, "depth": 16, **shape})
        self.controller = SoftwareController(memory, threads=threads)
        self.nsid = self.controller.add_memory(BLOCK * BLOCKS)
        self.controller.start()
        self.client = QueueClient(self.controller)


@pytest.fixture(params=[0, 1], ids=["served by clients", "one thread"])
def stand(request: pytest.FixtureRequest):
    made = Stand(request.param)
    yield made
    made.controller.stop()


def fails(call, *arguments, **named) -> NvmeError:
    with pytest.raises(NvmeError) as caught:
        call(*arguments, **named)
    return caught.value


def test_reads_what_was_written(stand: Stand) -> None:
    data = random.Random(1).randbytes(100 * BLOCK)  # more commands than slots
    stand.client.write(stand.nsid, 3, data)
    assert stand.client.read(stand.nsid, 3, 100) == data
    assert bytes(stand.controller.contents(stand.nsid)[3 * BLOCK : 103 * BLOCK]) == data
    stand.client.flush(stand.nsid)
    done = stand.controller.statistics()
    assert (done.reads, done.writes, done.flushes, done.errors) == (13, 13, 1, 0)
    assert done.read_bytes == done.write_bytes == len(data)


def test_error_names_namespace_block_and_status(stand: Stand, tmp_path: Path) -> None:
    error = fails(stand.client.read, stand.nsid, BLOCKS - 1, 2)
    assert (error.nsid, error.lba, error.sct, error.sc) == (stand.nsid, BLOCKS - 1, 0, 0x80)
    assert "beyond the end of the namespace" in str(error)
    assert f"namespace {stand.nsid}, LBA {BLOCKS - 1}, status 0h/80h" in str(error)
    path = tmp_path / "file"
    path.write_bytes(bytes(BLOCK))
    error = fails(stand.client.write, stand.controller.add_file(path), 0, bytes(BLOCK))
    assert (error.sct, error.sc, error.path) == (2, 0x86, path)


def test_only_whole_blocks(stand: Stand) -> None:
    for call in (stand.client.write, stand.client.read_into):
        for size in (0, BLOCK - 1):
            with pytest.raises(ValueError, match="whole blocks"):
                call(stand.nsid, 0, bytearray(size))


@pytest.mark.parametrize("direct", [False, True], ids=["mapped", "direct"])
def test_files(stand: Stand, tmp_path: Path, direct: bool) -> None:
    path = tmp_path / "file"
    data = random.Random(2).randbytes(20 * BLOCK)
    path.write_bytes(data + b"tail")
    try:
        nsid = stand.controller.add_file(path, direct=direct, writable=True)
    except StorageError as error:
        pytest.skip(str(error))
    assert stand.client.read(nsid, 0, 21) == data + b"tail" + bytes(BLOCK - 4)
    stand.client.write(nsid, 1, b"x" * BLOCK)
    stand.client.flush(nsid)
    assert path.read_bytes() == data[:BLOCK] + b"x" * BLOCK + data[2 * BLOCK :] + b"tail"
    stand.controller.remove_namespace(nsid)
    assert fails(stand.client.read, nsid, 0, 1).sc == 0x0B
    assert str(path) not in open_files()
    with pytest.raises(ValueError, match="no namespace"):
        stand.controller.remove_namespace(nsid)


def open_files() -> list[str]:
    files = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile: that of the listing, at least
            files.append(os.readlink(f"/proc/self/fd/{fd}"))
    return files


def test_truncated_file_is_a_status(stand: Stand, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 16))
    nsid = stand.controller.add_file(path)
    os.truncate(path, 4096)
    assert stand.client.read(nsid, 0, 8) == bytes(4096)
    error = fails(stand.client.read, nsid, 0, 128)
    assert (error.sct, error.sc, error.lba) == (2, 0x81, 8)


def test_impossible_things(stand: Stand, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        stand.controller.add_file(tmp_path / "none")
    with pytest.raises(ValueError, match="512 or 4096"):
        stand.controller.add_memory(4096, block_bytes=1000)
    with pytest.raises(ValueError, match="no such fault"):
        stand.controller.set_faults([Fault("melt")])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="probability"):
        stand.controller.set_faults([Fault("lose", probability=2)])
    with pytest.raises(ValueError, match="other than success"):
        stand.controller.set_faults([Fault("error")])
    with pytest.raises(KeyError):
        stand.controller.set_profile("Floppy")
    with pytest.raises(ValueError, match="one drive or more"):
        stand.controller.set_profile("Samsung Z-NAND", 0)
    with pytest.raises(ValueError, match="deadline"):
        stand.client.read(stand.nsid, 0, 1, deadline=-1)


def test_error_status_by_range(stand: Stand) -> None:
    fault = Fault("error", nsid=stand.nsid, opcode=Opcode.READ, first_lba=10, blocks=2, status=0x281)
    stand.controller.set_faults([fault])
    assert stand.client.read(stand.nsid, 0, 8) == bytes(8 * BLOCK)
    error = fails(stand.client.read, stand.nsid, 0, 32)
    assert (error.lba, error.sct, error.sc) == (8, 2, 0x81)  # the command that touches it
    stand.client.write(stand.nsid, 10, bytes(BLOCK))
    stand.controller.set_faults([])
    assert stand.client.read(stand.nsid, 0, 32) == bytes(32 * BLOCK)


def test_lost_completion_costs_its_slot(stand: Stand) -> None:
    stand.controller.set_faults([Fault("lose", most=1)])
    error = fails(stand.client.read, stand.nsid, 7, 1, deadline=0.05)
    assert (error.lba, error.sct, error.sc) == (7, 7, 0xC0)
    assert "before the deadline" in str(error)
    assert stand.client.read(stand.nsid, 7, 1) == bytes(BLOCK)
    assert stand.controller.statistics().lost == 1
    counts = stand.client.settle()
    assert (counts.missed, counts.late, counts.quarantined, counts.broken) == (1, 0, 1, 0)


def test_late_completion_gives_its_slot_back(stand: Stand) -> None:
    stand.controller.set_faults([Fault("delay", delay=0.2, most=1)])
    error = fails(stand.client.read, stand.nsid, 7, 1, deadline=0.05)
    assert (error.sct, error.sc) == (7, 0xC0)
    end = time.monotonic() + 60
    while stand.client.settle().quarantined and time.monotonic() < end:
        time.sleep(0.01)
    counts = stand.client.settle()
    assert (counts.missed, counts.late, counts.quarantined) == (1, 1, 0)


def test_torn_write(stand: Stand) -> None:
    stand.controller.set_faults([Fault("tear", bytes=700, status=0x280)])
    error = fails(stand.client.write, stand.nsid, 0, b"\xff" * 1024)
    assert (error.sct, error.sc) == (2, 0x80)
    assert stand.client.read(stand.nsid, 0, 2) == b"\xff" * 700 + bytes(324)


def test_wrong_head_breaks_one_pair(stand: Stand) -> None:
    stand.controller.set_faults([Fault("wrong_head", most=1)])
    error = fails(stand.client.read, stand.nsid, 0, 64)
    assert (error.sct, error.sc) == (7, 0xC2)
    assert stand.client.read(stand.nsid, 0, 64) == bytes(64 * BLOCK)  # by the other pair
    assert stand.client.settle().broken == 1
    stand.controller.set_faults([])
    stand.controller.stop()
    stand.controller.recreate_queues()
    stand.controller.start()
    fresh = QueueClient(stand.controller)
    assert fresh.read(stand.nsid, 0, 64) == bytes(64 * BLOCK)
    assert fresh.settle().broken == 0


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), window=st.integers(1, 20), share=st.floats(0, 1))
def test_reordering_changes_nothing_but_the_order(seed: int, window: int, share: float) -> None:
    stand = Stand(0)
    data = random.Random(seed).randbytes(200 * BLOCK)
    stand.controller.set_faults([Fault("reorder", window=window, probability=share)], seed)
    stand.client.write(stand.nsid, 0, data)
    assert stand.client.read(stand.nsid, 0, 200) == data
    assert stand.controller.statistics().held == sum(stand.controller.statistics().fired)


def test_profile_makes_commands_wait(stand: Stand) -> None:
    stand.controller.set_profile(DriveProfile("slow", 0.02, 0.02, 1e6, 1e6, 1e9, 1e9))
    before = time.monotonic()
    stand.client.read(stand.nsid, 0, 1)
    assert time.monotonic() - before >= 0.02
    stand.controller.set_profile("Intel Optane P5800X", drives=10)
    stand.client.read(stand.nsid, 0, 100)
    assert stand.controller.statistics().held == 14
    stand.controller.set_profile(None)
    stand.client.read(stand.nsid, 0, 1)
    assert stand.controller.statistics().held == 14


def test_profiles_of_the_paper() -> None:
    assert [round(profile.read_latency * 1e6) for profile in PROFILES.values()] == [11, 25, 324]
    assert all(profile.read_bytes <= 4096 * 2e6 for profile in PROFILES.values())


def test_many_threads(stand: Stand) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(50):
                data = bytes([number + 1, i % 256]) * (4 * BLOCK)
                stand.client.write(stand.nsid, number * 8, data)
                assert stand.client.read(stand.nsid, number * 8, 8) == data
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]  # more than queue pairs
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_stop_ends_what_is_held() -> None:
    stand = Stand(1)
    stand.controller.set_faults([Fault("delay", delay=3600)])
    found: list[NvmeError] = []
    thread = threading.Thread(target=lambda: found.append(fails(stand.client.read, stand.nsid, 5, 1)))
    thread.start()
    end = time.monotonic() + 60
    while stand.controller.statistics().held == 0 and time.monotonic() < end:
        time.sleep(0.001)
    stand.controller.stop()
    thread.join()
    assert (found[0].lba, found[0].sct, found[0].sc) == (5, 0, 0x08)


def test_threads_use_no_processor_while_nobody_is_active() -> None:
    controller = SoftwareController(QueueMemory(leased_pairs=8, shared_pairs=0), threads=4)
    assert controller.threads == 4
    with controller:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            before = controller.statistics().thread_seconds
            time.sleep(0.02)
            if controller.statistics().thread_seconds == before:
                break
        assert controller.statistics().thread_seconds == before


def test_default_leaves_processors_to_the_program() -> None:
    controller = SoftwareController(QueueMemory(leased_pairs=64, shared_pairs=0, depth=2))
    cores = len(os.sched_getaffinity(0))
    assert controller.threads == min(max(cores // 2, 1), 8)


PROGRAM = """
import sys, threading
from bamquery._native import QueueMemory
from bamquery.driver.software_controller import SoftwareController
from bamquery.driver.faults import Fault
from bamquery.driver.queue_client import QueueClient
controller = SoftwareController(QueueMemory(leased_pairs=2, shared_pairs=0), threads=2)
nsid = controller.add_file(sys.argv[1], writable=True)
controller.start()
client = QueueClient(controller)
client.write(nsid, 0, b"x" * 512)
if sys.argv[2] == "hang":
    controller.set_faults([Fault("delay", delay=3600)])
try:
    print("ready", flush=True)
    while True:
        client.write(nsid, 0, b"y" * 65536, deadline=3600)
except KeyboardInterrupt:
    controller.set_faults([])
    client.read(nsid, 0, 1)
    print("interrupted", flush=True)
"""


def start_program(path: Path, mode: str) -> "subprocess.Popen[str]":
    path.write_bytes(bytes(1 << 17))
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), mode], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return program


@pytest.mark.parametrize("mode", ["hang", "busy"])
def test_ctrl_c_ends_a_call(tmp_path: Path, mode: str) -> None:
    with start_program(tmp_path / "file", mode) as program:
        program.send_signal(signal.SIGINT)
        out, _ = program.communicate(timeout=60)
    assert (out, program.returncode) == ("interrupted\n", 0)


@pytest.mark.parametrize("mode", ["hang", "busy"])
def test_kill_leaves_nothing(tmp_path: Path, mode: str) -> None:
    shared = set(os.listdir("/dev/shm"))
    with start_program(tmp_path / "file", mode) as program:
        program.kill()
        program.communicate(timeout=60)
    assert not os.path.exists(f"/proc/{program.pid}")
    assert set(os.listdir("/dev/shm")) <= shared
    assert os.listdir(tmp_path) == ["file"]
    content = (tmp_path / "file").read_bytes()
    assert len(content) == 1 << 17
    assert set(content) <= set(b"xy\0")


def test_files_are_not_inherited(stand: Stand, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    stand.controller.add_file(path)
    listing = ["sh", "-c", "ls -l /proc/self/fd"]
    assert str(path) not in subprocess.run(listing, capture_output=True, text=True, close_fds=False).stdout


def test_statuses_in_words() -> None:
    assert _native.status_text(0x281) == "unrecovered read error"


def test_places_are_read_by_a_command_each(stand: Stand) -> None:
    data = random.Random(2).randbytes(BLOCK * BLOCKS)
    stand.controller.contents(stand.nsid)[:] = data
    lbas = np.array([5, 250, 0, 5, *range(100, 140)], np.uint64)  # more than slots
    target = bytearray(2 * BLOCK * len(lbas))
    stand.client.read_places(stand.nsid, lbas, target)
    pieces = [data[int(lba) * BLOCK : (int(lba) + 2) * BLOCK] for lba in lbas]
    assert bytes(target) == b"".join(pieces)
    assert stand.controller.statistics().reads == len(lbas)
    lbas[2] = BLOCKS
    error = fails(stand.client.read_places, stand.nsid, lbas, target)
    assert (error.lba, error.sc) == (BLOCKS, 0x80)
    for places, size in ((lbas, BLOCK), (lbas[:0], BLOCK), (lbas[:1], BLOCK + 1), (lbas[:1], 64 * BLOCK)):
        with pytest.raises(ValueError, match="equally many whole blocks"):
            stand.client.read_places(stand.nsid, places, bytearray(size))
