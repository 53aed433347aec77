import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.driver.doctor.finding import Finding, Level
from bamquery.queries.measuring import machine
from bamquery.queries.measuring.machine import describe_machine, machine_line


def test_a_machine_is_described(tmp_path: Path) -> None:
    described = describe_machine(tmp_path)
    assert described["cores"] == len(os.sched_getaffinity(0))
    libraries = described["libraries"]
    assert isinstance(libraries, dict)
    assert libraries["pyarrow"] == pa.__version__
    assert described["file_system"] != "unknown"
    assert json.loads(json.dumps(described)) == described
    assert machine_line(tmp_path).endswith(str(described["file_system"]))


def test_a_gpu_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding("CUDA", Level.OK, "cuda:0", values={"device": "cuda:0", "name": "NVIDIA H200"})
    monkeypatch.setattr(machine, "check_cuda", lambda _: [finding])
    assert machine.device_line("cuda:0") == "cuda:0 (NVIDIA H200)"
    assert machine.device_line("cuda:1") == "cuda:1"
    assert machine.device_line("cpu") == "cpu"
    gpus = describe_machine(Path("/proc"))["gpus"]
    assert {"check": "CUDA", "device": "cuda:0", "name": "NVIDIA H200"} in gpus  # type: ignore[operator]


def test_file_systems_are_those_of_their_mount_points() -> None:
    assert describe_machine(Path("/proc"))["file_system"] == "proc"
