"""A piece of HTML for a notebook's cell: styled by itself, light or dark as what is around it."""

from __future__ import annotations

from importlib.resources import files
from xml.etree import ElementTree as ET

from bamquery.text.html_elements import Content, element


def fragment(*content: Content) -> str:
    """The content in an element of its own.

    Colours are inherited, and greys are see-through, so Jupyter's themes and VS Code's need not be known.
    """
    style = element("style", files("bamquery.text").joinpath("notebook.css").read_text("utf-8"))
    # A dollar in a name or value begins no formula.
    made = element("div", style, *content, class_="bamquery tex2jax_ignore mathjax_ignore")
    return ET.tostring(made, encoding="unicode", method="html")
