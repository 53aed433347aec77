"""Elements of a page. The standard library's tree escapes whatever text comes in."""

from __future__ import annotations

from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

Content: TypeAlias = "str | ET.Element | None"

_VOID_OF_TEXT: Final = {code: f"\\x{code:02x}" for code in (*range(9), 11, 12, *range(14, 32), 127)}
"""Control characters, which HTML has no way to write."""


def element(tag: str, *content: Content, **attributes: object) -> ET.Element:
    """An element with its content; `class_` and `data_x` are the attributes `class` and `data-x`.

    None is no content, and an attribute that is None is not there.
    """
    names = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    made = ET.Element(
        tag, {key: escape_controls(str(value)) for key, value in names.items() if value is not None}
    )
    append(made, *content)
    return made


def append(parent: ET.Element, *content: Content) -> None:
    """Put text and elements behind what an element has."""
    for piece in content:
        if piece is None:
            continue
        if isinstance(piece, ET.Element):
            parent.append(piece)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + escape_controls(piece)
        else:
            parent.text = (parent.text or "") + escape_controls(piece)


def escape_controls(text: str) -> str:
    """The text with control characters and lone surrogates made visible."""
    return text.translate(_VOID_OF_TEXT).encode("utf-8", "backslashreplace").decode()


def page(root: ET.Element) -> bytes:
    """An `html` element as a file."""
    return b"<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html").encode() + b"\n"
