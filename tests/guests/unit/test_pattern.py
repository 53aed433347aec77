"""Drives' pattern is the same in C++ and in Python, and of no two places."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from tests.guests.packages import REPOSITORY
from tests.guests.pattern import blocks
from tests.guests.programs import FOLDER
from tests.native.programs import compiler

PLACES = [(0, 0, 0), (3, 12345, 63), (255, (1 << 44) - 1, 511)]


def test_both_say_the_same(tmp_path: Path) -> None:
    source = tmp_path / "places.cpp"
    words = [int(blocks(drive, lba, 1, 4096)[0, word]) for drive, lba, word in PLACES]
    source.write_text(
        '#include "pattern.hpp"\n'
        + "".join(
            f"static_assert(guests::pattern({drive}, {lba}, {word}) == {value}u);\n"
            for (drive, lba, word), value in zip(PLACES, words, strict=True)
        )
    )
    headers = [f"-iquote{folder}" for folder in (FOLDER, REPOSITORY)]
    command = [compiler(), "-std=c++20", "-fsyntax-only", *headers, source]
    subprocess.run(command, check=True)


def test_no_two_places_are_alike() -> None:
    words = np.concatenate([blocks(drive, 0, 64, 4096).ravel() for drive in range(3)])
    assert len(np.unique(words)) == len(words)
