"""Which format a file has: by its name, or else by its first bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from bamquery.errors import IngestError
from bamquery.storage.ingest.sources.failures import unreadable
from bamquery.storage.ingest.sources.options import Compression

Format: TypeAlias = Literal["parquet", "csv", "tsv", "json", "arrow"]

_BY_SUFFIX: Final[dict[str, Format]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".tsv.zst": "tsv",
    ".json": "json",
    ".json.gz": "json",
    ".json.zst": "json",
    ".ndjson": "json",
    ".ndjson.gz": "json",
    ".ndjson.zst": "json",
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".jsonl.zst": "json",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_BY_MAGIC: Final[dict[bytes, Format]] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # the marker before each message of an Arrow stream
}
_MAGIC_BYTES: Final = 8
KNOWN: Final = f"known are {', '.join(_BY_SUFFIX)}"
_COMPRESSED: Final[dict[bytes, Literal["gzip", "zstd"]]] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""By the first bytes; no text in UTF-8 begins with them."""


def check_format(text: str) -> Format:
    """`text` as the name of a format.

    Raises:
        IngestError: it is none; names those there are.
    """
    for format_ in get_args(Format):
        if text.lower() == format_:
            return format_  # type: ignore[no-any-return]  # one of Format's own values
    raise IngestError(f'"{text}" is not a format; there are {", ".join(get_args(Format))}')


def has_known_suffix(path: str) -> bool:
    """Whether the end of a path, or glob, says which format the files have."""
    return path.lower().endswith(tuple(_BY_SUFFIX))


def detect_format(path: Path) -> Format:
    """The format of a file that exists.

    Raises:
        IngestError: neither name nor content is known, the file is empty or cannot be opened.
    """
    name = path.name.lower()
    for suffix, format_ in _BY_SUFFIX.items():
        if name.endswith(suffix):
            return format_
    start = read_start(path)
    for magic, format_ in _BY_MAGIC.items():
        if start.startswith(magic):
            return format_
    raise IngestError(
        f"neither its name nor its first bytes tell its format: {KNOWN}; "
        f'or say it with format="csv", "tsv", "json", "parquet" or "arrow"',
        path,
    )


def compression_of(start: bytes) -> Literal["none", "gzip", "zstd"]:
    """How a file that starts like this is compressed as a whole."""
    for magic, compression in _COMPRESSED.items():
        if start.startswith(magic):
            return compression
    return "none"


def check_compression(path: Path, said: Compression) -> None:
    """Refuse a text file that is not compressed as a user says.

    Raises:
        IngestError: it is compressed in another way, or cannot be read.
    """
    if said == "auto":
        return
    found = compression_of(_start(path, _MAGIC_BYTES))
    if found != said:
        words = {
            "none": "is not compressed",
            "gzip": "is compressed by gzip",
            "zstd": "is compressed by zstd",
        }
        raise IngestError(f"{words[found]}, and not what compression says, {said}", path)


def read_start(path: Path, length: int = _MAGIC_BYTES) -> bytes:
    """The first bytes of a file.

    Raises:
        IngestError: it is empty or cannot be read.
    """
    start = _start(path, length)
    if not start:
        raise IngestError("is an empty file", path)
    return start


def _start(path: Path, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
