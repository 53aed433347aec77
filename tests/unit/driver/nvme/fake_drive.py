"""Drives of memory: what the extension's NvmeDrive and NvmeController say, served by software."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

from bamquery import _native
from bamquery._native import QueueMemory
from bamquery.driver.controller import Controller
from bamquery.driver.faults import Fault
from bamquery.driver.nvme import drive
from bamquery.driver.nvme.reading import Open, Way
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import StorageError

BLOCKS = 4096


def content(block_bytes: int = 512, blocks: int = BLOCKS, seed: int = 1) -> bytearray:
    return bytearray(np.random.default_rng(seed).bytes(blocks * block_bytes))


def opener(
    data: bytearray,
    block_bytes: int = 512,
    *,
    change: Callable[[int, memoryview], None] = lambda number, view: None,
    faults: tuple[Fault, ...] = (),
    opened: list[SoftwareController] | None = None,
) -> Open:
    """Controllers over the data; `change` may alter what the one of a number has."""
    made: list[Way] = []

    @contextmanager
    def open_way(way: Way) -> Iterator[Controller]:
        memory = QueueMemory(
            leased_pairs=way.pairs,
            shared_pairs=0,
            depth=way.depth,
            slot_bytes=max(way.transfer_bytes, block_bytes),
            block_bytes=block_bytes,
        )
        with SoftwareController(memory, threads=1) as controller:
            if opened is not None:
                opened.append(controller)
            view = controller.contents(controller.add_memory(len(data), block_bytes))
            view[:] = data
            change(len(made), view)
            made.append(way)
            controller.set_faults(faults)
            yield controller

    return open_way


class FakeNativeDrive:
    """One drive of 512-byte blocks, and a second namespace that nobody takes."""

    def __init__(self, data: bytearray, log: list[str]) -> None:
        self.data = data
        self.log = log
        self.controllers: WeakSet[FakeNativeController] = WeakSet()

    def open(self, address: str, *, writable: bool, interface: str, timeout: float) -> FakeNativeDrive:
        self.log.append(f"open {address} {'writable' if writable else 'for reading'} {interface} {timeout}")
        self.address = address
        self.interface = "VFIO group 7"
        self.writable = writable
        return self

    def identity(self) -> dict[str, Any]:
        return {
            "serial": "SECRET",
            "model": "Pretend\x1b[31m",
            "firmware": "1",
            "version": "1.4.0",
            "vendor": 1,
            "controller_id": 0,
        }

    def limits(self) -> dict[str, Any]:
        return {
            "queue_pairs": 3,
            "queue_depth": 32,
            "transfer_bytes": 65536,
            "doorbell_stride": 0,
            "contiguous_queues": True,
            "shadow_doorbells": False,
            "memory_buffer": False,
            "ready_timeout": 0.5,
        }

    def namespaces(self) -> list[dict[str, Any]]:
        alike = {"metadata_bytes": 0, "protection": 0, "write_protected": False, "volatile_cache": True}
        blocks = len(self.data) // 512
        return [
            {"nsid": 1, "block_bytes": 512, "blocks": blocks, "refusal": None, **alike},
            {"nsid": 2, "block_bytes": 520, "blocks": 8, "refusal": "blocks of 520 bytes", **alike},
        ]

    def statistics(self) -> dict[str, Any]:
        return {"resets": 0}

    def close(self) -> None:
        self.log.append("close")


class FakeNativeController(_native.SoftwareController):
    """Serves a drive's memory."""

    doorbell_kind = "registers"
    doorbell_text = "registers, written by who issues"
    doorbell_writes = None

    def __init__(self, native: FakeNativeDrive, memory: QueueMemory, *, doorbells: str) -> None:
        if (
            sum(one.pairs for one in native.controllers) + memory.leased_pairs
            > native.limits()["queue_pairs"]
        ):
            raise StorageError("no queue pairs are left")
        super().__init__(memory, threads=1)
        self.memory(self.add_memory(len(native.data), 512))[:] = native.data
        native.log.append(f"controller {memory.leased_pairs} × {memory.depth}, {memory.slot_bytes}")
        self.start()
        self.pairs = memory.leased_pairs
        native.controllers.add(self)


def use_fake_drive(monkeypatch: pytest.MonkeyPatch, data: bytearray) -> list[str]:
    """From now on every drive is that one; what is done with it is written down."""
    log: list[str] = []
    fake = SimpleNamespace(NvmeDrive=FakeNativeDrive(data, log).open, NvmeController=FakeNativeController)
    monkeypatch.setattr(drive, "_native", fake)
    return log
