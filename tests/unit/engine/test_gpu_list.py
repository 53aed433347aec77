"""The published list of what runs on a GPU is what the cuda device says; nothing here needs libcudf."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product

import pyarrow as pa
import pytest

from bamquery.engine.cuda.capabilities import CUDA
from bamquery.engine.lowering import refusals
from bamquery.errors import BamQueryError
from bamquery.function_catalog.function_reference import functions, gpu_support
from bamquery.function_catalog.session import SESSION_FUNCTIONS
from tests.plans import MemoryCatalog, SchemaOnly, plan_of_catalog

COLUMNS = {
    "s": pa.large_string(),
    "d": pa.float64(),
    "i": pa.int32(),
    "l": pa.int64(),
    "b": pa.large_binary(),
    "t": pa.timestamp("us"),
    "e": pa.date32(),
    "o": pa.bool_(),
}
CATALOG = MemoryCatalog(SchemaOnly("r", pa.schema(list(COLUMNS.items()))))
CONSTANTS = ("'a'", "2", "INTERVAL 1 DAY", "TIMESTAMP '2024-01-01'")
SYNTAX = {"position": "strpos"}
"""Functions whose calls are written with words, and others that do the same."""
OF_INTERVALS = ("date_add", "normalized_interval")
"""Functions of intervals, of which there are no columns."""


def _listed() -> Iterator[tuple[str, str]]:
    """Names of scalar functions of values and what the reference says of them."""
    for record in functions():
        if record.kind == "scalar" and record.name not in SESSION_FUNCTIONS:
            yield record.name, gpu_support(record.entry, record.kind)


LISTED = sorted(_listed())


def _refused(call: str) -> bool | None:
    """Whether a GPU refuses the call; None if it is no call of the function."""
    try:
        plan = plan_of_catalog(f"SELECT {call} FROM r", CATALOG)
    except BamQueryError:
        return None
    # now() is a constant by then.
    return any("no function now" not in reason for reason in refusals(plan, CUDA))


def _of_columns(name: str, least: int = 1) -> Iterator[bool]:
    """Of calls whose arguments are columns, but for a part or a width of time, whether they are refused."""
    for words in ("", "'day', ", "INTERVAL 1 DAY, "):
        for count in range(least, 4):
            mixed = product("sid", repeat=count) if count > 1 else ()
            for arguments in chain(([kind] * count for kind in COLUMNS), mixed):
                refused = _refused(f"{name}({words}{', '.join(arguments)})")
                if refused is not None:
                    yield refused


def _of_constants(name: str) -> Iterator[bool]:
    """Of calls whose arguments but the first are constants, whether they are refused."""
    for count in range(3):
        for column, others in product("stide", product(CONSTANTS, repeat=count)):
            refused = _refused(f"{name}({', '.join([column, *others])})")
            if refused is not None:
                yield refused


@pytest.mark.parametrize(("name", "where"), LISTED, ids=[name for name, _ in LISTED])
def test_what_is_said(name: str, where: str) -> None:
    """A function that runs has a call that is not refused; one that does not, a call that is."""
    name = SYNTAX.get(name, name)
    if where == "yes":
        without_arguments = _refused(f"{name}()") is False or _refused(name) is False
        assert without_arguments or not all(_of_columns(name))
    elif where == "constants":
        assert not all(_of_constants(name))
        assert any(_of_columns(name, 2)) or name in OF_INTERVALS
    else:
        assert any(_of_columns(name)) or any(_of_constants(name)) or name in OF_INTERVALS
