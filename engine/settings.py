"""What a user can set for a connection or with SET: names, kinds, defaults and their checks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal, TypedDict

from bamquery.driver.control_groups import usable_memory
from bamquery.errors import SettingError
from bamquery.statement_context.limits import StatementLimits
from bamquery.storage.database.file_access import FileAccess
from bamquery.storage.format.layout import DEFAULT_ENCODING, ENCODINGS, Encoding
from bamquery.text.identifiers import fold_case, suggestion

_UNITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "": 1,
        "b": 1,
        "kb": 10**3,
        "mb": 10**6,
        "gb": 10**9,
        "tb": 10**12,
        "kib": 2**10,
        "mib": 2**20,
        "gib": 2**30,
        "tib": 2**40,
    }
)


def _default_memory_limit() -> int:
    """Half of the memory there is: the other half is for frames in flight and for everybody else."""
    return usable_memory() // 2


def available_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0))


class SettingValues(TypedDict, total=False):
    """What users write for the settings, for type checkers; None is the default."""

    device: str | None
    threads: int | None
    memory_limit: int | str | None
    gpu_memory_limit: int | str | None
    gpu_cache_limit: int | str | None
    reader: Literal["auto", "mapped", "queues", "direct"] | None
    block_size: int | str | None
    io_cores: int | None
    zone_maps: bool | None
    dynamic_filters: bool | None
    programs: bool | None
    plan_cache: bool | None
    strategy: Literal["auto", "stream", "vectors", "blocks"] | None
    verify_checksums: bool | Literal["all"] | None
    allow_cpu: bool | None
    default_encoding: Literal["auto", "plain"] | None
    progress: bool | None
    profile_vectors: bool | None
    enable_external_access: bool | None
    allowed_directories: str | Sequence[str] | None
    allowed_paths: str | Sequence[str] | None
    lock_configuration: bool | None
    statement_timeout: float | str | None
    max_expression_depth: int | None
    max_expression_parts: int | None
    max_grouping_sets: int | None


@dataclass(frozen=True, slots=True)
class Settings:
    """One connection's settings; `with_value` checks what users write."""

    device: str = "auto"
    """`auto`, `cpu` or `cuda:<n>`: where plans run."""
    threads: int | None = None
    """Worker threads of a query; None: as many as there are cores."""
    memory_limit: int | None = None
    """Bytes that operators may hold (hash tables, sorts); None: half of the memory there is."""
    gpu_memory_limit: int | None = None
    """Bytes of GPU memory that columns and what they are made of may take; None: what the GPU has."""
    gpu_cache_limit: int | None = None
    """Bytes of GPU memory in which columns stay that are often asked for; 0: none, None: a third of it."""
    reader: str = "auto"
    """`mapped`: files through the page cache; `direct`: past it (O_DIRECT); `auto`: mapped."""
    block_size: int = 512
    """Bytes of the unit in which mapped reads are counted and fetched: a drive's logical block."""
    io_cores: int | None = None
    """Cores that may carry a GPU's reads, 0.25 for each GB/s; None: three quarters of them, at most 12."""
    zone_maps: bool = True
    """Whether vectors that cannot match are skipped."""
    dynamic_filters: bool = True
    """Whether scans read less by what operators above them learn while they run."""
    programs: bool = True
    """Whether expressions and aggregates are computed by programs, as far as these go."""
    plan_cache: bool = True
    """Whether queries that were planned before, with these constants or others, are not planned again."""
    strategy: str = "auto"
    """How columns are read: `stream`, `vectors`, `blocks`, or `auto` by cost."""
    verify_checksums: bool | str = True
    """Whether vectors that are read whole are compared with their CRC-32C; `all`: no others are read."""
    allow_cpu: bool = False
    """Whether queries that a GPU refuses run on the CPU instead."""
    profile_vectors: bool = False
    """Whether profiles record what was done with each vector of each column: a byte each."""
    enable_external_access: bool = True
    """Whether statements may name files, and variables of Python; once off it stays off."""
    allowed_directories: tuple[str, ...] = ()
    """Real paths of folders whose files may be named even so."""
    allowed_paths: tuple[str, ...] = ()
    """Real paths of files that may be named even so."""
    lock_configuration: bool = False
    """Whether no setting can be changed any more."""
    statement_timeout: float | None = None
    """Seconds after which a running statement is cancelled; None: never."""
    max_expression_depth: int = 1000
    """Levels of expressions, and of queries, within each other."""
    max_expression_parts: int = 10_000
    """Columns, constants and calls of an expression, once aliases are what they stand for."""
    max_grouping_sets: int = 4096
    """Grouping sets that ROLLUP, CUBE and GROUPING SETS of a query may come to."""
    default_encoding: Encoding = DEFAULT_ENCODING
    """How tables are stored that are made from now on and say nothing of it."""
    progress: bool | None = None
    """Whether long statements show a progress bar; None: on a terminal and in notebooks."""

    def with_value(self, name: str, value: object) -> Settings:
        """These settings with one changed; None restores the default.

        Raises:
            SettingError: there is no such setting, or it cannot take the value.
        """
        folded = fold_case(name)
        if folded not in _PARSERS:
            raise SettingError(
                f'there is no setting "{name}".{suggestion(name, _PARSERS)} Settings: {", ".join(_PARSERS)}'
            )
        if value is None:
            return replace(self, **{folded: _DEFAULTS[folded]})
        try:
            return replace(self, **{folded: _PARSERS[folded](value)})
        except ValueError as error:
            raise SettingError(f"{folded} cannot be {value!r}: {error}") from None

    def with_values(self, values: Mapping[str, object]) -> Settings:
        """These settings with several changed.

        Raises:
            SettingError: as `with_value`.
        """
        settings = self
        for name, value in values.items():
            settings = settings.with_value(name, value)
        return settings

    def with_change(self, name: str, value: object) -> Settings:
        """As `with_value`, on a connection in use: what was closed to statements stays closed.

        Raises:
            SettingError: as `with_value`, or the setting cannot be changed any more.
        """
        settings, folded = self.with_value(name, value), fold_case(name)
        if self.lock_configuration:
            raise SettingError(
                f"{folded} cannot be changed: lock_configuration is on. A new connection has its own settings"
            )
        stays = folded == "enable_external_access" and settings == self
        if not self.enable_external_access and folded in _FILE_SETTINGS and not stays:
            raise SettingError(
                f"{folded} cannot be changed: enable_external_access is off, and stays off. "
                "A new connection has its own settings"
            )
        return settings

    @property
    def file_access(self) -> FileAccess:
        """Which files statements may name."""
        return FileAccess(self.enable_external_access, self.allowed_directories, self.allowed_paths)

    @property
    def statement_limits(self) -> StatementLimits:
        """How large a statement may be."""
        return StatementLimits(self.max_expression_depth, self.max_expression_parts, self.max_grouping_sets)

    @property
    def verifies(self) -> bool:
        """Whether checksums of what is read whole are compared."""
        return self.verify_checksums is not False

    @property
    def verifies_all(self) -> bool:
        """Whether nothing is read that cannot be compared."""
        return self.verify_checksums == "all"

    @property
    def effective_threads(self) -> int:
        """Worker threads, the default filled in."""
        return self.threads if self.threads is not None else available_cores()

    @property
    def effective_memory_limit(self) -> int:
        """Bytes, the default filled in."""
        return self.memory_limit if self.memory_limit is not None else _default_memory_limit()


