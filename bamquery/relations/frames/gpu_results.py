"""Answers that stay on the GPU: cuDF's frames, and arrays for CuPy and torch."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from bamquery.engine.device import Device
from bamquery.errors import BamQueryError
from bamquery.plan.nodes import Field
from bamquery.text.identifiers import unique_names


def cudf_frame(device: Device[Any], frame: Any, fields: Sequence[Field]) -> Any:
    """A `cudf.DataFrame` of a frame; see `bamquery.engine.cuda.transfer.exports`.

    Raises:
        BamQueryError: cuDF has no such type.
    """
    return _results(device).to_cudf(_session(device), frame, _names(fields), _kinds(fields))


def device_arrays(device: Device[Any], frame: Any, fields: Sequence[Field]) -> dict[str, Any]:
    """Columns by name, each with `__cuda_array_interface__` and `__dlpack__`.

    Raises:
        BamQueryError: a column has nulls, or is no array.
    """
    arrays: dict[str, Any] = _results(device).to_arrays(
        _session(device), frame, _names(fields), _kinds(fields)
    )
    return arrays


def require_gpu(device: str, notes: Sequence[str], purpose: str) -> None:
    """Refuse, before anything is read, what only a query on a GPU can give.

    Raises:
        BamQueryError: it does not run on one; says why, and what to take instead.
    """
    if device.startswith("cuda"):
        return
    why = "".join(f" ({note})" for note in notes if note.startswith("device"))
    raise BamQueryError(
        f"{purpose} needs a query that runs on a GPU, and this one runs on {device}{why}. "
        "Take to_arrow(), to_pandas() or to_polars() instead"
    )


def _results(device: Device[Any]) -> Any:
    assert not device.capabilities.on_host
    return importlib.import_module("bamquery.engine.cuda.transfer.exports")


def _session(device: Any) -> Any:
    return device.session


def _names(fields: Sequence[Field]) -> list[str]:
    return list(unique_names([field.name for field in fields]))


def _kinds(fields: Sequence[Field]) -> list[Any]:
    return [field.type for field in fields]
