"""A real kernel: what its cells show, progress, and its interrupt."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any

import pytest

client_module = pytest.importorskip("jupyter_client")


class Kernel:
    """Runs cells and collects what they send."""

    def __init__(self) -> None:
        self.manager = client_module.manager.KernelManager(kernel_name="python3")
        self.manager.start_kernel()
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def begin(self, code: str) -> str:
        return self.client.execute(code)

    def messages(self, asked: str) -> Iterator[dict[str, Any]]:
        """What belongs to a cell, until it is done."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            yield message
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
        pytest.fail("the cell did not end")

    def run(self, code: str) -> list[dict[str, Any]]:
        return list(self.messages(self.begin(code)))

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    running = Kernel()
    running.run("import bamquery, time, pyarrow as pa\n%load_ext bamquery")
    yield running
    running.stop()


def of_type(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [message["content"] for message in messages if message["msg_type"] == kind]


def test_a_cell_shows_a_table(kernel):
    [shown] = of_type(kernel.run("%%bamquery\nSELECT 42 AS answer"), "execute_result")
    assert "<td" in shown["data"]["text/html"]
    assert "answer" in shown["data"]["text/plain"]


def test_an_error_is_short(kernel):
    [error] = of_type(kernel.run("%%bamquery\nSELECT nothing"), "error")
    assert error["ename"] == "SqlError"
    assert len(error["traceback"]) == 1


SLOW = """
con = bamquery.connect()
def batches():
    for start in range(3):
        time.sleep(0.7)
        yield pa.record_batch({"x": pa.array(range(start, start + 10))})
con.register("slow", pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), batches()))
con.sql("SELECT sum(x) FROM slow").fetchall()
"""


def test_progress_comes_and_goes(kernel):
    messages = kernel.run(SLOW)
    begun = of_type(messages, "display_data")
    assert len(begun) == 1
    assert "<progress" in begun[0]["data"]["text/html"]
    last = of_type(messages, "update_display_data")[-1]
    assert last["transient"] == begun[0]["transient"]
    assert last["data"] == {"text/html": "", "text/plain": ""}
    [answer] = of_type(messages, "execute_result")
    assert "165" in answer["data"]["text/plain"]


ENDLESS = """
con = bamquery.connect()
def endless():
    print("begun", flush=True)
    while True:
        time.sleep(0.01)
        yield pa.record_batch({"x": pa.array(range(1000))})
con.register("endless", pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), endless()))
%bamquery -c con SELECT sum(x) FROM endless
"""


def test_interrupt_cancels(kernel):
    seen = []
    for message in kernel.messages(kernel.begin(ENDLESS)):
        seen.append(message)
        if message["msg_type"] == "stream" and "begun" in message["content"]["text"]:
            kernel.manager.interrupt_kernel()
    [error] = of_type(seen, "error")
    assert error["ename"] == "KeyboardInterrupt"
    assert len(error["traceback"]) == 1
    [shown] = of_type(kernel.run("%bamquery SELECT 1 AS still"), "execute_result")
    assert "still" in shown["data"]["text/plain"]
