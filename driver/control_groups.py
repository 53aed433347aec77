"""What the control groups of this process (containers, services) leave it of the machine."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


def control_group_folders(controller: str, root: Path = Path("/")) -> list[Path]:
    """The folders of this process's control group and those above, of version 2 or of one controller of 1.

    `root` has `proc` and `sys`.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        if number == "0" and not names:
            top = root / "sys/fs/cgroup"
        elif controller in names.split(","):
            top = root / "sys/fs/cgroup" / controller
        else:
            continue
        if not top.is_dir():
            continue
        # In a container the group may be named as the host sees it; then its own root is all there is.
        folder = top / group.lstrip("/")
        steps = [folder, *folder.parents] if folder.is_dir() else [top]
        return [step for step in steps if step.is_relative_to(top)]
    return []


def memory_limit(root: Path = Path("/")) -> int | None:
    """Bytes that the control groups allow this process and those beside it; None: no limit."""
    texts = [
        _text(folder / name)
        for folder in control_group_folders("memory", root)
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    return min((int(text) for text in texts if text.isdigit()), default=None)


@cache
def usable_memory() -> int:
    """Bytes of memory: the machine's, or fewer where a control group says so. Asked once."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit()
    return machine if limit is None else min(machine, limit)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
