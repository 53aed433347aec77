"""The text of a Markdown file as people read it: paragraphs, bullets and cells, without blocks of code."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.blocks import REPOSITORY

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r" *(?P<fence>`{3,})")
_BULLET = re.compile(r" *(?:[-*]|\d+\.) ")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"`[^`]*`")
_CODES = re.compile(r"code(?:,? code)+")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*]*\s+")


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, a bullet or a table's cell.

    Attributes:
        line: its first, from 1.
        text: on one line.
        is_bullet: or a numbered item.
    """

    line: int
    text: str
    is_bullet: bool = False


@functools.cache
def tracked() -> frozenset[str]:
    """Paths of all files that git keeps or would keep, from the root; none outside of a checkout."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return frozenset()
    return frozenset(path for path in done.stdout.splitlines() if (REPOSITORY / path).exists())


def files() -> list[Path]:
    """All Markdown of the repository."""
    return [REPOSITORY / path for path in sorted(tracked()) if path.endswith(".md")]


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line outside of blocks of code."""
    fence = None
    shown = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    for number, line in enumerate(shown.splitlines(), 1):
        if fence is not None:
            fence = None if line.strip() == fence else fence
        elif found := _FENCE.match(line):
            fence = found["fence"]
            yield number, ""
        else:
            yield number, line


def paragraphs(text: str) -> Iterator[Paragraph]:
    """All of a file, heads left out."""
    begin, is_bullet, words = 0, False, list[str]()
    for number, line in [*lines(text), (0, "")]:
        bullet = _BULLET.match(line)
        ends = not line.strip() or line.startswith("#") or line.lstrip().startswith("|")
        if words and (ends or bullet):
            yield Paragraph(begin, " ".join(words), is_bullet)
            words = []
        if line.lstrip().startswith("|"):
            yield from (Paragraph(number, cell.strip()) for cell in _CELL_EDGE.split(line)[1:-1])
        elif not ends:
            if not words:
                begin, is_bullet = number, bullet is not None
            words.append(line[bullet.end() if bullet else 0 :].strip())


def sentences(text: str) -> list[str]:
    """Those of a paragraph; a piece of code, or a list of nothing else, counts as one word."""
    return _SENTENCE_END.split(_CODES.sub("code", _CODE.sub("code", text)))
