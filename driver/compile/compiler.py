"""Kernels from CUDA C++ to machine code, at first use, by NVRTC: no toolkit and no GPU needed."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from bamquery.driver.compile.kernel_cache import KernelCache
from bamquery.driver.compile.toolchain import (
    KERNELS,
    PACKAGE,
    cccl_version,
    cuda_module,
    include_folders,
    nvrtc_version,
)
from bamquery.errors import KernelError

_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_INCLUDE_LINE: Final = re.compile(_INCLUDE.pattern.decode(), re.MULTILINE)
_COMPLAINT: Final = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.*)$", re.M
)
_LOG_SIZE_BYTES: Final = 4
_GENERATED: Final = "generated.cu"


@dataclass(frozen=True)
class CompileOptions:
    """How to compile.

    Attributes:
        architecture: such as sm_90.
        target: `cubin` to load; `ltoir` to link with other code, such as numba's.
        defines: macros, as NAME or NAME=VALUE.
        line_info: note source lines, for profilers and compute-sanitizer.
    """

    architecture: str
    target: Literal["cubin", "ltoir"] = "cubin"
    defines: tuple[str, ...] = ()
    line_info: bool = False


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code, and what the compiler had to say (warnings) when it was made."""

    code: bytes
    log: str
    cached: bool


@dataclass(frozen=True)
class KernelText:
    """A kernel that is in no file.

    Attributes:
        name: as errors and profilers call it; no part of what it is.
        text: its source; what it includes by quotes is named from the package on.
    """

    name: str
    text: str


def compile_kernel(
    source: str | Path | KernelText, options: CompileOptions, cache: KernelCache | None = None
) -> CompiledKernel:
    """Compile a file, or take what an earlier call made of the same text, headers, options and compiler.

    Args:
        source: a path, the name of a file in driver/kernels without its suffix, or a text.
        options: for which GPU, and how.
        cache: where compiled kernels are kept; that of the user if None.

    Raises:
        KernelError: it does not compile; has the compiler's log.
        GpuError: the compiler or the headers it needs are not installed.
    """
    given = _source_or_text(source)
    cache = cache or _user_cache()
    key = _key(given, options)
    with _LOCKS.for_key(key):  # One thread compiles; others that want the same find it.
        stored = cache.load(key)
        if stored is not None:
            return _unpack(stored)
        compiled = _compile(given, options)
        log = compiled.log.encode()
        cache.store(key, len(log).to_bytes(_LOG_SIZE_BYTES, "little") + log + compiled.code)
    return compiled


def stored_kernel(
    source: str | Path | KernelText, options: CompileOptions, cache: KernelCache | None = None
) -> CompiledKernel | None:
    """What an earlier call of `compile_kernel` with the same arguments has kept: a look takes a millisecond.

    Raises:
        KernelError: a file cannot be read.
        GpuError: the compiler or the headers it needs are not installed.
    """
    stored = (cache or _user_cache()).load(_key(_source_or_text(source), options))
    return None if stored is None else _unpack(stored)


def included_files(source: Path, folders: Sequence[Path] = (PACKAGE,)) -> list[Path]:
    """`source` and all that it includes by quotes, once each: next to the includer, or in `folders`.

    Conditions are not looked at: a file more in a key costs a compilation, one less a wrong kernel.
    """
    return list(dict.fromkeys(_walk(source, folders, set())))


def expand_includes(source: Path, folders: Sequence[Path] = (PACKAGE,)) -> str:
    """The text of `source` with what it includes by quotes in its place, each file once."""
    seen: set[Path] = set()

    def expand(path: Path) -> str:
        seen.add(path.resolve())
        text = path.read_text().replace("#pragma once\n", "")
        return _INCLUDE_LINE.sub(lambda match: include(path, match), text)

    def include(path: Path, match: re.Match[str]) -> str:
        found = next((f / match[1] for f in [path.parent, *folders] if (f / match[1]).is_file()), None)
        if found is None:
            return match[0]
        return "" if found.resolve() in seen else expand(found)

    return expand(source)


def _walk(path: Path, folders: Sequence[Path], seen: set[Path]) -> Iterator[Path]:
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    yield path
    yield from _walk_included(path.read_bytes(), [path.parent, *folders], folders, seen)


def _walk_included(
    text: bytes, places: Sequence[Path], folders: Sequence[Path], seen: set[Path]
) -> Iterator[Path]:
    for name in _INCLUDE.findall(text):
        for folder in places:
            candidate = folder / name.decode()
            if candidate.is_file():
                yield from _walk(candidate, folders, seen)
                break


