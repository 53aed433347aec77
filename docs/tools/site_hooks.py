"""What mkdocs runs while it builds: the theme's script names places to load from, which no page may ask."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_ELSEWHERE = re.compile(rb"https://unpkg\.com/[\w@./-]+")


def on_post_build(config: Any) -> None:
    """Mermaid and a polyfill for browsers of before 2020 are not used: nobody is asked for them."""
    for script in Path(config.site_dir).rglob("assets/javascripts/*.js*"):
        text = script.read_bytes()
        changed = _ELSEWHERE.sub(b"about:blank", text)
        if changed != text:
            script.write_bytes(changed)
