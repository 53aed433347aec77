"""Pages can be read: no sentence and no bullet is longer than one can keep in mind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import REPOSITORY
from tests.docs.prose import files, paragraphs, sentences

SENTENCE_WORDS = 60
BULLET_WORDS = 110
DESIGN_WORDS = 1650


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(REPOSITORY)))
def test_sentences_and_bullets_are_short(file: Path) -> None:
    long = []
    for paragraph in paragraphs(file.read_text("utf-8")):
        lengths = [len(sentence.split()) for sentence in sentences(paragraph.text)]
        if max(lengths) > SENTENCE_WORDS:
            long.append(f"line {paragraph.line}: a sentence of {max(lengths)} words")
        if paragraph.is_bullet and sum(lengths) > BULLET_WORDS:
            long.append(f"line {paragraph.line}: a bullet of {sum(lengths)} words")
    assert not long, "\n".join(long)


def test_the_design_is_read_at_one_sitting() -> None:
    text = (REPOSITORY / "docs" / "design.md").read_text("utf-8")
    assert len(text.split()) <= DESIGN_WORDS, "details belong into the rooms' READMEs"


def test_lengths_are_those_of_words_that_are_read() -> None:
    text = "# Head\n- one `a b c` two.\n  Three four!\n\n```sh\nnot read\n```\n| five six | `x` |\n\nSeven."
    found = [(part.line, part.is_bullet, sentences(part.text)) for part in paragraphs(text)]
    assert found == [
        (2, True, ["one code two.", "Three four!"]),
        (8, False, ["five six"]),
        (8, False, ["code"]),
        (10, False, ["Seven."]),
    ]
