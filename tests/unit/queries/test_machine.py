import json
import os
from pathlib import Path

import pyarrow as pa

from bamquery.queries.machine import describe_machine, machine_line


def test_a_machine_is_described(tmp_path: Path) -> None:
    machine = describe_machine(tmp_path)
    assert machine["cores"] == len(os.sched_getaffinity(0))
    libraries = machine["libraries"]
    assert isinstance(libraries, dict)
    assert libraries["pyarrow"] == pa.__version__
    assert machine["file_system"] != "unknown"
    assert json.loads(json.dumps(machine)) == machine
    assert machine_line(tmp_path).endswith(str(machine["file_system"]))


def test_file_systems_are_those_of_their_mount_points() -> None:
    assert describe_machine(Path("/proc"))["file_system"] == "proc"
