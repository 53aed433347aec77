"""The host's files in a guest: shared by virtiofs, so that Python and the package run there as they are here.

The guest sees them below `/host`, and what it writes stays in its memory (guest/on_host.sh).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from tests.guests.packages import CACHE, GuestsUnavailableError, installed

TAG: Final = "host"
_DAEMONS: Final = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
_PACKAGES: Final = ("qemu-system-common", "virtiofsd")  # the newer a Debian is, the later in this list
_START_S: Final = 10
# A view of its own of all files, in which nothing can be written; then the daemon, with that as its root.
_READ_ONLY: Final = 'mount --rbind / "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


@contextmanager
def shared(memory_mb: int, log: IO[str]) -> Iterator[list[str]]:
    """While this lasts a guest can have them: QEMU's arguments for that. The guest's memory is shared, too.

    Raises:
        GuestsUnavailableError: the daemon is not there, or does not start.
    """
    daemon = installed(_DAEMONS, _PACKAGES)
    view = CACHE / "host"
    view.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:  # names of sockets are short
        socket = Path(folder) / "socket"
        options = f"source={view},sandbox=chroot,cache=always,log_level=warn"
        command = [daemon, f"--socket-path={socket}", "-o", options]
        if shutil.which("unshare") is None:
            raise GuestsUnavailableError(
                "no unshare here (package util-linux) to share files so that none is written"
            )
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _READ_ONLY, "sh", view, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            _await(socket, process)
            yield [
                *("-object", f"memory-backend-memfd,id=memory,size={memory_mb}M,share=on"),
                *("-machine", "memory-backend=memory"),
                *("-chardev", f"socket,id=host,path={socket}"),
                *("-device", f"vhost-user-fs-pci,chardev=host,tag={TAG}"),
            ]
        finally:
            process.kill()
            process.wait()


def _await(socket: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_S
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise GuestsUnavailableError(
                "virtiofsd does not start: it wants root, and a view of all files; its words are in qemu.log"
            )
        time.sleep(0.02)
