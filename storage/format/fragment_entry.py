"""What a manifest records of a fragment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from bamquery.errors import CorruptionError

_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")
_SCHEMA_VERSION: Final = "era"
"""The member of `schema_version`, by the name that format 3 gave it."""


@dataclass(frozen=True, slots=True)
class FragmentEntry:
    """What a manifest records of a fragment; enough to find every change to its files."""

    id: str
    rows: int
    data_bytes: int
    """Size of `<id>.arrow`."""
    vectors_bytes: int
    """Size of `<id>.vectors.arrow`."""
    vectors_head: int
    """Bytes of `<id>.vectors.arrow` before what it says of columns."""
    vectors_tail: int
    """Bytes behind that."""
    vectors_crc: int
    """CRC-32C of these two, which in turn hold those of what is between, and that those of `<id>.arrow`."""
    schema_version: int | None = None
    """Which of the version's earlier schemas its columns are from; None: they are the table's own."""

    @property
    def data_name(self) -> str:
        """File one: the columns."""
        return f"{self.id}.arrow"

    @property
    def vectors_name(self) -> str:
        """File two: zone map, checksums and layout."""
        return f"{self.id}.vectors.arrow"

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        members = asdict(self)
        version = members.pop("schema_version")
        return members if version is None else {**members, _SCHEMA_VERSION: version}

    @classmethod
    def from_json(cls, data: Any) -> FragmentEntry:
        """What `to_json` made.

        Raises:
            CorruptionError: anything else.
        """
        names = {field.name for field in fields(cls)} - {"schema_version"}
        if not isinstance(data, Mapping) or set(data) - {_SCHEMA_VERSION} != names:
            raise CorruptionError(f"a fragment's entry must have exactly the keys {sorted(names)}")
        if not isinstance(data["id"], str) or _ID.fullmatch(data["id"]) is None:
            raise CorruptionError(f"{data['id']!r} is not a fragment id")
        for name in set(data) - {"id"}:
            value = data[name]
            if type(value) is not int or not 0 <= value < (1 << 32 if name == "vectors_crc" else 1 << 63):
                raise CorruptionError(f"fragment {data['id']}: {name} cannot be {value!r}")
        return cls(**{name: data[name] for name in names}, schema_version=data.get(_SCHEMA_VERSION))
