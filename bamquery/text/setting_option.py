"""`--set NAME=VALUE` of programs: a setting, which may be given several times."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_setting_option(add: Callable[..., Any], description: str) -> None:
    """Make `settings` a list of names and values, both text.

    Args:
        add: a parser's `add_argument`, or that of a group.
        description: what the help says.
    """
    add(
        "--set",
        metavar="NAME=VALUE",
        dest="settings",
        action="append",
        type=_name_and_value,
        default=[],
        help=description,
    )


def _name_and_value(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name.strip() or "=" not in text:
        raise argparse.ArgumentTypeError(f"it takes name=value, not {text!r}")
    return name.strip(), value.strip()
