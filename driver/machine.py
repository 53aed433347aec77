"""The machine that is looked at: what it says of itself below /proc, /sys and /dev."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """Reads `/proc`, `/sys` and `/dev` below a root, so that tests can make machines up.

    Whatever cannot be read is None or empty: many files are absent in containers.
    """

    root: Path = Path("/")
    folder: Path = Path()
    """The file or folder whose file system is looked at."""

    @property
    def is_this(self) -> bool:
        """Whether it is the machine the process runs on: only then are system calls tried."""
        return self.root == Path("/")

    def path(self, name: str) -> Path:
        """Where `/name` is."""
        return self.root / name.lstrip("/")

    def exists(self, name: str) -> bool:
        """Whether it is there, and may be seen."""
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def text(self, name: str | Path) -> str | None:
        """A small file's text without white space around it."""
        path = self.path(name) if isinstance(name, str) else name
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def number(self, name: str | Path) -> int | None:
        """A small file's whole number, in any of C's notations."""
        try:
            return int(self.text(name) or "", 0)
        except ValueError:
            return None

    def glob(self, pattern: str) -> list[Path]:
        """Paths that match, in order."""
        return sorted(self.root.glob(pattern.lstrip("/")))

    def link(self, path: Path) -> str | None:
        """The last name of what a link of sysfs points at: a driver, a group, a device."""
        try:
            return path.resolve(strict=True).name
        except OSError:
            return None

    def target(self, path: Path) -> str | None:
        """What a link says, such as those of /proc/*/fd: a file of this machine, from the root on."""
        try:
            said = str(path.readlink())
        except OSError:
            return None
        root = str(self.root)
        return said if self.is_this or not said.startswith(root) else said[len(root) :]

    def fields(self, name: str) -> dict[str, str]:
        """`key : value` lines, as of /proc/meminfo; the first of equal keys wins."""
        found: dict[str, str] = {}
        for line in (self.text(name) or "").splitlines():
            key, colon, value = line.partition(":")
            if colon:
                found.setdefault(key.strip(), value.strip())
        return found


def gib(size: int) -> str:
    """Bytes as people say them."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
