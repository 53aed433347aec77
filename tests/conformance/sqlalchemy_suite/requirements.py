"""What of SQLAlchemy's tests applies: what BamQuery has not is closed, and skipped by its name."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

OPEN = (
    *("isolation_level", "foreign_keys", "foreign_key_ddl", "self_referential_foreign_keys"),
    *("ctes", "ctes_with_values", "intersect", "except_", "window_functions", "window_range"),
    *("views", "view_column_reflection", "create_or_replace_view", "create_table_as"),
    *("supports_distinct_on", "supports_is_distinct_from", "regexp_match", "regexp_replace", "fetch_first"),
    *("aggregate_order_by", "nested_aggregates", "infinity_floats", "tuple_in", "tuple_in_w_empty"),
    *("datetime_timezone", "datetime_historic", "date_historic", "datetime_interval", "datetime_literals"),
    *("timestamp_microseconds", "binary_literals", "server_defaults", "expression_server_defaults"),
    *("precision_numerics_many_significant_digits", "precision_numerics_retains_significant_digits"),
    *("standalone_binds", "nullsordering", "unicode_ddl", "order_by_label_with_expression"),
    *("implicit_default_schema", "like_escapes", "unusual_column_name_characters"),
    *("supports_bitwise_or", "supports_bitwise_and", "supports_bitwise_not", "supports_bitwise_shift"),
    *(
        "group_by_complex_expression",
        "insert_from_select",
        "multivalues_inserts",
        "symbol_names_w_double_quote",
    ),
    *("table_value_constructor", "mod_operator_as_percent_sign", "precision_generic_float_type"),
)
CLOSED = (
    # DELETE, UPDATE and RETURNING are not there.
    *("sane_rowcount", "sane_multi_rowcount", "delete_returning", "insert_returning", "update_returning"),
    *(
        "ctes_with_update_delete",
        "ctes_on_dml",
        "update_from",
        "delete_from",
        "update_where_target_in_subquery",
    ),
    # Neither are keys, indexes, other constraints and generated values.
    "primary_key_constraint_reflection",
    *("foreign_key_constraint_reflection", "unique_constraint_reflection", "check_constraint_reflection"),
    *("inline_check_constraint_reflection", "index_reflection", "index_ddl_if_exists", "named_constraints"),
    *("indexes_with_ascdesc", "indexes_with_expressions", "duplicate_key_raises_integrity_error"),
    *("autoincrement_insert", "autoincrement_without_sequence", "identity_columns", "computed_columns"),
    *("sequences", "comment_reflection", "on_update_cascade", "non_updating_cascade", "empty_inserts"),
    *("implements_get_lastrowid", "emulated_lastrowid", "dbapi_lastrowid"),
    # Transactions, temporary tables, types.
    *("autocommit", "uuid_data_type", "schema_reflection"),
    *("savepoints", "two_phase_transactions", "temporary_tables", "temporary_views", "temp_table_reflection"),
    *("temp_table_names", "has_temp_table", "create_temp_table_as", "materialized_views", "schemas"),
    *("json_type", "array_type", "time_timezone", "column_collation_reflection", "order_by_collation"),
    *("server_side_cursors", "fetch_rows_post_commit"),
)


class Requirements(SuiteRequirements):
    """SQLAlchemy's, with what is open and closed here."""

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        """There is one."""
        return {"default": "AUTOCOMMIT", "supported": ["AUTOCOMMIT"]}


for _name in OPEN:
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
for _name in CLOSED:
    setattr(Requirements, _name, property(lambda self: exclusions.closed()))
