"""Options that say where a benchmark's blocks lie: memory, a file, drives."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from bamquery.driver.bench.workload import Access, Backing, NamespacePlace
from bamquery.errors import SettingError

NVME: Final = "nvme:"
RISK: Final = "--writable --lose-data, which overwrites what they hold"


def add_backing(parser: argparse.ArgumentParser) -> None:
    """The options."""
    add = parser.add_argument
    add(
        "--backing",
        metavar="memory|FILE|nvme:ADDRESS/NSID",
        action="append",
        help="where the blocks are (memory); several times for several files, or for drives, which "
        "bamquery nvme bind hands over",
    )
    add("--beside", metavar="FILE", type=Path, help="what other paths read where the backing is a drive")
    add("--writable", action="store_true", help="drives may be written to, with --lose-data only")
    add("--lose-data", action="store_true", help="what drives hold is lost, from their first block on")
    add("--direct", action="store_true", help="read and write the file past the page cache (O_DIRECT)")
    add("--overwrite", action="store_true", help="the file may hold something else: it is lost")
    add("--keep", action="store_true", help="leave the file that was made, for the next run")


def backing_of(options: argparse.Namespace) -> Backing:
    """Where the blocks lie.

    Raises:
        SettingError: the options do not go together.
    """
    backings: list[str] = options.backing or ["memory"]
    if any(backing.startswith(NVME) for backing in backings):
        return _drives(options, ",".join(backings))
    if options.beside is not None or options.writable or options.lose_data:
        raise SettingError("--beside, --writable and --lose-data are for drives: --backing nvme:ADDRESS/NSID")
    if "memory" in backings:
        if len(backings) > 1:
            raise SettingError("--backing memory: memory of several controllers is --controllers N")
        if options.direct or options.overwrite or options.keep:
            raise SettingError("--direct, --overwrite and --keep are for files: name one with --backing FILE")
        return Backing()
    access = Access.DIRECT if options.direct else Access.MAPPED
    first, *further = map(Path, backings)
    if len({first, *further}) != len(backings):
        raise SettingError("--backing: a file is there twice")
    return Backing(
        first, access=access, overwrite=options.overwrite, keep=options.keep, further=tuple(further)
    )


def _drives(options: argparse.Namespace, backings: str) -> Backing:
    places = []
    for text in backings.split(","):
        address, slash, nsid = text.removeprefix(NVME).rpartition("/")
        if not text.startswith(NVME) or not slash or not address or not nsid.isdecimal() or int(nsid) < 1:
            raise SettingError(
                f"--backing {text}: a namespace of a drive is nvme:ADDRESS/NSID, such as nvme:0000:5e:00.0/1"
            )
        places.append(NamespacePlace(address, int(nsid)))
    if len(set(places)) != len(places):
        raise SettingError(f"--backing {backings}: a namespace is there twice")
    if options.writable != options.lose_data:
        raise SettingError(f"drives are written to with {RISK} only, both of them")
    if options.beside is None and (options.direct or options.overwrite or options.keep):
        raise SettingError("--direct, --overwrite and --keep are for files: name one with --beside FILE")
    access = Access.DIRECT if options.direct else Access.MAPPED
    return Backing(
        options.beside,
        access=access,
        overwrite=options.overwrite,
        keep=options.keep,
        drives=tuple(places),
        writable=options.writable,
    )
