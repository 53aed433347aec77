"""Characters as readers see them: a base with its marks, joined emoji, flags (Unicode's annex 29)."""

from __future__ import annotations

import unicodedata
from typing import Final

from bamquery.engine.cpu.value_kernels import pieces

_JOINER: Final = "\u200d"
_FLAG_LETTERS: Final = range(0x1F1E6, 0x1F200)
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_TAGS: Final = range(0xE0020, 0xE0080)
_LINKERS: Final = "\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d"
"""Viramas, which join consonants of Indian scripts."""
_HANGUL: Final = (range(0x1100, 0x1160), range(0x1160, 0x11A8), range(0x11A8, 0x1200))
"""Leading consonants, vowels, trailing consonants."""


def reversed_text(text: str) -> str:
    """The text from behind, characters whole."""
    return "".join(reversed(graphemes(text)))


def graphemes(text: str) -> list[str]:
    """The text cut between characters."""
    found: list[str] = []
    for piece in pieces(text):
        for character in piece:
            if found and _belongs(found[-1], character):
                found[-1] += character
            else:
                found.append(character)
    return found


def _belongs(before: str, character: str) -> bool:
    """Whether the character goes on what comes before."""
    last, code = before[-1], ord(character)
    if (last, character) == ("\r", "\n"):
        return True
    if unicodedata.category(last) in ("Cc", "Zl", "Zp"):
        return False
    if character == _JOINER or code in _SKIN_TONES or code in _TAGS:
        return True
    if unicodedata.category(character) in ("Mn", "Me", "Mc"):
        return True
    if last in _LINKERS:
        return unicodedata.category(character) == "Lo" and ord(character) - ord(last) in range(-128, 128)
    if last == _JOINER:
        return len(before) > 1 and unicodedata.category(character) == "So"
    if code in _FLAG_LETTERS:
        return len(before) == 1 and ord(last) in _FLAG_LETTERS
    return _is_syllable(ord(last), code)


def _is_syllable(last: int, code: int) -> bool:
    """Whether two letters of Hangul are of one syllable."""
    leading, vowels, trailing = _HANGUL
    whole = 0xAC00 <= last <= 0xD7A3
    open_syllable = whole and (last - 0xAC00) % 28 == 0
    if last in leading:
        return code in leading or code in vowels or 0xAC00 <= code <= 0xD7A3
    if last in vowels or open_syllable:
        return code in vowels or code in trailing
    return (last in trailing or whole) and code in trailing
