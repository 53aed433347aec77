"""Where files are kept that any process can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """BamQuery's folder where the XDG base directory specification has it; None for users without a home.

    Never in a folder that other users may write to: kernels are run.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification has relative paths ignored.
    root = base if os.path.isabs(base) else os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root) / "bamquery" if os.path.isabs(root) else None
