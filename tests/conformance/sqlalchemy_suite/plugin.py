"""Options of the run: the dialect, its engines' options, and tables that are emptied without DELETE."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: F403
from sqlalchemy.testing.provision import update_db_opts

import bamquery.integrations.sqlalchemy  # noqa: F401 (makes the dialect known)


@update_db_opts.for_db("bamquery")
def _options(db_url: Any, db_opts: Any, options: Any) -> None:
    """Nearly all tables of the tests have a primary key."""
    db_opts["omit_constraints"] = True


@event.listens_for(Engine, "before_cursor_execute", retval=True)
def _empty(conn: Any, cursor: Any, statement: str, parameters: Any, *context: Any) -> Any:
    """SQLAlchemy's fixtures empty tables between tests by DELETE."""
    if statement.startswith("DELETE FROM ") and "WHERE" not in statement:
        name = statement.removeprefix("DELETE FROM ").strip()
        statement = f"CREATE OR REPLACE TABLE {name} AS FROM {name} LIMIT 0"
    return statement, parameters
