"""Every function of DuckDB's is there, or refused by its name."""

import re

import duckdb
import pytest

from bamquery.errors import SqlError, UnsupportedError
from bamquery.function_catalog.missing_functions import REFUSED, why_missing
from bamquery.function_catalog.session import SESSION_FUNCTIONS
from bamquery.sql_frontend import statement_binder as statements
from bamquery.sql_frontend.functions.aggregates import AGGREGATES
from bamquery.sql_frontend.functions.scalar_functions import FUNCTIONS
from bamquery.sql_frontend.functions.window_functions import WINDOW_FUNCTIONS
from tests.plans import catalog

_ELSEWHERE = {  # of a syntax of their own, of DuckDB's inside, or of aggregates' states
    *("bitstring_byte_comparable", "combine_aggr", "decimal_average"),
    *("decimal_division", "index_key", "invoke", "row", "timetz_byte_comparable", "vertex_extract"),
}


def test_no_function_of_duckdb_is_unknown() -> None:
    if not duckdb.__version__.startswith("2.0."):
        pytest.skip(f"the names are those of DuckDB 2.0, not {duckdb.__version__}")
    found = duckdb.sql("SELECT lower(function_name), function_type FROM duckdb_functions()").fetchall()
    here = {*FUNCTIONS, *SESSION_FUNCTIONS, *AGGREGATES, *WINDOW_FUNCTIONS, *REFUSED}
    unknown = {
        name
        for name, kind in found
        if kind in ("scalar", "aggregate", "macro", "window")
        and re.fullmatch("[a-z][a-z0-9_]*", name)
        and name not in here | _ELSEWHERE
        and why_missing(name) is None
    }
    assert not unknown


def test_none_is_named_that_is_here() -> None:
    here = {*FUNCTIONS, *SESSION_FUNCTIONS, *AGGREGATES, *WINDOW_FUNCTIONS}
    assert {name for name in here if why_missing(name) is not None} == {"pg_typeof"}  # it alone of its family


def test_all_are_refused_at_once() -> None:
    sql = "SELECT list_sort(id), json_extract(zone, '$'), printf('%d', id), try(1 / 0) FROM glob('*')"
    with pytest.raises(UnsupportedError) as caught:
        list(statements.bind(sql, catalog()))
    assert [reason.message for reason in caught.value.reasons] == [
        "list_sort() (there are no lists) is not supported",
        "json_extract() (there is no type JSON: read_json() makes columns of JSON files) is not supported",
        "printf() is not supported",
        "try() is not supported",
        "glob() is not supported",
    ]


@pytest.mark.parametrize("name", ["list_", "nonsense", "json", "LIST_SORT"])
def test_names(name: str) -> None:
    """A family is no function, other names are unknown, and case is not told apart."""
    with pytest.raises(SqlError) as caught:
        list(statements.bind(f"SELECT {name}(1)", catalog()))
    known = name in ("json", "LIST_SORT")
    assert isinstance(caught.value, UnsupportedError) == known
    assert ("is not supported" if known else "there is no function") in str(caught.value)
