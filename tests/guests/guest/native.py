"""The package and its extension work in a guest; what is written there stays in its memory."""

from __future__ import annotations

from pathlib import Path

from bamquery import _native
from tests.guests.guest.check import check

check(_native.crc32c(b"123456789") == 0xE3069283, "native", Path(_native.__file__ or "").name)
file = Path(__file__).with_name("written-by-a-guest")
file.write_text("lost")
check(file.read_text() == "lost", "writes", f"{file.name} holds what was written to it")
