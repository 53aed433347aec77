"""Where bytes are, by the file's own layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from bamquery import _native
from bamquery.storage.fragments.stored_buffers import stored_buffers
from tests.stored import stored


def test_the_bytes_are_where_it_says(tmp_path: Path) -> None:
    nulls = np.zeros(3000, np.bool_)
    nulls[1024:2048] = True
    nulls[2500] = True
    table = pa.table(
        {
            "plain": pa.array(np.arange(3000, dtype=np.int32)),
            "holes": pa.array(np.arange(3000.0), mask=nulls),
            "text": pa.array([str(n) for n in range(3000)], pa.large_string()),
        }
    )
    with stored(tmp_path / "db", table) as snapshot:
        fragment = snapshot.fragments[0]
        content = fragment.path.read_bytes()
        plain = stored_buffers(fragment, "plain")
        assert (plain.bits, plain.validity, plain.offsets, plain.rows) == (32, None, None, 3000)
        values = content[plain.values.offset : plain.values.end]
        assert np.frombuffer(values, np.int32).tolist() == list(range(3000))
        assert plain.checksums.values[1] == _native.crc32c(values[4096:8192])
        holes = stored_buffers(fragment, "holes")
        assert holes.validity is not None
        assert holes.null_states(np.arange(3)).tolist() == [0, 2, 1]
        assert holes.null_states(np.array([2])).tolist() == [1]
        text = stored_buffers(fragment, "text")
        assert text.offsets is not None
        assert text.bits == 64
