"""C++ programs of tests, kept between runs: the same text and flags give the same program."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_KEPT: Final = Path(__file__).parents[1] / "build" / "tests"
_UNUSED_S: Final = 14 * 86_400


def compile_program(compiler: str, flags: Sequence[str], sources: Sequence[Path], program: Path) -> Path:
    """`program`, made of `sources`, or copied from what an earlier run made of the same.

    Raises `subprocess.CalledProcessError` where they do not compile.
    """
    kept = _KEPT / _digest(compiler, flags, sources)
    if kept.exists():
        kept.touch()
    else:
        _forget_unused()
        part = kept.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, *flags, *sources, "-o", part], check=True)
        part.replace(kept)  # another process may have been faster
    shutil.copy2(kept, program)
    return program


def _digest(compiler: str, flags: Sequence[str], sources: Sequence[Path]) -> str:
    """Of the text after the preprocessor, headers included, of the flags, and of which compiler it is."""
    text = subprocess.run([compiler, *flags, "-E", "-P", *sources], check=True, capture_output=True).stdout
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
