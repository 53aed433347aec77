from pathlib import Path

import pytest

from bamquery.driver.doctor.finding import Level
from bamquery.driver.doctor.host import check_kernel, check_memlock, check_memory, check_processors
from bamquery.driver.machine import Machine
from tests.unit.driver.doctor.fake_machine import CPUINFO, make


def test_a_server_is_fine(tmp_path: Path) -> None:
    machine = make(tmp_path)
    found = [*check_kernel(machine), *check_processors(machine), *check_memory(machine)]
    assert {finding.level for finding in found} == {Level.OK}
    texts = {finding.check: finding.found for finding in found}
    assert texts["processors"] == "2 of 2 cores"
    assert texts["instructions"] == "Pretend 9000: CRC-32C, AVX2, AVX-512"
    assert texts["memory"] == "64.0 GiB, 32.0 GiB available"
    assert "6.8.0-45-generic" in texts["kernel"]


def test_an_old_kernel(tmp_path: Path) -> None:
    (finding,) = check_kernel(make(tmp_path, {"proc/sys/kernel/osrelease": "5.4.0-1"}))
    assert finding.level is Level.NOTE
    assert "io_uring" in finding.meaning


@pytest.mark.parametrize(
    ("group", "files"),
    [
        # The tightest of a group and those above it holds.
        (
            "0::/a/b\n",
            {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000", "a/b/memory.max": "1073741824"},
        ),
        # In a container the group's name is the host's, and its own files are at the top.
        ("0::/not/here\n", {"cpu.max": "150000 100000", "memory.max": "1073741824"}),
        # Version 1 has a folder for each controller.
        (
            "4:memory:/m\n2:cpu,cpuacct:/c\n",
            {
                "cpu/c/cpu.cfs_quota_us": "150000",
                "cpu/c/cpu.cfs_period_us": "100000",
                "cpu/cpu.cfs_quota_us": "-1",
                "memory/m/memory.limit_in_bytes": "1073741824",
                "memory/memory.limit_in_bytes": "9223372036854771712",
            },
        ),
    ],
)
def test_limits_of_control_groups(tmp_path: Path, group: str, files: dict[str, str]) -> None:
    changes = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    machine = make(tmp_path, {"proc/self/cgroup": group, **changes})
    processors, memory = next(iter(check_processors(machine))), next(iter(check_memory(machine)))
    assert processors.level is Level.NOTE
    assert processors.values["quota"] == 1.5
    assert processors.found.startswith("1.5 of 2 cores")
    assert memory.level is Level.NOTE
    assert memory.values["limit"] == 1 << 30
    assert "SET memory_limit = '512MiB'" in memory.advice


def test_no_checksum_instruction(tmp_path: Path) -> None:
    cpuinfo = CPUINFO.replace("sse4_2 avx2 avx512f", "sse2")
    _, finding = check_processors(make(tmp_path, {"proc/cpuinfo": cpuinfo}))
    assert finding.level is Level.NOTE
    assert "none of CRC-32C, AVX2, AVX-512" in finding.found


def test_no_huge_pages(tmp_path: Path) -> None:
    machine = make(tmp_path, {"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"})
    _, finding = check_memory(machine)
    assert finding.level is Level.NOTE


def test_no_proc(tmp_path: Path) -> None:
    machine = Machine(root=tmp_path)
    assert [finding.found for finding in check_memory(machine)] == ["unknown"]
    assert list(check_memlock(machine)) == []


@pytest.mark.parametrize(("soft", "level"), [(8 << 20, Level.NOTE), (-1, Level.OK), (1 << 30, Level.OK)])
def test_locked_memory(monkeypatch: pytest.MonkeyPatch, soft: int, level: Level) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (soft, -1))
    (finding,) = check_memlock(Machine())
    assert finding.level is level
