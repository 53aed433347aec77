"""Texts as numbers: equal texts have equal ones, so that arrays of numbers are compared and looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError, short

_MOST_LISTED: Final = 1 << 20
"""Texts that Python has as its own, where steps make some: for more, a device does better."""
_BYTES_LISTED: Final = 200
"""Of a text of Python without its characters, and its place in a dictionary and a list."""


class TextCodes:
    """The different texts that a recursive query has met, each with its number from 0 on.

    Those that are read come as Arrow's arrays, those that steps compute as Python's.
    """

    def __init__(self) -> None:
        self._array: Any = pa.array([], pa.large_string())
        self._array_bytes = 0
        self._listed: list[str] | None = None  # those of the array, and more
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._array) if self._listed is None else len(self._listed)

    @property
    def nbytes(self) -> int:
        """Memory for all, about."""
        if self._listed is None:
            return self._array_bytes
        return 2 * self._array_bytes + len(self._listed) * _BYTES_LISTED

    def codes_of(self, array: Any) -> NDArray[np.int32]:
        """The numbers of an array of texts; at nulls any number."""
        if not len(array):
            return np.zeros(0, np.int32)
        # The texts so far are different, and first: each keeps its number.
        encoded: Any = pa.chunked_array([self._settled(), array]).dictionary_encode().chunks[-1]
        self._array, self._listed, self._places = encoded.dictionary, None, {}
        self._array_bytes = int(self._array.nbytes)
        codes: Any = encoded.indices
        if codes.null_count:
            codes = codes.fill_null(0)
        found: NDArray[np.int32] = codes.to_numpy(zero_copy_only=False)
        return found

    def codes_of_computed(self, texts: Sequence[str | None]) -> NDArray[np.int32]:
        """The numbers of texts that a step has made; at nulls 0.

        Raises:
            LeftToDeviceError: one is long, or there are many.
        """
        listed, places = self._listing(), self._places
        code_of: Any = places.get
        codes = list(map(code_of, texts))  # as a rule all are there: steps make the same ones again
        if None in codes:
            for row, text in enumerate(texts):
                if codes[row] is None:
                    code = 0 if text is None else places.get(text)
                    if code is None and text is not None:
                        code = places[short(text)] = len(listed)
                        listed.append(text)
                    codes[row] = code
        if len(listed) > _MOST_LISTED:
            raise LeftToDeviceError
        return np.array(codes, np.int32)

    def to_arrow(self, codes: NDArray[Any], mask: NDArray[np.bool_] | None) -> pa.Array[Any]:
        """The texts of such numbers, null where the mask is true."""
        indices: Any = pa.array(codes, pa.int32(), mask=mask)
        taken: pa.Array[Any] = self._settled().take(indices)
        return taken

    def to_list(self, codes: NDArray[Any]) -> list[str]:
        """The texts of such numbers as Python has them; at nulls any text.

        Raises:
            LeftToDeviceError: there are many.
        """
        listed = self._listing() or [""]
        return list(map(listed.__getitem__, codes.tolist()))

    def _listing(self) -> list[str]:
        if self._listed is None:
            if len(self._array) > _MOST_LISTED:
                raise LeftToDeviceError
            listed: list[str] = self._array.to_pylist()
            self._places = {text: place for place, text in enumerate(listed)}
            self._listed = listed
        return self._listed

    def _settled(self) -> Any:
        """All texts as an array."""
        if self._listed is not None and len(self._listed) > len(self._array):
            added = pa.array(self._listed[len(self._array) :], pa.large_string())
            both: Sequence[Any] = [self._array, added]
            self._array = pa.concat_arrays(both)
            self._array_bytes = int(self._array.nbytes)
        return self._array
