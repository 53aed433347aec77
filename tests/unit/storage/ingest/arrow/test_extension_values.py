"""Values of extension types."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa

from bamquery.storage.ingest.arrow.extension_values import plain


def test_uuids_are_their_texts() -> None:
    rng = np.random.default_rng(3)
    keys = [None if i % 7 == 3 else uuid.UUID(bytes=rng.bytes(16)) for i in range(100)]
    stored = pa.array([None if key is None else key.bytes for key in keys], pa.binary(16))
    texts = [None if key is None else str(key) for key in keys]
    array = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    for first, length in ((0, 100), (5, 20), (4, 1), (100, 0)):
        converted = plain(array.slice(first, length))
        converted.validate(full=True)
        assert converted.type == pa.large_string()
        assert converted.to_pylist() == texts[first : first + length]


def test_bool8_is_whether_it_is_not_zero() -> None:
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, -5, None], pa.int8()))
    assert plain(array).to_pylist() == [False, True, True, None]


def test_other_extensions_are_what_they_are_made_of() -> None:
    array = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None]))
    assert plain(array).equals(pa.array(["{}", None]))
