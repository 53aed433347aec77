"""Texts and bytes in other forms: digests, base64, URLs, accents, paths, sizes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from bamquery.engine.cpu.kernels import Implementation
from bamquery.engine.cpu.value_kernels import per_value, pieces, unknown_character

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_BLOCKS: Final = 10
_BEYOND_ASCII: Final = "\x80"


def _digest(name: str) -> Callable[[str | bytes], str]:
    def hexadecimal(value: str | bytes) -> str:
        content = value.encode() if isinstance(value, str) else value
        digest = hashlib.new(name, usedforsecurity=False)
        for piece in pieces(content):
            digest.update(piece)
        return digest.hexdigest()

    return hexadecimal


def _to_base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _from_base64(text: str) -> bytes:
    if len(text) % 4:
        raise ValueError(f"'{text}' is not base64: its length is not a multiple of 4")
    bad = unknown_character(text, _BASE64)
    if bad is not None:
        raise ValueError(f"'{text}' is not base64: {bad!r} is no digit of it")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"'{text}' is not base64: {error}") from None


def _decode(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("decode() needs bytes of UTF-8, which these are not") from None


def _url_decode(text: str) -> str:
    try:
        return b"".join(map(unquote_to_bytes, _whole_escapes(text))).decode()
    except UnicodeDecodeError:
        raise ValueError(f"'{text}' does not decode to UTF-8") from None


def _whole_escapes(text: str) -> Iterator[str]:
    """The text in pieces, no `%XX` cut in two."""
    rest = ""
    for piece in pieces(text):
        given = rest + piece
        cut = given.find("%", max(len(given) - 2, 0))
        cut = len(given) if cut < 0 else cut
        rest = given[cut:]
        yield given[:cut]
    yield rest


def _url_encode(text: str) -> str:
    return "".join(quote(piece, safe="-_.~") for piece in pieces(text))


def _split_at_ascii(text: str) -> Iterator[str]:
    """The text in pieces that nothing goes together across: all but the first begin with ASCII."""
    rest = ""
    for piece in pieces(text):
        cut = next((place for place in range(len(piece) - 1, -1, -1) if piece[place] < _BEYOND_ASCII), None)
        if cut is None:
            rest += piece
            continue
        yield rest + piece[:cut]
        rest = piece[cut:]
    yield rest


def _strip_accents(text: str) -> str:
    """Characters without the marks that they are composed with."""
    return "".join(map(_strip_marks, _split_at_ascii(text)))


def _strip_marks(text: str) -> str:
    if text.isascii():
        return text
    parts = (
        c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) not in ("Mn", "Mc", "Me")
    )
    return unicodedata.normalize("NFC", "".join(parts))


def _compose(text: str) -> str:
    return "".join(unicodedata.normalize("NFC", part) for part in _split_at_ascii(text))


def _bytes_text(step: int, units: str) -> Callable[[int], str]:
    """A number of bytes in the largest unit of which there is one, with one digit cut after the point."""
    names = units.split()

    def write(count: int) -> str:
        sign, size = ("-" if count < 0 else ""), abs(count)
        whole, unit = size, 0
        tenths = 0
        while whole >= step and unit < len(names):
            tenths, whole, unit = whole * _BLOCKS // step % _BLOCKS, whole // step, unit + 1
        if not unit:
            return f"{sign}{whole} byte{'s' * (whole != 1)}"
        return f"{sign}{whole}.{tenths} {names[unit - 1]}"

    return write


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        **{name: per_value(_digest(name)) for name in ("md5", "sha1", "sha256")},
        "to_base64": per_value(_to_base64),
        "from_base64": per_value(_from_base64),
        "encode": per_value(str.encode),
        "decode": per_value(_decode),
        "url_encode": per_value(_url_encode),
        "url_decode": per_value(_url_decode),
        "strip_accents": per_value(_strip_accents),
        "nfc_normalize": per_value(_compose),
        "format_bytes": per_value(_bytes_text(1024, "KiB MiB GiB TiB PiB")),
        "format_decimal_bytes": per_value(_bytes_text(1000, "kB MB GB TB PB")),
    }
)
