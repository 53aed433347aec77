"""Options of `bamquery bench block | cache | array`, and the workloads they ask for."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from bamquery.driver.bench import sizes
from bamquery.driver.bench.backing_options import NVME, RISK, add_backing, backing_of
from bamquery.driver.bench.workload import (
    DRIVES,
    SECTOR_BYTES,
    ArrayWorkload,
    Backing,
    BlockWorkload,
    CacheWorkload,
    PathName,
    Pattern,
    Setup,
)
from bamquery.errors import SettingError

ELEMENTS: Final = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)
_CPU_PATHS: Final = (PathName.RINGS, PathName.IO_URING, PathName.MAPPED)
_DRIVE_PATHS: Final = (PathName.DRIVE, PathName.RINGS, PathName.IO_URING, PathName.MAPPED)
"""Of drives, and of what is beside them."""
_GPU_PATHS: Final = (
    PathName.RINGS,
    PathName.ZERO_COPY,
    PathName.COPY_ENGINE,
    PathName.IO_URING,
    PathName.MAPPED,
)
"""The last two are the host's, beside those of the GPU."""
_MOST_DEPTH: Final = 65536
"""Entries of a queue at most: CAP.MQES has 16 bits."""

Workload = TypeVar("Workload", bound=Setup)


@dataclass(frozen=True)
class Sweep:
    """One option with several values: a run for each."""

    name: str
    field: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]


_SWEEPABLE: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "pairs": ("pairs", sizes.parse_count),
    "depth": ("depth", sizes.parse_count),
    "threads": ("controller_threads", sizes.parse_count),
    "drives": ("drives", sizes.parse_count),
    "controllers": ("controllers", sizes.parse_count),
    "stripe": ("stripe_bytes", sizes.parse_size),
    "block-size": ("block_bytes", sizes.parse_size),
    "page-size": ("page_bytes", sizes.parse_size),
    "cache-size": ("cache_bytes", sizes.parse_size),
    "extent": ("extent_bytes", sizes.parse_size),
    "theta": ("theta", float),
    "profile": ("profile", str),
}


def parser_of(benchmark: str, description: str) -> argparse.ArgumentParser:
    """The parser of one benchmark."""
    parser = argparse.ArgumentParser(
        prog=f"bamquery bench {benchmark}",
        description=description,
        epilog="sizes: 4k, 64KiB, 1G. exit status: 0 all bytes right, 1 wrong bytes or failed commands, "
        "2 wrong arguments, 130 Ctrl-C (the figures so far are shown)",
        allow_abbrev=False,
    )
    _add_common(parser)
    {"block": _add_block, "cache": _add_cache, "array": _add_array}[benchmark](parser)
    return parser


def workload_of(benchmark: str, options: argparse.Namespace) -> tuple[Setup, Sweep | None]:
    """What the options ask for.

    Raises:
        SettingError: they do not go together.
    """
    device = _device(options)
    common = _common(options, device)
    workload: Setup
    if benchmark == "block":
        paths = options.paths or _default_paths(device, common["backing"], common["controllers"])
        workload = BlockWorkload(
            **common,
            block_bytes=options.block_size,
            write_share=options.mix,
            paths=paths,
        )
    elif benchmark == "cache":
        workload = CacheWorkload(
            **common, page_bytes=options.page_size, cache_bytes=options.cache_size, warm=options.warm
        )
    else:
        workload = ArrayWorkload(
            **common,
            operation=options.operation,
            element=options.element,
            page_bytes=options.page_size,
            cache_bytes=options.cache_size,
        )
    sweep = _sweep(options.sweep, workload) if options.sweep else None
    for one in workloads(workload, sweep):
        check(one)
    return workload, sweep


def workloads(workload: Workload, sweep: Sweep | None) -> list[Workload]:
    """One for each value of the sweep."""
    if sweep is None:
        return [workload]
    return [replace(workload, **{sweep.field: value}) for value in sweep.values]


