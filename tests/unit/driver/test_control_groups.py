"""Memory as control groups leave it, over made-up machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from bamquery.driver import control_groups
from bamquery.driver.control_groups import memory_limit, usable_memory
from bamquery.engine.settings import Settings


def machine(root: Path, group: str, files: dict[str, str]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(group)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/\n", {"memory.max": "max"}, None),
        ("0::/\n", {"memory.max": "4294967296"}, 4 << 30),
        ("0::/jobs/one\n", {"jobs/memory.max": "1000", "jobs/one/memory.max": "max"}, 1000),
        ("0::/jobs/one\n", {"jobs/memory.max": "1000", "jobs/one/memory.max": "900"}, 900),
        ("0::/host/name/of/it\n", {"memory.max": "700"}, 700),
        ("5:memory:/a\n", {"memory/a/memory.limit_in_bytes": "800"}, 800),
        ("garbage", {}, None),
    ],
)
def test_the_least_of_the_group_and_those_above(
    tmp_path: Path, group: str, files: dict[str, str], expected: int | None
) -> None:
    assert memory_limit(machine(tmp_path, group, files)) == expected


def test_the_default_limit_is_half_of_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    usable_memory.cache_clear()
    monkeypatch.setattr(control_groups, "memory_limit", lambda: 3 << 20)
    try:
        assert Settings().effective_memory_limit == 3 << 19
    finally:
        usable_memory.cache_clear()
