"""Who may open a drive that is handed to user space, and how much memory he may lock."""

from __future__ import annotations

import grp
import os
import pwd
import resource
import stat
from collections.abc import Iterator

from bamquery.driver.machine import Machine, gib
from bamquery.driver.nvme.drives import Drive

_ENOUGH_LOCKED = 64 << 20


def vfio_files(machine: Machine, drive: Drive) -> list[str]:
    """Device files by which the drive is opened: its group's, and its own where the kernel has iommufd."""
    own = machine.glob(f"/sys/bus/pci/devices/{drive.address}/vfio-dev/vfio*")
    files = [f"/dev/vfio/{drive.group}", *(f"/dev/vfio/devices/{device.name}" for device in own)]
    return [file for file in files if machine.exists(file)]


def access_lines(machine: Machine, drive: Drive) -> Iterator[str]:
    """For people: owner and mode of the file, how to give it to somebody, and what may be locked."""
    files = vfio_files(machine, drive)
    if not files:
        yield f"there is no /dev/vfio/{drive.group} yet: udev makes it"
    for file in files:
        found = machine.path(file).stat()
        owner, group = _user(found.st_uid), _group(found.st_gid)
        yield f"{file} belongs to {owner}:{group}, {stat.filemode(found.st_mode)[1:]}"
    if files:
        yield f"to drive it without root: chown {_somebody()} {' '.join(files)} (until the next start)"
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY and soft < _ENOUGH_LOCKED:
        yield (
            f"{gib(soft)} may be locked, which queues and buffers must fit: ulimit -l unlimited, "
            "or memlock in /etc/security/limits.conf"
        )


def _somebody() -> str:
    """Who called sudo, if somebody did."""
    return os.environ.get("SUDO_USER") or (_user(os.getuid()) if os.getuid() else "USER")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