def check(workload: Setup) -> None:
    """Whether the workload makes sense.

    Raises:
        SettingError: it does not; says which option is wrong.
    """
    gpu = workload.device != "cpu"
    unit = SECTOR_BYTES
    if workload.depth < 2 or workload.depth > _MOST_DEPTH or workload.depth & (workload.depth - 1):
        raise SettingError(f"--depth {workload.depth}: it takes a power of two from 2 to {_MOST_DEPTH}")
    if gpu and workload.controller_threads == 0:
        raise SettingError("--threads 0: a GPU's clients cannot do the controller's work")
    if workload.drives > 1 and workload.profile is None:
        raise SettingError("--drives: it takes a --profile that says what each of them is")
    if workload.profile is not None and workload.profile not in DRIVES:
        raise SettingError(f"--profile {workload.profile}: it takes {', '.join(DRIVES)}")
    match workload:
        case BlockWorkload():
            unit = workload.block_bytes
            _check_power("--block-size", unit, workload.lba_bytes)
            _check_paths(workload)
        case CacheWorkload() | ArrayWorkload():
            unit = workload.page_bytes
            _check_power("--page-size", unit, workload.lba_bytes)
            if workload.cache_bytes < unit:
                raise SettingError("--cache-size: it takes one page at least")
            if workload.members > 1:
                _check_power("--stripe", workload.stripe_bytes, unit)
                unit = workload.stripe_bytes
    files = () if workload.backing.path is None else (workload.backing.path, *workload.backing.further)
    if files and not workload.backing.drives and workload.controllers != len(files):
        raise SettingError(f"--controllers {workload.controllers}: --backing FILE once for each of them")
    if workload.backing.drives and workload.controllers > 1:
        raise SettingError(
            "--controllers: they serve memory and files; drives are --backing nvme:ADDRESS/NSID"
        )
    # What a drive of `bench block` touches is the whole extent, of the others its share.
    shares = workload.controllers if isinstance(workload, BlockWorkload) else workload.members
    if workload.extent_bytes < unit * shares or workload.extent_bytes % (unit * shares):
        raise SettingError(f"--extent {workload.extent_bytes}: it takes a multiple of {unit * shares}")
    if getattr(workload, "theta", 1.0) <= 0:
        raise SettingError("--theta: it takes a number of more than 0")


def _check_power(option: str, size: int, lba: int) -> None:
    if size < lba or size & (size - 1):
        least = "page" if option == "--stripe" else "logical block"
        raise SettingError(f"{option} {size}: it takes a power of two from the {least} ({lba}) on")


def _check_paths(workload: BlockWorkload) -> None:
    backing = workload.backing
    possible = _GPU_PATHS if workload.device != "cpu" else _DRIVE_PATHS if backing.drives else _CPU_PATHS
    for path in workload.paths:
        if path not in possible:
            raise SettingError(f"--paths {path}: {workload.device} has {', '.join(possible)} there")
    if workload.controllers > 1 and workload.paths != (PathName.RINGS,):
        raise SettingError("--paths: of several controllers there are rings only")
    if PathName.IO_URING in workload.paths and backing.path is None:
        option = "--beside FILE" if backing.drives else "--backing FILE"
        raise SettingError(f"--paths io_uring: it reads files, so name one with {option}")
    if workload.write_share > 0 and backing.drives and not backing.writable:
        raise SettingError(f"--mix: nothing is written to {backing} without {RISK}")


def _default_paths(device: str, backing: Backing, controllers: int) -> tuple[PathName, ...]:
    if controllers > 1:
        return (PathName.RINGS,)
    if backing.drives:
        return _DRIVE_PATHS[: 3 if backing.path else 1]
    if device != "cpu":
        return _GPU_PATHS[:3]
    return tuple(path for path in _CPU_PATHS if path is not PathName.IO_URING or backing.path is not None)