def _source_or_text(source: str | Path | KernelText) -> Path | KernelText:
    return KERNELS / f"{source}.cu" if isinstance(source, str) else source


def _texts(source: Path | KernelText) -> list[tuple[str, bytes]]:
    """Names and texts of the source, and of all that it includes by quotes.

    Raises:
        KernelError: one of them cannot be read.
    """
    try:
        if isinstance(source, Path):
            return [(file.name, file.read_bytes()) for file in included_files(source)]
        text = source.text.encode()
        headers = dict.fromkeys(_walk_included(text, [PACKAGE], (PACKAGE,), set()))
        return [(_GENERATED, text), *((file.name, file.read_bytes()) for file in headers)]
    except OSError as error:
        place = source if isinstance(source, Path) else source.name
        raise KernelError(f"cannot be read: {error.strerror}", error.filename or place) from error


def _key(source_file: Path | KernelText, options: CompileOptions) -> bytes:
    """cuda.core's key, which has the source and all options; of what is included, it has to be told the text.

    Folders and, but for line numbers, the source's own do not count: what they hold does.
    """
    source, *headers = _texts(source_file)
    about = repr((nvrtc_version(), cccl_version(), [(name, len(text)) for name, text in headers]))
    included = hashlib.sha256(about.encode())
    for _, text in headers:
        included.update(text)
    key: bytes = cuda_module("cuda.core.utils").make_program_cache_key(
        code=source[1].decode("latin-1"),  # whatever the bytes
        code_type="c++",
        options=_program_options(options, _named(source_file, options)),
        target_type=options.target,
        extra_digest=included.digest(),
    )
    return key


def _named(source: Path | KernelText, options: CompileOptions) -> str:
    """What the compiler calls it; a text's own name would make another kernel of it."""
    if isinstance(source, KernelText):
        return _GENERATED
    return str(source) if options.line_info else source.name


def _program_options(options: CompileOptions, name: str, folders: Sequence[Path] = ()) -> Any:
    linked_later = options.target == "ltoir"
    return cuda_module("cuda.core").ProgramOptions(
        name=name,
        arch=options.architecture,
        std="c++20",
        include_path=[str(folder) for folder in folders],
        define_macro=list(options.defines) or None,
        lineinfo=options.line_info or None,
        relocatable_device_code=linked_later or None,
        link_time_optimization=linked_later or None,
    )


def _compile(source: Path | KernelText, options: CompileOptions) -> CompiledKernel:
    core = cuda_module("cuda.core")
    log = io.StringIO()
    name, text = (
        (_GENERATED, source.text) if isinstance(source, KernelText) else (str(source), source.read_text())
    )
    try:
        program = _program_options(options, name, include_folders())
        code = core.Program(text, "c++", program).compile(options.target, logs=log).code
    except Exception as error:  # cuda-core's own class for it is private
        place = Path(source.name) if isinstance(source, KernelText) else source
        raise _error(place, options, str(error)) from None  # which says it all, log included
    return CompiledKernel(bytes(code), log.getvalue().strip("\0\n"), cached=False)


def _error(path: Path, options: CompileOptions, log: str) -> KernelError:
    log = log.partition("compilation log:")[2].strip("\0\n") or log
    first = _COMPLAINT.search(log)
    if first is None:
        return KernelError(f"does not compile for {options.architecture}", path, log=log)
    return KernelError(
        f"does not compile for {options.architecture}: {first['text']}",
        first["file"],
        int(first["line"]),
        log,
    )


def _unpack(stored: bytes) -> CompiledKernel:
    start = _LOG_SIZE_BYTES + int.from_bytes(stored[:_LOG_SIZE_BYTES], "little")
    return CompiledKernel(stored[start:], stored[_LOG_SIZE_BYTES:start].decode(), cached=True)


@functools.cache
def _user_cache() -> KernelCache:
    return KernelCache()


class _Locks:
    """A lock for each key that some thread has or waits for: there is one where two threads want the same."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """None is held: in a forked process those who had one are not there."""
        self._guard = threading.Lock()
        self._of_key: weakref.WeakValueDictionary[bytes, _KeyLock] = weakref.WeakValueDictionary()

    def for_key(self, key: bytes) -> _KeyLock:
        """That of a key."""
        with self._guard:
            found = self._of_key.get(key)
            if found is None:
                found = self._of_key[key] = _KeyLock()
            return found


class _KeyLock:
    """A lock that others may know weakly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_LOCKS: Final = _Locks()
os.register_at_fork(after_in_child=_LOCKS.renew)
