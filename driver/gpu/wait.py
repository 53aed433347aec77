"""Waiting for a GPU without waiting for ever, and without being deaf meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

STREAM_DEADLINE_S: Final = 120.0
"""What a stream is given of one chunk takes seconds at most, and commands are lost after 20."""
STUCK: Final = (
    "a kernel or a copy before it does not end. What it may use is kept until this process ends; "
    "nvidia-smi tells of the GPU's errors (dmesg: NVRM, Xid)"
)
_SPIN_S: Final = 500e-6
_FIRST_NAP_S: Final = 20e-6
_NAP_SHARE: Final = 1 / 128
LONGEST_NAP_S: Final = 1e-3


def wait_until(
    done: Callable[[], bool],
    deadline_s: float,
    *,
    check: Callable[[], None] | None = None,
    longest_nap_s: float = LONGEST_NAP_S,
) -> bool:
    """Look again and again, with pauses that grow; False: it was not `done` within `deadline_s` seconds.

    `check` is called between looks, and raises where nobody wants to wait any longer. Ctrl-C works.
    """
    start = time.monotonic()
    while not done():
        waited = time.monotonic() - start
        if waited > deadline_s:
            return False
        if waited > _SPIN_S:
            if check is not None:
                check()
            # Who waits longer may oversleep longer.
            time.sleep(min(max(waited * _NAP_SHARE, _FIRST_NAP_S), longest_nap_s))
    return True
