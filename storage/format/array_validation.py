"""Arrays from files looked through before they are used: Arrow trusts offsets, codes and text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def validate(array: Any) -> None:
    """Arrow's full validation, but that 24:00:00, the end of a day, is a time.

    Raises:
        pyarrow.ArrowInvalid: something in it is not as it should be.
    """
    if pa.types.is_struct(array.type):
        array.validate()
        for place in range(array.type.num_fields):
            validate(array.field(place))
    elif pa.types.is_fixed_size_list(array.type):
        array.validate()
        validate(array.values)
    else:
        array.validate(full=not pa.types.is_time(array.type))
