"""A folder that may be read beside one that may not."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.face.external_access.restricted import SECRET


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that may be read, `in`, and one that may not, `out`."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "s.csv").write_text(f"a\n{SECRET}\n")
    (inside / "x.csv").write_text("a\n1\n")
    (inside / "sub" / "y.csv").write_text("a\n2\n")
    pq.write_table(pa.table({"a": [3]}), inside / "p.parquet")
    with pa.ipc.new_file(str(inside / "f.arrow"), pa.schema({"a": pa.int64()})) as writer:
        writer.write_batch(pa.record_batch({"a": [4]}))
    (inside / "j.json").write_text('{"a": 5}\n')
    (inside / "link.csv").symlink_to(outside / "s.csv")
    (inside / "folder").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    (inside / "within.csv").symlink_to("x.csv")
    (tmp_path / "inside_too.csv").write_text(f"a\n{SECRET}\n")
    return tmp_path
