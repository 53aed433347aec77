"""What changes the machine: writes to sysfs, and modules. All of it goes through here, with a deadline."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Final

from bamquery.driver.machine import Machine

DEADLINE: Final = 30.0
"""Seconds for one write: a drive that does not answer makes the kernel wait as long."""
_LOOK_SECONDS: Final = 0.005
_WRITE: Final = """\
import os, sys
try:
    file = os.open(sys.argv[1], os.O_WRONLY)
    os.write(file, sys.argv[2].encode())
except OSError as error:
    sys.exit(error.errno)
"""
_NO_PROGRAM: Final = 127


@dataclass(frozen=True)
class Sysfs:
    """Writes below a machine's root; tests have one that fails and hangs."""

    machine: Machine = field(default_factory=Machine)

    def write(self, name: str, text: str, deadline: float = DEADLINE) -> None:
        """Write to a file of sysfs, in a process of its own, since the kernel may never come back.

        Raises:
            OSError: the kernel refused.
            TimeoutError: it has not come back.
        """
        path = str(self.machine.path(name))
        code = _run([sys.executable, "-I", "-S", "-c", _WRITE, path, text], deadline)
        if code:
            raise OSError(code, os.strerror(code), path)

    def load_module(self, name: str, deadline: float = DEADLINE) -> None:
        """Load a module of the kernel.

        Raises:
            OSError: there is no modprobe, or it failed.
            TimeoutError: it has not ended.
        """
        code = _run(["modprobe", name], deadline)
        if code:
            raise OSError(code, "there is no modprobe" if code == _NO_PROGRAM else "modprobe failed", name)


def _run(command: list[str], deadline: float) -> int:
    """The program's exit status; one that does not end is left behind, killed as far as it can be."""
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        # A group of its own: Ctrl-C must not end it halfway.
        process = os.posix_spawnp(command[0], command, os.environ, file_actions=quiet, setpgroup=0)
    except FileNotFoundError:
        return _NO_PROGRAM
    until = time.monotonic() + deadline
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            # Within the kernel it hears no signal; where it does, the next look takes it away.
            os.kill(process, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)
            os.waitpid(process, os.WNOHANG)
            raise TimeoutError(f"no answer within {deadline:g} s")
        time.sleep(_LOOK_SECONDS)
