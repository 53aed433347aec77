"""A connection whose statements may name the files of one folder only."""

from pathlib import Path

import bamquery
from bamquery.connection.connection import Connection

SECRET = "secret-value"


def connect_restricted(place: Path, **settings: object) -> Connection:
    return bamquery.connect(
        enable_external_access=False, allowed_directories=[str(place / "in")], device="cpu", **settings
    )
