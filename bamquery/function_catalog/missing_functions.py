"""Functions of DuckDB that BamQuery does not have: named in its refusals, rather than called unknown.

They are those that DuckDB 2.0's `duckdb_functions()` lists but for operators and what only its own metadata
calls, TRY, and readers of its best-known extensions. Of families, such as list_, the beginning is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

_FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "array_": "there are no lists",
        "collate_": "strings are compared byte by byte",
        "duckdb_": "duckdb_tables(), duckdb_columns() and the like tell what there is",
        "enum_": "there are no enumerations",
        "has_": "there are no users",
        "icu_": "strings are compared byte by byte",
        "inet_": "there is no server",
        "json_": "there is no type JSON: read_json() makes columns of JSON files",
        "list_": "there are no lists",
        "map_": "there are no maps",
        "parquet_": "read_parquet() reads such files, and DESCRIBE tells their columns",
        "pg_": "",
        "pragma_": "duckdb_tables(), duckdb_columns() and the like tell what there is",
        "struct_": "there are no structs",
        "union_": "there are no unions",
        "variant_": "there are no variants",
    }
)
"""What names begin with, and why there are none of them."""

_SLICES: Final = frozenset(
    {"array_extract", "array_slice", "list_element", "list_extract", "list_slice", "array_element"}
)
"""Of lists, and of strings, too."""

_LISTS: Final = frozenset(
    {
        *("aggregate", "apply", "cardinality", "element_at", "equi_width_bins", "filter", "flatten"),
        *("generate_subscripts", "grade_up", "is_histogram_other_bin", "map", "range", "reduce"),
        *("regexp_extract_all", "regexp_split_to_array", "split", "str_split", "str_split_regex"),
        *("string_split", "string_split_regex", "string_to_array", "unpivot_list", "unnest", "parse_path"),
        *("generate_series", "from_json", "from_json_strict", "row_to_json", "to_json"),
        *("json", "remap_struct", "vector_type", "get_type", "regexp_split_to_table"),
    }
)
"""What takes or gives lists, structs, maps or JSON."""

_OTHERS: Final = frozenset(
    {
        *("ago", "alias", "arg_max_nulls_last", "arg_min_nulls_last", "assert_true", "binom", "bit_position"),
        *("bitstring", "bitstring_agg", "can_cast_implicitly", "cast_to_type", "col_description", "combine"),
        "count_star",
        *("create_sort_key", "current_connection_id", "current_query", "current_query_id"),
        *("current_transaction_id", "currval", "days_in_month", "error", "fill", "finalize"),
        *("format", "format_pg_type", "format_type", "get_bit", "get_block_size", "get_current_time"),
        *("hash", "hive_partition_component", "left_grapheme"),
        *("length_grapheme", "lttb", "make_timestamptz", "make_type", "md5_number", "md5_number_lower"),
        *("md5_number_upper", "nextval", "obj_description", "parse_duckdb_log_message"),
        *("parse_formatted_bytes", "path_join", "printf", "replace_type", "right_grapheme"),
        *("st_asbinary", "st_asgeojson", "st_astext", "st_aswkb", "st_aswkt", "st_crs"),
        *("st_geomfromgeojson", "st_geomfromwkb", "st_intersects_extent", "st_setcrs"),
        *("set_bit", "setval", "shobj_description", "sleep_ms", "stats", "substring_grapheme", "switch"),
        *("timezone", "timezone_hour", "timezone_minute", "to_aggregate_state", "try", "txid_current"),
        *("uuid_extract_timestamp", "uuid_extract_version", "wavg", "weighted_avg", "write_log"),
    }
)

_SOURCES: Final = frozenset(
    {
        *("arrow_scan", "checkpoint", "force_checkpoint", "glob", "histogram_values", "pandas_scan"),
        *("parquet_scan", "query", "query_table", "read_blob", "read_duckdb", "read_json_objects"),
        *("read_json_objects_auto", "read_ndjson_objects", "read_text", "read_xlsx", "repeat_row"),
        *("seq_scan", "sniff_csv", "sqlite_scan", "postgres_scan", "mysql_scan", "summary"),
        *("test_all_types", "test_vector_types", "iceberg_scan", "delta_scan", "which_secret"),
    }
)
"""Functions that stand in FROM."""


REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("list", "array_agg", "approx_top_k"), "it gives a list"),
        **dict.fromkeys(("histogram", "histogram_exact"), "it gives a map"),
        "approx_quantile": "write quantile_cont()",
        "reservoir_quantile": "write quantile_disc()",
        "sum_no_overflow": "write sum()",
        **dict.fromkeys(
            ("random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"),
            "its answers differ from run to run",
        ),
    }
)
"""Functions that are refused where they are bound, and why or what to write."""


_NO_LISTS: Final = "there are no lists, structs, maps or JSON"


def missing_functions() -> Mapping[str, Sequence[str]]:
    """Why DuckDB's functions are not there, and the names of those; of families, how they begin."""
    found: dict[str, list[str]] = {}
    families = {f"{family}…": why for family, why in _FAMILIES.items()}
    for name, why in {**families, **dict.fromkeys(_LISTS, _NO_LISTS), **REFUSED}.items():
        found.setdefault(why, []).append(name)
    found.setdefault("", []).extend(_OTHERS | _SOURCES)
    return {why: sorted(names) for why, names in sorted(found.items())}


def why_missing(name: str, *, in_from: bool = False) -> str | None:
    """What is to be said of a function of DuckDB's that BamQuery does not have: '' where its name is enough.

    None for every other name. A name that BamQuery has is not asked for here.
    """
    name = name.lower()
    if name in _SLICES:
        return "there are no lists: write text[i] or text[i:j] of a text"
    for family, reason in _FAMILIES.items():
        if name.startswith(family) and len(name) > len(family):
            return reason
    if not in_from and name in _LISTS:
        return _NO_LISTS
    return "" if name in (_SOURCES if in_from else _OTHERS) else None
