"""Files of (input, expected) pairs.

A file is a list of cases, each an input, a line `----`, and what is expected of it, set apart by a line
`====`. Lines that begin with `-- ` before the first input belong to the file. With BAMQUERY_UPDATE_GOLDEN
set in the environment, files are written anew from what the code gives; read the difference before it is
committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent


class GoldenFile:
    """One file of cases; `header` has its first lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        count = next((i for i, line in enumerate(lines) if not line.startswith("-- ")), len(lines))
        self.header = "".join(lines[:count])
        self.cases = [
            (source.strip("\n"), expected.strip("\n"))
            for source, _, expected in (
                case.partition("\n----\n") for case in "".join(lines[count:]).split("\n====\n")
            )
        ]

    def check(self, answer: Callable[[str], str]) -> None:
        """Assert that every input is answered as expected, or write down the answers."""
        answers = [(source, answer(source).strip("\n")) for source, _ in self.cases]
        if os.environ.get("BAMQUERY_UPDATE_GOLDEN"):
            body = "\n====\n".join(f"{source}\n----\n{given}" for source, given in answers)
            self.path.write_text(f"{self.header}{body}\n")
        for (source, expected), (_, given) in zip(self.cases, answers, strict=True):
            assert given == expected, f"{self.path.name}: {source}"
