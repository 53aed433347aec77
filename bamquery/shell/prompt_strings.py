"""What stands before what is typed."""

from typing import Final

PROMPT: Final = "bamquery> "
CONTINUATION: Final = "      ..> "
