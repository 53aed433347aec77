"""Peers by name: what has to be installed for them, known before anything is made or loaded."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from bamquery.errors import BamQueryError
from bamquery.queries.speed.systems.names import OF_POLARS, PEERS
from bamquery.queries.speed.systems.pdsh import DISTRIBUTIONS, Pdsh, cudf_polars_version
from bamquery.text.identifiers import suggestion

_GPU_LIBRARIES: Final = ("cudf_streaming", "rapidsmpf", "ucxx")
"""What cudf-polars needs for clusters; some versions import them for one GPU, too."""


@dataclass(frozen=True)
class Peers:
    """What can be asked beside BamQuery.

    Attributes:
        names: of PEERS, as they were chosen.
        pdsh: cudf-polars' queries; None where that is not installed, or nobody asks them.
    """

    names: tuple[str, ...]
    pdsh: Pdsh | None = None

    @property
    def have_polars(self) -> bool:
        """Whether one of them has polars' tables."""
        return any(name in OF_POLARS for name in self.names)


def require_peers(names: Sequence[str], threads: int, device: str) -> Peers:
    """Look whether all are there; polars is told how many threads it may have, if nobody imported it before.

    Raises:
        BamQueryError: there is no such peer, or something that it needs is missing; says how to get it.
    """
    for name in names:
        if name not in PEERS:
            raise BamQueryError(
                f'nothing called "{name}" to compare with, only {", ".join(PEERS)}.{suggestion(name, PEERS)}'
            )
    if not names:
        raise BamQueryError(f"--against takes one or more of {', '.join(PEERS)}")
    if "duckdb" in names:
        _require_library("duckdb", "DuckDB", 'pip install "bamquery[bench]"')
    if "chdb" in names:
        _require_library("chdb", "ClickHouse", 'pip install "bamquery[formats]"')
    if not set(names) & set(OF_POLARS):
        return Peers(tuple(names))
    _require_library("polars", "polars", 'pip install "bamquery[bench]"')
    os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
    pdsh = Pdsh.find()
    if "cudf-polars" in names:
        _require_cudf_polars(pdsh, device)
    return Peers(tuple(names), pdsh)


def _require_library(library: str, label: str, how: str) -> None:
    if importlib.util.find_spec(library) is None:
        raise BamQueryError(f"comparing with {label} needs {library}, which is not installed: {how}")


def _require_cudf_polars(pdsh: Pdsh | None, device: str) -> None:
    _require_library("cudf_polars", "cudf-polars", "pip install cudf-polars-cu13")
    version = cudf_polars_version()
    if pdsh is None:
        raise BamQueryError(f"cudf-polars {version} comes without its pdsh queries: another version has them")
    if not device.startswith("cuda:"):
        raise BamQueryError(f"comparing with cudf-polars needs an NVIDIA GPU, and the device is {device}")
    _require_fitting_polars(version)
    os.environ.setdefault("KVIKIO_COMPAT_MODE", "on")  # as pdsh's module does: files lie in the page cache
    try:
        importlib.import_module("cudf_polars")
    except (ImportError, OSError, RuntimeError) as error:  # libraries of CUDA raise any of them
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        why = (
            " (it is for clusters, but this version imports it for one GPU, too; on machines without UCX "
            "cudf-polars cannot be compared with)"
            if missing in _GPU_LIBRARIES
            else ""
        )
        raise BamQueryError(
            f"cudf-polars {version} is installed, but cannot be imported: {error}{why}. "
            "pip install cudf-polars-cu13 installs all that it needs"
        ) from error


def _require_fitting_polars(version: str) -> None:
    """cudf-polars knows polars' plans by version."""
    import polars  # noqa: PLC0415 (only now it has its number of threads)

    asked = [
        line
        for name in DISTRIBUTIONS
        for line in _requirements(name)
        if line.startswith("polars") and ";" not in line
    ]
    if not asked:
        return
    from packaging.requirements import Requirement  # noqa: PLC0415 (cudf-polars needs it)

    if polars.__version__ not in Requirement(asked[0]).specifier:
        raise BamQueryError(
            f"cudf-polars {version} asks for {asked[0]}, and polars {polars.__version__} is installed: "
            f'pip install "{asked[0]}"'
        )


def _requirements(distribution: str) -> list[str]:
    with suppress(metadata.PackageNotFoundError):
        return metadata.requires(distribution) or []
    return []
