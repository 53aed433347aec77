"""What a join asks of a device that has its keys in a memory of its own: to keep them there."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import pyarrow as pa

from bamquery.engine.device import Device

if TYPE_CHECKING:
    from bamquery.storage.statistics.late_values import LateValues


@runtime_checkable
class KeyKeepingDevice(Protocol):
    """A device whose conditions take lists of keys from its own memory."""

    def late_values(
        self, keys: Sequence[Any], least: pa.Scalar[Any], greatest: pa.Scalar[Any]
    ) -> LateValues | None:
        """The values of frames of one column each, nulls left out; their bounds are known.

        None: there are too many, too far apart, for conditions to look among them.

        Raises:
            MemoryLimitError: there is no memory for them.
        """
        ...


def keeps_keys(device: Device[Any]) -> TypeGuard[KeyKeepingDevice]:
    """Whether it is a `KeyKeepingDevice`."""
    return _keeps_keys(type(device))


@functools.lru_cache(maxsize=16)
def _keeps_keys(kind: type[Any]) -> bool:
    return issubclass(kind, KeyKeepingDevice)
