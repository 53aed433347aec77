"""WITH: queries under a name, put wherever the name stands in FROM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from bamquery.errors import BamQueryError, CancelledError
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Plan, Project
from bamquery.plan.subqueries.dependent_joins import is_correlated
from bamquery.sql_frontend.binder.environment import Environment, NamedQuery
from bamquery.sql_frontend.binder.sources.recursive_queries import bind_recursive, names_itself
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.text.identifiers import fold_case, unique_names

BindQuery = Callable[[exp.Expr, Environment], Plan]


def bind_with(node: exp.With | None, sql: str, environment: Environment, bind: BindQuery) -> Environment:
    """The environment with the named queries in it; each sees those before it.

    What is wrong with a query, or that it has fewer columns than names, is found out where it is named: one
    that nobody names may be wrong, as in DuckDB.

    Raises:
        SqlError: a name is given twice.
    """
    seen: set[str] = set()
    for query in () if node is None else node.expressions:
        alias = query.args["alias"]
        name = alias.this.name
        with errors_at(sql, alias):
            if fold_case(name) in seen:
                raise ValueError(f'"{name}" is named twice in WITH')
        seen.add(fold_case(name))
        columns = [column.name for column in alias.args.get("columns") or ()]

        def name_columns(plan: Plan, alias: exp.TableAlias = alias, columns: list[str] = columns) -> Plan:
            with errors_at(sql, alias):
                if len(columns) > len(plan.fields):
                    raise ValueError(
                        f'"{alias.this.name}" has {len(plan.fields)} columns, not {len(columns)}'
                    )
            return _rename_columns(plan, columns)

        try:
            if node is not None and node.args.get("recursive") and names_itself(query):
                plan = bind_recursive(query, sql, environment, bind, name_columns)
            else:
                plan = name_columns(bind(query.this, environment))
        except CancelledError:
            raise
        except BamQueryError as error:
            environment = environment.with_query(NamedQuery(name, error, None))
            continue
        correlation = environment.correlation if is_correlated(plan) else None
        environment = environment.with_query(NamedQuery(name, plan, correlation))
    return environment


def named_query(name: str, environment: Environment) -> Plan | None:
    """The plan of what WITH names so, or None; `ValueError` where it cannot be used here.

    Raises:
        BamQueryError: it is wrong itself.
    """
    found = environment.named.get(fold_case(name))
    if found is None:
        return None
    if isinstance(found.plan, BamQueryError):
        raise found.plan
    if found.correlation is not None and found.correlation is not environment.correlation:
        raise ValueError(
            f'"{found.name}" uses columns of a query around it, and cannot be named in a subquery of its own'
        )
    return found.plan


def _rename_columns(plan: Plan, columns: list[str]) -> Plan:
    given = [*columns, *(field.name for field in plan.fields[len(columns) :])]
    names = tuple(unique_names(given))
    if names == tuple(field.name for field in plan.fields):
        return plan
    if isinstance(plan, Project):
        return replace(plan, names=names)
    references = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))
    return Project(plan, references, names)
