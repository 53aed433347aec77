"""The fenced blocks of a page: what language, where, and whether and where they run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RUN = {"python", "ipython", "sql", "sh"}
SHOWN = {"text", "json", "html", "csv"}
"""Drawings and outputs, which nobody could run."""

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w+-]*)[^\n]*$")
_MARK = re.compile(r"^ *<!-- (?P<kind>not run|needs a GPU|needs a drive|fails)(?:: (?P<why>[^>]+))? -->$")


@dataclass(frozen=True)
class CodeBlock:
    """One fenced block.

    Attributes:
        page: the file, from the repository's root.
        line: of its fence, from 1.
        language: as the fence says.
        text: without the fence.
        mark: `not run`, `needs a GPU`, `needs a drive`, `fails` or empty: what the comment before it says.
        why: the rest of that comment.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    why: str = ""


def pages() -> list[Path]:
    """README, CONTRIBUTING and all of docs."""
    return [
        REPOSITORY / "README.md",
        REPOSITORY / "CONTRIBUTING.md",
        *sorted((REPOSITORY / "docs").rglob("*.md")),
    ]


def blocks(page: Path) -> list[CodeBlock]:
    """A page's blocks, in order."""
    found: list[CodeBlock] = []
    lines = page.read_text("utf-8").splitlines()
    name = str(page.relative_to(REPOSITORY))
    at = 0
    mark, why = "", ""
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            said = _MARK.match(lines[at])
            if said is not None:
                mark, why = said["kind"], said["why"] or ""
            elif lines[at].strip():
                mark, why = "", ""
            at += 1
            continue
        begin = at
        at += 1
        while lines[at].strip() != fence["fence"]:
            at += 1
        indent = len(fence["indent"])
        text = "\n".join(line[indent:] for line in lines[begin + 1 : at])
        found.append(CodeBlock(name, begin + 1, fence["language"], text, mark, why))
        mark, why = "", ""
        at += 1
    return found
