"""C++ programs of tests, kept between runs: the same text and flags give the same program."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

_KEPT: Final = Path(__file__).parents[1] / "build" / "tests"
_UNUSED_S: Final = 14 * 86_400


def compile_program(
    compiler: str,
    flags: Sequence[str],
    sources: Sequence[Path],
    program: Path,
    *,
    precompiled: Path | None = None,
) -> Path:
    """`program`, made of `sources`, or copied from what an earlier run made of the same.

    Processes that want the same program at a time compile it once: the others wait. Programs of several
    sources share what is made of each, where the flags are the same. `precompiled` is what `precompile`
    answered for a header that each of the sources includes first.

    Raises `subprocess.CalledProcessError` where they do not compile.
    """
    searched = [] if precompiled is None else [f"-iquote{precompiled}"]
    command = [compiler, *searched, *flags]

    def made(name: str, *inputs: str | Path) -> Path:
        return _keep(name, lambda part: subprocess.run([*command, *inputs, "-o", part], check=True))

    digests = [_digest(compiler, flags, source, precompiled) for source in sources]
    if len(sources) == 1:
        kept = made(digests[0], *sources)
    else:
        objects = [made(f"{digest}.o", "-c", source) for digest, source in zip(digests, sources, strict=True)]
        kept = made(hashlib.sha256("".join(digests).encode()).hexdigest(), *objects)
    shutil.copy2(kept, program)
    return program


def precompile(compiler: str, flags: Sequence[str], root: Path, header: Path, folder: Path) -> Path:
    """`folder`, where compilers find `header`, a path in `root`, as they have it once they have read it.

    What they have then is of use to those with the same flags; macros beyond them must not be any that it
    asks for. Others read the header itself.
    """
    kept = _keep(
        _digest(compiler, flags, root / header),
        lambda part: subprocess.run(
            [compiler, *flags, "-w", "-x", "c++-header", "-c", root / header, "-o", part], check=True
        ),
    )
    found = folder / f"{header}.gch"
    found.parent.mkdir(parents=True, exist_ok=True)
    found.symlink_to(kept)
    return folder


def _keep(name: str, make: Callable[[Path], object]) -> Path:
    """What `make` puts where it is told to, made by one process and kept for all."""
    kept = _KEPT / name
    _forget_unused()
    with (_KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists():
            kept.touch()
        else:
            part = kept.with_name(f"{os.getpid()}.{name}")
            make(part)
            part.replace(kept)
    return kept


def _digest(compiler: str, flags: Sequence[str], source: Path, precompiled: Path | None = None) -> str:
    """Of a source after the preprocessor, headers included, of the flags, and of which compiler it is.

    Of a precompiled header it has what that is kept as, which is a digest of its text, not the text again.
    """
    searched = [] if precompiled is None else [f"-iquote{precompiled}", "-fpch-preprocess"]
    command = [compiler, *searched, *flags, "-w", "-E", "-P", source]
    text = subprocess.run(command, check=True, capture_output=True).stdout
    for header in [] if precompiled is None else precompiled.rglob("*.gch"):
        text = text.replace(str(header).encode(), header.readlink().name.encode())
    stable = [flag for flag in flags if not flag.startswith("-iquote")]
    return hashlib.sha256("\0".join([_version(compiler), *stable, ""]).encode() + text).hexdigest()


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "-v"], check=True, capture_output=True, text=True).stderr


@functools.cache
def _forget_unused() -> None:
    """Once a process, so that builds of long ago take no space for ever."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    for path in _KEPT.iterdir():
        try:
            if path.stat().st_mtime < time.time() - _UNUSED_S:
                path.unlink()
        except FileNotFoundError:  # by another process
            continue
