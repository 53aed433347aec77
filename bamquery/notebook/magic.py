"""`%bamquery` and `%%bamquery`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from IPython.core.magic import Magics, line_cell_magic, magics_class
from sqlglot import exp

from bamquery.connection.connection import Connection, connect
from bamquery.connection.module_functions import default_connection
from bamquery.errors import BamQueryError
from bamquery.notebook.cell_options import parse_options
from bamquery.relations.relation import Relation
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.syntax.ast_nodes import SetVariable
from bamquery.text.html_elements import escape_controls
from bamquery.text.identifiers import fold_case, suggestion

_PATH: Final = re.compile(r"[/\\.~:]")
"""What names of variables never have, and paths most often do."""


@magics_class
class BamqueryMagic(Magics):
    """The magic's state: the connection that cells use when they name none."""

    def __init__(self, shell: Any) -> None:
        """Made by `%load_ext`."""
        super().__init__(shell)
        self._variables: dict[str, Any] = shell.user_ns
        self._current: Connection | None = None
        self._opened: dict[str, Connection] = {}

    @line_cell_magic
    def bamquery(self, line: str, cell: str | None = None) -> Relation | None:
        """Run SQL: `%bamquery SELECT 1`, or a cell that begins with `%%bamquery`.

        Variables of the notebook are tables (frames, relations) and the values of parameters ($name).

        -c, --connection NAME   a variable that holds a connection, or the path of a database: this cell's,
                                and that of later cells which name none
        -o, --output NAME       assign the relation to a variable instead of showing it
        """
        try:
            return self._run(line, cell)
        except (BamQueryError, KeyboardInterrupt) as error:
            # A traceback through this package tells an author of SQL nothing. IPython asks for this.
            short = [escape_controls(f"{type(error).__name__}: {error}".removesuffix(": "))]
            error._render_traceback_ = lambda: short  # type: ignore[union-attr]
            raise

    def close(self) -> None:
        """Close the connections that cells have opened by path."""
        for connection in self._opened.values():
            connection.close()
        self._opened.clear()
        self._current = None

    def _run(self, line: str, cell: str | None) -> Relation | None:
        options = parse_options(line, cell)
        if options.connection is not None:
            self._current = self._find_connection(options.connection)
        connection = self._connection()
        if not options.sql.strip():
            if options.connection is None or options.output is not None:
                raise BamQueryError("there is no SQL: write it below %%bamquery, or behind %bamquery")
            return None
        relation = self._answer(connection, options.sql)
        if options.output is not None:
            self._variables[options.output] = relation
            return None
        if not relation.message:
            relation.show_next(relation.view())  # here, so that what fails is the cell's error
        return relation

    def _answer(self, connection: Connection, sql: str) -> Relation:
        params = self._parameters(sql, connection)
        # Called from the notebook's own scope: SQL may name its variables.
        call = {"__bamquery_run__": lambda: connection.sql(sql, params)}
        answer: Relation = eval("__bamquery_run__()", self._variables, call)  # noqa: S307
        return answer

    def _parameters(self, sql: str, connection: Connection) -> dict[str, Any] | None:
        """The variables that stand for `$name`, but where there are only SQL's."""
        trees = parse(sql)
        found = [node for tree in trees for node in tree.find_all(exp.Placeholder)]
        set_here = {fold_case(tree.this.name) for tree in trees if isinstance(tree, SetVariable)}
        in_sql = set_here | set(connection._session.variables)
        given = {str(node.args.get("this") or "?") for node in found}
        names = {name for name in given if name in self._variables or fold_case(name) not in in_sql}
        for name in sorted(names):
            if not name.isidentifier():
                raise BamQueryError(
                    f"a cell's parameters are variables of the notebook, such as $name; not {name}"
                )
            if name not in self._variables:
                hint = suggestion(name, self._variables)
                raise BamQueryError(f"there is no variable {name}, which ${name} stands for.{hint}")
        return {name: self._variables[name] for name in names} or None

    def _connection(self) -> Connection:
        if self._current is None or self._current.closed:
            self._current = self._only_variable() or default_connection()
        return self._current

    def _only_variable(self) -> Connection | None:
        """The notebook's connection, where it has one only."""
        found = {
            id(value): value
            for name, value in self._variables.items()
            if isinstance(value, Connection) and not name.startswith("_") and not value.closed
        }
        if len(found) > 1:
            raise BamQueryError("there are several connections: say which by --connection NAME")
        return next(iter(found.values()), None)

    def _find_connection(self, name: str) -> Connection:
        """A variable's connection, or one to the database at a path."""
        variables = self._variables
        if isinstance(variables.get(name), Connection):
            return variables[name]  # type: ignore[no-any-return]
        path = Path(os.path.expanduser(name))
        if not _PATH.search(name) and not path.exists():
            connections = [key for key, value in variables.items() if isinstance(value, Connection)]
            raise BamQueryError(
                f'there is neither a variable "{name}" that holds a connection nor a database of that name.'
                f"{suggestion(name, connections)} A database that is to be made is ./{name}"
            )
        key = name if name == ":memory:" else str(path.resolve())
        if key not in self._opened or self._opened[key].closed:
            self._opened[key] = connect(name if name == ":memory:" else path)
        return self._opened[key]
