"""What a cast gives before it is known whether a value that does not fit is an error or null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pylibcudf as plc

from bamquery.engine.cuda.kernels import Kernels


@dataclass(frozen=True, slots=True)
class Outcome:
    """Converted values and where conversion failed.

    Attributes:
        values: the column in its new type, anything where it failed.
        failed: true where a value (not a null) does not fit, never null; None where all do.
    """

    values: plc.Column
    failed: plc.Column | None = None


Conversion: TypeAlias = Callable[[Kernels, plc.Column, Any, Any], Outcome]
"""From a column, its Arrow type and the wanted one."""
