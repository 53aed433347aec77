"""A shell of IPython in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import bamquery


class Cells:
    """Runs cells; `shown` are the bundles they displayed, `result` what the last one answered."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.result: Any = None
        self.tracebacks: list[str] = []
        shell._showtraceback = self._keep

    def _keep(self, kind: Any, value: Any, lines: list[str]) -> None:
        self.tracebacks.append("\n".join(lines))

    def run(self, cell: str) -> Any:
        """Its answer.

        Raises:
            Exception: what the cell raised.
        """
        done = self.shell.run_cell(cell)
        if done.error_before_exec or done.error_in_exec:
            raise done.error_before_exec or done.error_in_exec
        return done.result

    @property
    def render(self) -> list[dict[str, Any]]:
        return self.shell.display_pub.outputs


@pytest.fixture
def cells() -> Iterator[Cells]:
    """A shell with the extension; the module's connection is the test's own."""
    bamquery.default_connection().close()
    shell = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
    shell.history_manager.enabled = False
    try:
        made = Cells(shell)
        made.run("%load_ext bamquery")
        yield made
        made.run("%unload_ext bamquery")
    finally:
        bamquery.default_connection().close()
        shell.history_manager.end_session()
        InteractiveShell.clear_instance()
