"""SQL in cells: `%load_ext bamquery.notebook`, then `%bamquery` and `%%bamquery` (docs/notebooks.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext` calls."""
    from bamquery.notebook.magic import BamqueryMagic  # noqa: PLC0415 (which imports IPython)

    shell.register_magics(BamqueryMagic)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """What `%unload_ext` calls: connections that cells have opened are closed."""
    from bamquery.notebook.magic import BamqueryMagic  # noqa: PLC0415 (which imports IPython)

    magic = shell.magics_manager.registry.pop(BamqueryMagic.__name__, None)
    if magic is None:
        return
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("bamquery", None)
    magic.close()
