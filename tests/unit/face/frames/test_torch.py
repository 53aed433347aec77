"""Tensors in the host's memory; `make test-torch` installs torch and runs these."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import bamquery
from tests.unit.face.frames.cases import EXPRESSIONS, query
from tests.unit.face.frames.test_types import TYPES

torch = pytest.importorskip("torch")
TENSORS = [kind for kind in EXPRESSIONS if TYPES[kind][3] != "-"]


@pytest.fixture
def con() -> Iterator[bamquery.Connection]:
    """On the CPU, also where there is a GPU."""
    with bamquery.connect(device="cpu") as connection:
        yield connection


@pytest.mark.parametrize("state", ["values", "no rows"])
@pytest.mark.parametrize("kind", TENSORS)
def test_as_documented(con, kind, state):
    relation = con.sql(query(kind, state))
    tensor = relation.to_torch()["x"]
    assert str(tensor.dtype) == f"torch.{TYPES[kind][3]}"
    assert tensor.device.type == "cpu"
    column = relation.to_arrow()["x"]
    if not pa.types.is_primitive(column.type) or pa.types.is_temporal(column.type):
        width = {"int32": pa.int32(), "int64": pa.int64(), "bool": pa.bool_()}[TYPES[kind][3]]
        column = pa.chunked_array([c.view(width) for c in column.chunks], width)
    wanted = torch.tensor(column.to_pylist(), dtype=tensor.dtype)
    assert torch.equal(tensor.nan_to_num(), wanted.nan_to_num())


@pytest.mark.parametrize("kind", [kind for kind in EXPRESSIONS if kind not in TENSORS])
def test_what_is_no_tensor_is_refused_before_it_runs(con, kind, monkeypatch):
    monkeypatch.setattr("bamquery.session.result.Result.table", lambda self: pytest.fail("it was run"))
    with pytest.raises(Exception, match=r'column "x" of type .* is no array: .* to_numpy'):
        con.sql(query(kind, "values")).to_torch()


def test_nulls_are_refused_by_name(con):
    relation = con.sql("SELECT 1 AS a, CASE WHEN i > 0 THEN i END AS holes FROM range(3) r(i)")
    with pytest.raises(Exception, match=r'column "holes" has nulls.*coalesce.*IS NOT NULL.*to_numpy'):
        relation.to_torch()
    assert relation.filter("holes IS NOT NULL").to_torch()["holes"].tolist() == [1, 2]


def test_tensors_are_the_callers_own(con):
    """They can be written to, outlive their connection, and change nobody else's rows."""
    con.sql("CREATE TABLE t AS SELECT i, i::DOUBLE AS f FROM range(3000) r(i)")
    relation = con.table("t")
    first = relation.to_torch()
    first["f"][0] = 7.0
    assert relation.limit(1).to_torch()["f"].tolist() == [0.0]
    con.close()
    del relation
    first["f"] += first["i"]
    assert first["f"][2999].item() == 5998.0


def test_names_that_come_again(con):
    assert list(con.sql("SELECT 1 AS a, 2 AS a").to_torch()) == ["a", "a_1"]
