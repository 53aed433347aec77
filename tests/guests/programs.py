"""Programs for guests: C++ of this repository, linked so that they need no file of the host."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.compiled_programs import compile_program
from tests.guests.packages import CACHE, REPOSITORY, GuestsUnavailableError, locked

FOLDER: Final = Path(__file__).parent / "guest"
FLAGS: Final = ("-std=c++20", "-O2", "-g1", "-pthread", "-static")
WARNINGS: Final = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
CARRIED: Final = "carried"
"""The folder of the cache with programs that came from another machine (carry.py), and
of which sources they were made."""
SOURCES: Final = "sources"


@dataclass(frozen=True)
class Program:
    """A C++ program of these sources.

    Headers are found as everywhere, by their path from the repository's root or from `bamquery`, and those
    of `tests/guests/guest` by their name.
    """

    sources: tuple[Path, ...]
    flags: tuple[str, ...] = ()

    def compiled(self) -> Path:
        """What another machine or an earlier run made of the same text, or made now.

        Raises:
            GuestsUnavailableError: there is no compiler.
            subprocess.CalledProcessError: it does not compile.
        """
        carried = CACHE / CARRIED / self.name
        if carried.exists() and carried.with_name(SOURCES).read_text() == digest_of_sources():
            return carried
        compiler = os.environ.get("CXX") or "g++"
        if shutil.which(compiler) is None:
            raise GuestsUnavailableError(f"no {compiler} to compile the guests' programs with")
        folder = CACHE / "programs"
        with locked("programs"):
            folder.mkdir(exist_ok=True)
            return compile_program(
                compiler, [*FLAGS, *WARNINGS, *self.flags, *_INCLUDES], self.sources, folder / self.name
            )

    @property
    def name(self) -> str:
        """Of the first source."""
        return self.sources[0].stem


_INCLUDES: Final = [f"-iquote{folder}" for folder in (REPOSITORY, REPOSITORY / "bamquery", FOLDER)]


def native(*names: str) -> tuple[Path, ...]:
    """Sources of driver/native: their paths there; a folder stands for all in it but bindings."""
    folder = REPOSITORY / "driver" / "native"
    found: list[Path] = []
    for name in names:
        path = folder / name
        inside: Sequence[Path] = sorted(path.rglob("*.cpp")) if path.is_dir() else [path.with_suffix(".cpp")]
        found += [each for each in inside if "binding" not in each.stem]
    return tuple(found)


@functools.cache
def digest_of_sources() -> str:
    """Of all C++ that programs may be made of: told without a compiler."""
    digest = hashlib.sha256()
    for folder in ("driver/core", "driver/native", "tests/guests/guest", "tests/native/conformance"):
        for path in sorted((REPOSITORY / folder).rglob("*.[ch]pp")):
            digest.update(f"{path.relative_to(REPOSITORY)} {path.stat().st_size}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
