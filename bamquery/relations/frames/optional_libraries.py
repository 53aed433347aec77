"""Libraries that BamQuery works with but does not need."""

from __future__ import annotations

import importlib
from typing import Any

from bamquery.errors import BamQueryError


def require(module: str, purpose: str, install: str = "") -> Any:
    """The module, imported now; `install` is the command that gets it, pip of its name if empty.

    Raises:
        BamQueryError: it is not installed; says how to get it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BamQueryError(
            f"{purpose} needs {module}, which is not installed: {install or f'pip install {module}'}"
        ) from error
