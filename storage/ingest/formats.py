"""Which format a file has: by its name, or else by its first bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from bamquery.errors import IngestError
from bamquery.storage.ingest.failures import unreadable

Format: TypeAlias = Literal["parquet", "csv", "tsv", "json", "arrow"]

_BY_SUFFIX: Final[dict[str, Format]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".json": "json",
    ".json.gz": "json",
    ".ndjson": "json",
    ".ndjson.gz": "json",
    ".jsonl": "json",
    ".jsonl.gz": "json",
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
KNOWN: Final = f"known are {', '.join(_BY_SUFFIX)}"
GZIP_MAGIC: Final = b"\x1f\x8b"


def check_format(text: str) -> Format:
    """`text` as the name of a format.

    Raises:
        IngestError: it is none; names those there are.
    """
    for format_ in get_args(Format):
        if text.lower() == format_:
            return format_  # type: ignore[no-any-return]  # one of Format's own values
    raise IngestError(f'"{text}" is not a format; there are {", ".join(get_args(Format))}')


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


def read_start(path: Path, length: int = 8) -> bytes:
    """The first bytes of a file.

    Raises:
        IngestError: it is empty or cannot be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    if not start:
        raise IngestError("is an empty file", path)
    return start
