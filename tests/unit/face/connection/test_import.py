"""`import bamquery` needs nothing but what the package depends on, and hardly that."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bamquery

_BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"duckdb", "pandas", "polars", "matplotlib", "hypothesis", "pytest"}:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
import bamquery
with bamquery.connect() as con:
    con.sql("CREATE TABLE t AS SELECT 1 AS a, TIMESTAMP '2024-01-01 00:00:00' AS day")
    relation = con.sql("SELECT day, count(*) FROM t WHERE a = 1 GROUP BY day")
    assert len(relation.fetchall()) == 1
    assert relation.to_arrow().num_rows == 1
    assert relation.explain(analyze=True) and repr(relation)
    for method, name in ((relation.to_pandas, "pandas"), (relation.to_polars, "polars")):
        try:
            method()
        except bamquery.BamQueryError as error:
            assert f"pip install {name}" in str(error), error
        else:
            raise AssertionError(name)
"""


def test_without_optional_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", _BLOCKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_import_alone_is_light() -> None:
    check = "import sys, bamquery; print(bamquery.__version__, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout == f"{bamquery.__version__} False\n"


def test_everything_promised_is_there() -> None:
    for name in bamquery.__all__:
        assert getattr(bamquery, name) is not None
        assert name in dir(bamquery)
    with pytest.raises(AttributeError, match="connec_t"):
        _ = bamquery.connec_t  # type: ignore[attr-defined]
