"""What an installed BamQuery tells SQLAlchemy and Ibis by its entry points."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
CODE = """
import warnings
warnings.filterwarnings("ignore")
import ibis, pandas, sqlalchemy
engine = sqlalchemy.create_engine("bamquery:///taxi.bq")
pandas.DataFrame({"a": [1, 2]}).to_sql("t", engine, index=False)
engine.dispose()
assert pandas.read_sql("SELECT sum(a) AS s FROM t", "bamquery:///taxi.bq").s.tolist() == [3]
assert sqlalchemy.create_engine("bamquery+bamquery://").dialect.name == "bamquery"
con = ibis.bamquery.connect("taxi.bq")
assert con.table("t").a.sum().execute() == 3
assert ibis.connect("bamquery://taxi.bq").list_tables() == ["t"]
print("all found")
"""


def test_entry_points_lead_to_the_dialect_and_the_backend(tmp_path: Path) -> None:
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items())
        for group, points in declared.items()
    ]
    info = tmp_path / "site" / "bamquery-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bamquery\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines))
    path = os.pathsep.join([str(tmp_path / "site"), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "all found\n", done.stderr
