"""Kernel, processors, memory and what of them this process may have."""

from __future__ import annotations

import os
import platform
import re
import resource
from collections.abc import Iterator

from bamquery.driver.control_groups import control_group_folders, memory_limit
from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.machine import Machine, gib

_IO_URING_SINCE = (5, 6)
"""IORING_OP_READ and IORING_OP_WRITE."""


def check_kernel(machine: Machine) -> Iterator[Finding]:
    """Operating system and kernel version."""
    release = machine.text("/proc/sys/kernel/osrelease") or platform.release()
    system = f"Linux {release}, {platform.machine()}"
    match = re.match(r"(\d+)\.(\d+)", release)
    version = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    values = {"release": release, "machine": platform.machine()}
    if version < _IO_URING_SINCE:
        yield Finding(
            "kernel",
            Level.NOTE,
            system,
            "too old for io_uring's reads; direct reads go through preadv on more threads",
            "a kernel from 5.6 on",
            values=values,
        )
    else:
        yield Finding("kernel", Level.OK, system, values=values)


def check_processors(machine: Machine) -> Iterator[Finding]:
    """Cores this process may use, quotas included, and the instructions that matter."""
    present = len(machine.glob("/sys/devices/system/cpu/cpu[0-9]*")) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if machine.is_this else present
    quota = _cpu_quota(machine)
    usable = min(float(allowed), quota or float(allowed))
    values = {"present": present, "allowed": allowed, "quota": quota}
    found = f"{usable:g} of {present} cores"
    if quota is not None and quota < allowed:
        yield Finding(
            "processors",
            Level.NOTE,
            f"{found} (quota of the control group)",
            "more threads than the quota allows are stopped for parts of each period, controllers too",
            "raise the quota, or set threads to it",
            values=values,
        )
    elif usable < 2:
        yield Finding(
            "processors",
            Level.NOTE,
            found,
            "clients and the software controller take turns on one core",
            "two cores or more, one of them for the controller",
            values=values,
        )
    else:
        yield Finding("processors", Level.OK, found, values=values)
    yield _instructions(machine)


def check_memory(machine: Machine) -> Iterator[Finding]:
    """Memory, the control group's limit, huge pages."""
    meminfo = machine.fields("/proc/meminfo")
    total, available = _kib(meminfo.get("MemTotal")), _kib(meminfo.get("MemAvailable"))
    if total is None:
        yield Finding("memory", Level.NOTE, "unknown", "/proc/meminfo cannot be read", "mount /proc")
        return
    limit = memory_limit(machine.root)
    values = {"total": total, "available": available, "limit": limit}
    found = gib(total) + (f", {gib(available)} available" if available is not None else "")
    if limit is not None and limit < total:
        yield Finding(
            "memory",
            Level.NOTE,
            f"{found}; the control group allows {gib(limit)}",
            "BamQuery's memory_limit is half of the machine's memory unless it is set",
            f"SET memory_limit = '{limit // 2 >> 20}MiB', or less",
            values=values,
        )
    else:
        yield Finding("memory", Level.OK, found, values=values)
    yield _huge_pages(machine, meminfo)


def check_memlock(machine: Machine) -> Iterator[Finding]:
    """How much memory may be locked: registered buffers and DMA mappings count."""
    if not machine.is_this:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY
    found = "unlimited" if unlimited else gib(soft)
    values = {
        "soft": None if unlimited else soft,
        "hard": None if hard == resource.RLIM_INFINITY else hard,
    }
    if unlimited or soft >= 64 << 20:
        yield Finding("locked memory", Level.OK, found, values=values)
    else:
        yield Finding(
            "locked memory",
            Level.NOTE,
            found,
            "what io_uring registers and VFIO maps must fit; CUDA's pinned memory need not",
            "ulimit -l unlimited (memlock in /etc/security/limits.conf, LimitMEMLOCK= of a service)",
            values=values,
        )


def _cpu_quota(machine: Machine) -> float | None:
    quotas = []
    for folder in control_group_folders("cpu", machine.root):
        words = (machine.text(folder / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            quotas.append(int(words[0]) / int(words[1]))
        quota, period = (
            machine.number(folder / "cpu.cfs_quota_us"),
            machine.number(folder / "cpu.cfs_period_us"),
        )
        if quota is not None and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _instructions(machine: Machine) -> Finding:
    cpuinfo = machine.fields("/proc/cpuinfo")
    flags = set((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split())
    name = cpuinfo.get("model name") or platform.machine()
    known = {"CRC-32C": {"sse4_2", "crc32"}, "AVX2": {"avx2"}, "AVX-512": {"avx512f"}}
    present = [label for label, any_of in known.items() if flags & any_of]
    values = {"model": name, "instructions": present}
    found = f"{name}: {', '.join(present) or 'none of ' + ', '.join(known)}"
    if "CRC-32C" in present:
        return Finding("instructions", Level.OK, found, values=values)
    return Finding(
        "instructions",
        Level.NOTE,
        found,
        "checksums are computed by table, about twenty times slower",
        "a processor with SSE 4.2; in a virtual machine, let it see the host's (-cpu host)",
        values=values,
    )


def _huge_pages(machine: Machine, meminfo: dict[str, str]) -> Finding:
    reserved = int(meminfo.get("HugePages_Total", "0").split()[0])
    size = _kib(meminfo.get("Hugepagesize"))
    enabled = machine.text("/sys/kernel/mm/transparent_hugepage/enabled") or ""
    match = re.search(r"\[(\w+)\]", enabled)
    mode = match.group(1) if match else "absent"
    values = {"reserved": reserved, "page_bytes": size, "transparent": mode}
    found = f"transparent: {mode}; reserved: {reserved}"
    if mode in ("always", "madvise") or reserved:
        return Finding("huge pages", Level.OK, found, values=values)
    return Finding(
        "huge pages",
        Level.NOTE,
        found,
        "large buffers cost more page faults and TLB misses",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        values=values,
    )


def _kib(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d+) kB", text or "")
    return int(match.group(1)) << 10 if match else None