def _common(options: argparse.Namespace, device: str) -> dict[str, Any]:
    gpu = device != "cpu"
    cores = len(os.sched_getaffinity(0))
    # A GPU's clients need no cores; one more than twelve threads was never seen to help.
    spare = min(12, cores * 3 // 4) if gpu else min(8, cores // 2)
    threads = options.threads if options.threads is not None else max(1, spare)
    backing = backing_of(options)
    files = 1 + len(backing.further)
    return {
        "device": device,
        "seed": options.seed,
        "seconds": options.duration,
        "pairs": options.pairs or (132 if gpu else max(1, cores - threads)),
        "depth": options.depth or (256 if gpu else 64),
        "controller_threads": threads,
        "backing": backing,
        "extent_bytes": options.extent or (4 << 30 if gpu else 256 << 20),
        "lba_bytes": options.lba,
        "profile": options.profile,
        "drives": options.drives,
        "controllers": options.controllers or files,
        "stripe_bytes": options.stripe,
        "verify": options.verify,
        "deadline_seconds": options.deadline,
        "pattern": options.pattern,
        "theta": options.theta,
    }


def _device(options: argparse.Namespace) -> str:
    text: str = options.device
    if any(backing.startswith(NVME) for backing in options.backing or ()):
        if text not in ("auto", "cpu"):
            raise SettingError(f"--device {text}: drives are read by CPU threads; leave it, or say cpu")
        return "cpu"
    gpu_here = os.path.exists("/proc/driver/nvidia/version") and _has_cuda()
    if text == "auto":
        return "cuda:0" if gpu_here else "cpu"
    if text != "cpu" and not gpu_here:
        raise SettingError(f"--device {text}: no GPU can be used here; `bamquery doctor` says why")
    return text


def _has_cuda() -> bool:
    return importlib.util.find_spec("cuda") is not None


def _sweep(text: str, workload: Setup) -> Sweep:
    name, equals, values = text.partition("=")
    possible = [key for key, (field, _) in _SWEEPABLE.items() if hasattr(workload, field)]
    if not equals or name not in possible:
        raise SettingError(f"--sweep takes NAME=VALUES, where NAME is {', '.join(possible)}")
    field, parse = _SWEEPABLE[name]
    try:
        found = sizes.parse_values(values, parse)
    except ValueError as error:
        raise SettingError(f"--sweep {name}: {error}") from None
    sized = parse is sizes.parse_size
    texts = tuple(sizes.format_size(value) if sized else str(value) for value in found)
    return Sweep(name, field, found, texts)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    count, size = _with_shown_errors(sizes.parse_count), _with_shown_errors(sizes.parse_size)
    add("--device", type=_device_name, default="auto", help="auto, cpu or cuda:0 (auto)")
    add(
        "--duration",
        type=_with_shown_errors(sizes.parse_seconds),
        default=5.0,
        help="of each path: 5s, 500ms (5s)",
    )
    add("--pairs", type=count, help="queue pairs, each with a client: a thread block or a CPU thread")
    add("--depth", type=count, help="entries of each ring; a power of two (64; on GPUs 256)")
    add(
        "--threads",
        type=_with_shown_errors(_parse_threads),
        help="of the software controller (half the cores, 8; with a GPU three quarters, 12)",
    )
    add_backing(parser)
    add("--extent", type=size, help="how much of the backing is touched (256M; on GPUs 4G)")
    add("--lba", type=size, choices=(512, 4096), default=512, help="logical block of the namespaces (512)")
    add("--pattern", type=Pattern, choices=list(Pattern), default=Pattern.RANDOM, help="(random)")
    add("--theta", type=_with_shown_errors(float), default=0.99, help="skew of zipf (0.99)")
    add(
        "--profile",
        choices=tuple(DRIVES),
        help="drive that the controller imitates (none: as fast as it can)",
    )
    add("--drives", type=count, default=1, help="how many such drives each controller imitates (1)")
    add(
        "--controllers",
        type=count,
        help="software controllers, each a drive with its share of the extent (1, or as many as files)",
    )
    add("--stripe", type=size, default=64 << 10, help="of the drives that are one address space (64k)")
    add("--seed", type=_with_shown_errors(_parse_seed), default=1, help="of content and order (1)")
    add("--verify", action=argparse.BooleanOptionalAction, default=True, help="compare every byte (yes)")
    add(
        "--deadline", type=_with_shown_errors(sizes.parse_seconds), default=10.0, help="of each command (10s)"
    )
    add("--sweep", metavar="NAME=VALUES", help="a run for each: pairs=1,2,4 or pairs=1..64 (doublings)")
    add("--json", metavar="FILE", type=Path, help="write all figures")
    add("--plot", metavar="FILE", type=Path, help="write a picture of the sweep (.png, .svg, .pdf)")


def _add_block(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--block-size", type=_with_shown_errors(sizes.parse_size), default=4096, help="(4k)")
    parser.add_argument(
        "--mix",
        type=_with_shown_errors(sizes.parse_write_share),
        default=0.0,
        help="read, write, 70/30 (read)",
    )
    parser.add_argument(
        "--paths",
        type=_with_shown_errors(_parse_paths),
        help=f"of {', '.join(PathName)} (all that the device and the backing have)",
    )


def _add_cache(parser: argparse.ArgumentParser) -> None:
    _add_pages(parser)
    parser.add_argument(
        "--warm", action="store_true", help="touch every page before the clock starts (no: start empty)"
    )


def _add_array(parser: argparse.ArgumentParser) -> None:
    _add_pages(parser)
    parser.add_argument("--operation", choices=("gather", "scan"), default="gather", help="(gather)")
    parser.add_argument("--element", choices=ELEMENTS, default="int64", metavar="TYPE", help="(int64)")


def _add_pages(parser: argparse.ArgumentParser) -> None:
    size = _with_shown_errors(sizes.parse_size)
    parser.add_argument("--page-size", type=size, default=4096, help="(4k)")
    parser.add_argument("--cache-size", type=size, default=64 << 20, help="(64M)")


def _with_shown_errors(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Argparse shows the messages of its own error only."""

    def parse_or_explain(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return parse_or_explain


def _device_name(text: str) -> str:
    name, _, number = text.partition(":")
    if text in ("auto", "cpu") or (name == "cuda" and number.isdecimal()):
        return text
    raise argparse.ArgumentTypeError(f"{text!r}: it takes auto, cpu or cuda:0")


def _parse_threads(text: str) -> int:
    return 0 if text == "0" else sizes.parse_count(text)


def _parse_seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 63:
        raise ValueError("it takes a whole number from 0 on")
    return int(text)


def _parse_paths(text: str) -> tuple[PathName, ...]:
    try:
        return tuple(PathName(name) for name in text.split(","))
    except ValueError:
        raise ValueError(f"it takes names of {', '.join(PathName)}") from None
