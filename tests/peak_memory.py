"""How much memory a process came to hold."""

from __future__ import annotations

from pathlib import Path


def peak_bytes() -> int:
    """The most that this process has had resident since its program started.

    Not getrusage's ru_maxrss: that of a child counts what its parent held when it started it, so that a test
    would measure the tests before it.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the kernel does not say")