def parse_bytes(value: object) -> int:
    """A number of bytes, or text such as `2GiB`, `500 MB`.

    Raises:
        ValueError: it is neither, or not positive.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(value))
        unit = _UNITS.get(match.group(2).lower()) if match else None
        if match is None or unit is None:
            raise ValueError("it takes bytes, or text such as '2GiB' or '500MB'")
        size = int(float(match.group(1)) * unit)
    if size <= 0:
        raise ValueError("it must be more than 0 bytes")
    return size


def _parse_bytes_or_none(value: object) -> int:
    """As `parse_bytes`, and 0."""
    return 0 if str(value).strip() == "0" else parse_bytes(value)


def _parse_threads(value: object) -> int:
    return _parse_count(value, 1, 1024)


def _parse_io_cores(value: object) -> int:
    return _parse_count(value, 1, 256)


def _parse_block_size(value: object) -> int:
    size = parse_bytes(value)
    if size & (size - 1) or not 512 <= size <= 65536:
        raise ValueError("it takes a power of two from 512 to 65536")
    return size


def _parse_count(value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,18}", str(value)):
        raise ValueError(f"it takes a whole number from {low} to {high}")
    count = int(str(value))
    if not low <= count <= high:
        raise ValueError(f"it takes a whole number from {low} to {high}")
    return count


def _parse_boolean(value: object) -> bool:
    text = str(value).lower()
    if text in ("true", "on", "yes", "1"):
        return True
    if text in ("false", "off", "no", "0"):
        return False
    raise ValueError("it takes true or false")


def _parse_paths(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(one, (str, os.PathLike)) for one in items):
        raise ValueError("it takes a path, or a list of paths")
    return tuple(dict.fromkeys(_real_path(os.fspath(item)) for item in items))


def _real_path(text: str) -> str:
    from bamquery.storage.ingest.sources.paths import is_url  # noqa: PLC0415 (few connections name one)

    if not text or "\0" in text or is_url(text):
        raise ValueError(f"{text!r} is not a path of this machine")
    return os.path.realpath(os.path.expanduser(text))


def _parse_directories(value: object) -> tuple[str, ...]:
    paths = _parse_paths(value)
    for path in paths:
        if not os.path.isdir(path):
            raise ValueError(f"there is no folder {path}")
    return paths


def _parse_seconds(value: object) -> float | None:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1
    if isinstance(value, bool) or not 0 <= seconds < 10**9:
        raise ValueError("it takes seconds, or 0 for no limit")
    return seconds or None


def _parse_verification(value: object) -> bool | str:
    if str(value).lower() == "all":
        return "all"
    try:
        return _parse_boolean(value)
    except ValueError:
        raise ValueError("it takes true, false or all") from None


def _parse_device(value: object) -> str:
    text = str(value).lower()
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", text):
        raise ValueError("it takes auto, cpu, or cuda:<number>")
    return "cuda:0" if text == "cuda" else text


def _one_of(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        text = str(value).lower()
        if text not in choices:
            raise ValueError(f"it takes one of {', '.join(choices)}")
        return text

    return parse


def _whole_number(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdecimal():
            raise ValueError("it takes a whole number")
        if not least <= int(value) <= most:
            raise ValueError(f"it takes {least:,} to {most:,}")
        return int(value)

    return parse


_FILE_SETTINGS: Final = frozenset({"enable_external_access", "allowed_directories", "allowed_paths"})
_PARSERS: Final[Mapping[str, Callable[[object], Any]]] = MappingProxyType(
    {
        "device": _parse_device,
        "threads": _parse_threads,
        "memory_limit": parse_bytes,
        "gpu_memory_limit": parse_bytes,
        "gpu_cache_limit": _parse_bytes_or_none,
        "reader": _one_of("auto", "mapped", "queues", "direct"),
        "block_size": _parse_block_size,
        "io_cores": _parse_io_cores,
        "zone_maps": _parse_boolean,
        "dynamic_filters": _parse_boolean,
        "programs": _parse_boolean,
        "plan_cache": _parse_boolean,
        "allow_cpu": _parse_boolean,
        "strategy": _one_of("auto", "stream", "vectors", "blocks"),
        "verify_checksums": _parse_verification,
        "profile_vectors": _parse_boolean,
        "enable_external_access": _parse_boolean,
        "allowed_directories": _parse_directories,
        "allowed_paths": _parse_paths,
        "lock_configuration": _parse_boolean,
        "statement_timeout": _parse_seconds,
        "max_expression_depth": _whole_number(1, 5000),
        "max_expression_parts": _whole_number(1, 10**9),
        "max_grouping_sets": _whole_number(1, 65_535),
        "default_encoding": _one_of(*ENCODINGS),
        "progress": _parse_boolean,
    }
)
_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {field.name: field.default for field in fields(Settings)}
)
